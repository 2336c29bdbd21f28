/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/attach/caps.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATUS_MAX 4096 /* bytes of a /proc/PID/status */

/* The value of a line; `fallback` where there is none. */
static unsigned long long field(const char *status, const char *name, int base, unsigned long long fallback)
{
	const char *at = strstr(status, name);

	return at ? strtoull(at + strlen(name), NULL, base) : fallback;
}

bool caps_read(int dir, struct caps *caps)
{
	char status[STATUS_MAX];
	int fd = openat(dir, "status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, status, sizeof(status) - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	status[n] = '\0';
	caps->has = caps->may = field(status, "\nCapPrm:", 16, ~0ull);
	if (!field(status, "\nNoNewPrivs:", 10, 0))
		caps->may |= field(status, "\nCapBnd:", 16, ~0ull) | field(status, "\nCapInh:", 16, ~0ull);
	caps->filtered = field(status, "\nSeccomp:", 10, 0) != 0;
	return true;
}
