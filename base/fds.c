/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "base/fds.h"

#include <stdlib.h>
#include <unistd.h>

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

void fds_keep_only(int *fds, size_t n)
{
	unsigned next = 3;

	qsort(fds, n, sizeof(*fds), by_number);
	for (size_t i = 0; i < n; i++) {
		if (fds[i] < 3)
			continue;
		if ((unsigned)fds[i] > next)
			close_range(next, (unsigned)fds[i] - 1, 0);
		next = (unsigned)fds[i] + 1;
	}
	close_range(next, ~0u, 0);
}
