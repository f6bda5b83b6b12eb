/* Hash map from byte strings to pointers. Owns copies of the keys, never the values. Open
 * addressing with a random seed per map, so hostile keys cannot collide on purpose. */
#ifndef LIB_BASE_MAP_H
#define LIB_BASE_MAP_H
#include "lib/base/str.h"

struct map;

struct map *map_new(void);
void map_free(struct map *m); /* NULL is fine */
void *map_get(const struct map *m, struct str key); /* NULL when absent */
void *map_put(struct map *m, struct str key, void *value); /* value not NULL; returns the old one */
void *map_remove(struct map *m, struct str key); /* returns the value or NULL */
size_t map_count(const struct map *m);
/* Iterates in no order: start with *at = 0; false at the end. Removing the entry just returned is
 * allowed, adding is not. */
bool map_next(const struct map *m, size_t *at, struct str *ret_key, void **ret_value);

#endif
