/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "proxy/cli/utf8.h"

#include <stdlib.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"

/* What may follow the first byte: how many bytes, and the range of the first of them (RFC 3629, section 4). */
static int lead(unsigned char c, unsigned char *low, unsigned char *high)
{
	*low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
	*high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
	if (c < 0x80)
		return 0;
	if (c >= 0xc2 && c <= 0xdf)
		return 1;
	if (c >= 0xe0 && c <= 0xef)
		return 2;
	return c >= 0xf0 && c <= 0xf4 ? 3 : -1;
}

int utf8_length(const char *bytes, size_t len)
{
	unsigned char low, high;
	int more = lead((unsigned char)bytes[0], &low, &high);

	for (int i = 1; i <= more; i++) {
		if ((size_t)i == len)
			return -1;
		if ((unsigned char)bytes[i] < low || (unsigned char)bytes[i] > high)
			return 0;
		low = 0x80;
		high = 0xbf;
	}
	return more + 1;
}

char *utf8_repair(const char *bytes, size_t len, size_t *out_len, size_t *replaced)
{
	char *out = malloc(len * (sizeof(REPLACEMENT) - 1) + 1);
	size_t n = 0;

	*replaced = 0;
	for (size_t i = 0; out && i < len;) {
		int step = utf8_length(bytes + i, len - i);

		if (step > 0) {
			memcpy(out + n, bytes + i, (size_t)step);
			n += (size_t)step;
			i += (size_t)step;
		} else {
			memcpy(out + n, REPLACEMENT, sizeof(REPLACEMENT) - 1);
			n += sizeof(REPLACEMENT) - 1;
			i++;
			(*replaced)++;
		}
	}
	*out_len = n;
	return out;
}
