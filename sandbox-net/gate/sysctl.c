/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/gate/sysctl.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int sysctl_open(void)
{
	int fs = (int)syscall(SYS_fsopen, "proc", FSOPEN_CLOEXEC);
	int proc = -1;

	if (fs >= 0) {
		if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
			proc = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
		close(fs);
	}
	return proc >= 0 ? proc : open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

bool sysctl_write(int proc, const char *path, const char *value)
{
	char full[128];
	bool written;
	int fd;

	if (proc < 0 || snprintf(full, sizeof(full), "sys/%s", path) >= (int)sizeof(full))
		return false;
	fd = openat(proc, full, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	written = write(fd, value, strlen(value)) >= 0;
	close(fd);
	return written;
}

void sysctl_close(int proc)
{
	if (proc >= 0)
		close(proc);
}
