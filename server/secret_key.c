#include "server/secret_key.h"

#include "lib/base/fs.h"
#include "lib/base/id.h"
#include "lib/base/mem.h"
#include "server/store/credential.h"

/* Servers that share the folder may start at the same time: the first key counts. */
static int make(const char *data_dir, const char *path, struct err *e)
{
	unsigned char key[PEPPER_SIZE];

	if (fs_mkdirs(data_dir, 0700, e) < 0)
		return -1;
	id_random(key, PEPPER_SIZE);
	int rc = fs_write_first(path, (struct str){ (const char *)key, PEPPER_SIZE }, 0600, e);
	mem_wipe(key, sizeof key);
	return rc;
}

static int read_key(const char *path, unsigned char *key, struct err *e)
{
	struct buf b;

	buf_init(&b, PEPPER_SIZE);
	int rc = fs_read(path, &b, e);
	if (rc == 0 && b.n == PEPPER_SIZE)
		memcpy(key, b.p, PEPPER_SIZE);
	else if (rc == 0 || e->code == ERR_TOO_LARGE)
		rc = err_set(e, ERR_CORRUPT, "%.200s must hold %d bytes", path, PEPPER_SIZE);
	if (b.p != NULL)
		mem_wipe(b.p, b.n);
	buf_done(&b);
	return rc;
}

struct pepper *secret_key_open(const char *data_dir, struct err *e)
{
	unsigned char key[PEPPER_SIZE];
	struct pepper *p = NULL;
	char path[512];
	int rc;

	if (!str_print(path, sizeof path, "%s/secret.key", data_dir)) {
		(void)err_set(e, ERR_INVALID, "data-dir is too long");
		return NULL;
	}
	rc = read_key(path, key, e);
	if (rc < 0 && e->code == ERR_NOT_FOUND)
		rc = make(data_dir, path, e) < 0 ? -1 : read_key(path, key, e);
	if (rc == 0)
		p = pepper_new(key);
	mem_wipe(key, sizeof key);
	return p;
}
