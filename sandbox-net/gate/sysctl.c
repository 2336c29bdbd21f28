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

static int open_at(int proc, const char *path, int how)
{
	char full[128];

	if (proc < 0 || snprintf(full, sizeof(full), "sys/%s", path) >= (int)sizeof(full))
		return -1;
	return openat(proc, full, how | O_CLOEXEC);
}

bool sysctl_write(int proc, const char *path, const char *value)
{
	int fd = open_at(proc, path, O_WRONLY);
	bool written;

	if (fd < 0)
		return false;
	written = write(fd, value, strlen(value)) >= 0;
	close(fd);
	return written;
}

bool sysctl_bound(int proc, const char *path, unsigned long most)
{
	/* Opened once, since to find it in the shared procfs is what costs. */
	int fd = open_at(proc, path, O_RDWR);
	unsigned long least, initial, now;
	char text[96];
	ssize_t n;
	bool done;

	if (fd < 0)
		return false;
	n = pread(fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	done = sscanf(text, "%lu %lu %lu", &least, &initial, &now) == 3;
	if (done && now > most) {
		snprintf(text, sizeof(text), "%lu %lu %lu", least, initial < most ? initial : most, most);
		done = pwrite(fd, text, strlen(text), 0) >= 0;
	}
	close(fd);
	return done;
}

void sysctl_close(int proc)
{
	if (proc >= 0)
		close(proc);
}
