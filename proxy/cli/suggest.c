/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. One row of the usual table at a time. */
#include "proxy/cli/suggest.h"

#include <string.h>

static unsigned least(unsigned a, unsigned b, unsigned c)
{
	unsigned ab = a < b ? a : b;

	return ab < c ? ab : c;
}

unsigned suggest_distance(const char *word, size_t len, const char *name)
{
	unsigned row[SUGGEST_WORD_MAX + 1];
	size_t name_len = strlen(name);

	if (len == 0 || len > SUGGEST_WORD_MAX)
		return SUGGEST_FAR;
	if (len <= name_len && memcmp(word, name, len) == 0)
		return 0;
	for (size_t k = 0; k <= len; k++)
		row[k] = (unsigned)k;
	for (size_t i = 0; i < name_len; i++) {
		unsigned diagonal = row[0];

		row[0]++;
		for (size_t k = 0; k < len; k++) {
			unsigned above = row[k + 1];

			row[k + 1] = least(above + 1, row[k] + 1, diagonal + (word[k] != name[i]));
			diagonal = above;
		}
	}
	return row[len] < SUGGEST_FAR ? row[len] : SUGGEST_FAR;
}
