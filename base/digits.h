/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal numbers in their one canonical form, without stdio and locale: used for every record and address. */
#ifndef BASE_DIGITS_H
#define BASE_DIGITS_H

#include <stddef.h>
#include <stdint.h>

#define DIGITS_MAX 20 /* of a uint64_t; there is no NUL */

/* Writes `v` at `at` (up to DIGITS_MAX bytes) and returns one past its last digit. */
static inline char *digits_put(char *at, uint64_t v)
{
	char tmp[DIGITS_MAX];
	size_t n = 0;

	do {
		tmp[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	while (n)
		*at++ = tmp[--n];
	return at;
}

/*
 * Parses exactly `len` bytes: digits only, no sign, no leading zero, at most
 * `max`. Returns 0, or -1 for anything else.
 */
static inline int digits_parse(const char *text, size_t len, uint32_t max, uint32_t *out)
{
	uint64_t v = 0;

	if (len == 0 || len > 10 || (len > 1 && text[0] == '0'))
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		v = v * 10 + (uint64_t)(text[i] - '0');
	}
	if (v > max)
		return -1;
	*out = (uint32_t)v;
	return 0;
}

#endif
