/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "base/userns.h"

#include <stdint.h>
#include <stdio.h>

bool userns_is_initial(void)
{
	unsigned inside = 1, outside = 1, count = 0;
	FILE *f = fopen("/proc/self/uid_map", "re");
	bool initial;

	if (!f)
		return false;
	initial = fscanf(f, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0 && outside == 0 &&
		  count == UINT32_MAX;
	fclose(f);
	return initial;
}
