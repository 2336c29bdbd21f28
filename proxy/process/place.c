/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "proxy/process/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proxy/process/procfs.h"

/* Takes `fd` if it is S. */
static int take_if_same(const struct place *p, int fd)
{
	struct stat st;

	if (fd < 0)
		return -ENOENT;
	if (fstat(fd, &st) == 0 && st.st_dev == p->dev && st.st_ino == p->ino)
		return fd;
	close(fd);
	return -ENOENT;
}

int place_open(const struct place *p, int proc_fd, int *process)
{
	/* Whoever may write to the directory can put anything there: a FIFO must not make us wait. */
	int fd = take_if_same(p, openat(p->dir, p->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)), dir = -1;
	struct procfs_scan scan;
	char name[32];
	pid_t pid;

	if (process)
		*process = -1;
	if (fd >= 0)
		return fd;
	procfs_scan_begin(&scan, proc_fd);
	while (fd < 0 && (pid = procfs_scan_next(&scan, p->ino)) > 0) {
		snprintf(name, sizeof(name), "%d", (int)pid);
		dir = openat(proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		fd = take_if_same(p, openat(dir, PLACE_OF_PROCESS, O_RDONLY | O_CLOEXEC));
		if (fd >= 0 && process)
			*process = dir;
		else if (dir >= 0)
			close(dir);
	}
	procfs_scan_end(&scan);
	return fd;
}

bool place_exists(const struct place *p)
{
	int proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = proc_fd < 0 ? -1 : place_open(p, proc_fd, NULL);

	if (fd >= 0)
		close(fd);
	if (proc_fd >= 0)
		close(proc_fd);
	return fd >= 0;
}
