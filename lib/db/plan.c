#include "lib/db/plan.h"

#include "lib/base/mem.h"

void plans_free(struct db_plan **list)
{
	while (*list != NULL) {
		struct db_plan *p = *list;

		*list = p->next;
		mem_free(p);
	}
}
