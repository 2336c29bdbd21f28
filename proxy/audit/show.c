/* SPDX-License-Identifier: Apache-2.0 */
/* Text for a person's terminal. */
#include "proxy/audit/show.h"

#include <stdio.h>

const char *show_bytes(char *buf, const void *p, size_t len, size_t max)
{
	static const char hex[] = "0123456789abcdef";
	size_t shown = len < max ? len : max;
	const uint8_t *in = p;
	char *at = buf;

	for (size_t i = 0; i < shown; i++) {
		if (in[i] == '\\') {
			*at++ = '\\';
			*at++ = '\\';
		} else if (in[i] >= 0x20 && in[i] < 0x7f) {
			*at++ = (char)in[i];
		} else {
			*at++ = '\\';
			*at++ = 'x';
			*at++ = hex[in[i] >> 4];
			*at++ = hex[in[i] & 15];
		}
	}
	*at = '\0';
	if (shown < len)
		snprintf(at, 24, "\\+%zu", len - shown);
	return buf;
}

const char *show_size(char buf[static SHOW_SIZE_STRLEN], uint64_t bytes)
{
	static const char *const units[] = { "kB", "MB", "GB", "TB", "PB", "EB" };
	uint64_t unit = 1000;
	size_t i = 0;

	if (bytes < 1000) {
		snprintf(buf, SHOW_SIZE_STRLEN, "%u B", (unsigned int)bytes);
		return buf;
	}
	while (i + 1 < sizeof(units) / sizeof(units[0]) && bytes / unit >= 1000) {
		unit *= 1000;
		i++;
	}
	/* One decimal below 10, cut, never rounded up: "9.9 kB" is less than 10 kB. */
	if (bytes / unit < 10)
		snprintf(buf, SHOW_SIZE_STRLEN, "%u.%u %s", (unsigned int)(bytes / unit),
			 (unsigned int)(bytes % unit / (unit / 10)), units[i]);
	else
		snprintf(buf, SHOW_SIZE_STRLEN, "%u %s", (unsigned int)(bytes / unit), units[i]);
	return buf;
}
