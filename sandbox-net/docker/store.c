/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/docker/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attach.h"
#include "base/err.h"
#include "sandbox-net/oci/object.h"

static int directory = -1; /* locked as long as it is open */

static int make_parents(const char *dir, struct err *err)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s", dir) >= (int)sizeof(path))
		return err_set(err, "%s: the path is too long", dir);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			return err_set_errno(err, errno, "%s", path);
		*slash = '/';
	}
	return 0;
}

int store_open(const char *dir, struct err *err)
{
	struct stat st;

	if (make_parents(dir, err))
		return -1;
	if (mkdir(dir, 0700) && errno != EEXIST)
		return err_set_errno(err, errno, "%s", dir);
	directory = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0 || fstat(directory, &st))
		return err_set_errno(err, errno, "%s", dir);
	if (st.st_uid != geteuid() || (st.st_mode & 077))
		return err_set(err, "%s must be a directory of root's alone (mode 0700)", dir);
	if (flock(directory, LOCK_EX | LOCK_NB))
		return err_set(err, "a driver with the state in %s runs already", dir);
	return 0;
}

static int name_file(char name[static NAME_MAX], const char *id, const char *suffix, struct err *err)
{
	if (!attach_name_ok(id))
		return err_set(err, "that is not the id of a network");
	snprintf(name, NAME_MAX, "%s.%s", id, suffix);
	return 0;
}

int store_save(const char *id, const json_t *network, struct err *err)
{
	char name[NAME_MAX], beside[NAME_MAX];
	int fd, rc;

	if (name_file(name, id, "json", err) || name_file(beside, id, "new", err))
		return -1;
	fd = openat(directory, beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_set_errno(err, errno, "cannot keep the network's options");
	rc = json_dumpfd(network, fd, JSON_COMPACT) || fsync(fd) || renameat(directory, beside, directory, name);
	if (rc)
		err_set_errno(err, errno, "cannot keep the network's options");
	close(fd);
	return rc ? -1 : 0;
}

json_t *store_load(const char *id, struct err *err)
{
	char name[NAME_MAX];
	json_t *network;
	int fd;

	if (name_file(name, id, "json", err))
		return NULL;
	fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		err_set_errno(err, errno, "the options of network %.12s", id);
		return NULL;
	}
	network = object_read(fd, "the network's options", err);
	close(fd);
	return network;
}

void store_remove(const char *id)
{
	char name[NAME_MAX];
	struct err err = { "" };

	if (name_file(name, id, "json", &err) == 0)
		(void)unlinkat(directory, name, 0);
}
