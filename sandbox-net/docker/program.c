/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/docker/program.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUNC "runc:["

/* A process that ends meanwhile is nobody's. */
static bool is_own(int dir, const struct stat *our_root)
{
	char name[sizeof(RUNC) - 1];
	struct stat root;
	ssize_t n;
	int fd;

	if (fstatat(dir, "root/.", &root, 0))
		return false;
	if (root.st_dev == our_root->st_dev && root.st_ino == our_root->st_ino)
		return false;
	fd = openat(dir, "comm", O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, name, sizeof(name));
	if (fd >= 0)
		close(fd);
	return n > 0 && (n != sizeof(name) || memcmp(name, RUNC, sizeof(name)) != 0);
}

bool program_begun(uint64_t dev, uint64_t ino)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	struct stat st, root;
	bool begun = stat("/", &root) != 0;

	while (proc && !begun && (entry = readdir(proc))) {
		int dir = entry->d_name[0] < '1' || entry->d_name[0] > '9'
				  ? -1
				  : openat(dirfd(proc), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (dir < 0)
			continue;
		if (fstatat(dir, "ns/net", &st, 0) == 0 && st.st_dev == dev && st.st_ino == ino)
			begun = is_own(dir, &root);
		close(dir);
	}
	if (proc)
		closedir(proc);
	return begun || !proc;
}
