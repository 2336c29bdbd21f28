/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. Strings are passed over whole, so that digits in them stay what they are. */
#include "sandbox-net/oci/wide.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MIN 19 /* 2^63 has as many; with fewer, every integer fits */
#define DIGITS	   "0123456789"
#define HEAD	   "\"" WIDE_MARK /* of a marked string */

/* The end of the string that begins at `at`, or `end`. */
static const char *after_string(const char *at, const char *end)
{
	for (at++; at < end; at++) {
		if (*at == '\\' && at + 1 < end)
			at++;
		else if (*at == '"')
			return at + 1;
	}
	return end;
}

/* The end of the run of bytes that may be part of a number. */
static const char *after_number(const char *at, const char *end)
{
	while (at < end && memchr(DIGITS "+-.eE", *at, sizeof(DIGITS "+-.eE") - 1))
		at++;
	return at;
}

static int is_wide(const char *number, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (number[i] < '0' || number[i] > '9')
			return 0;
	return len >= DIGITS_MIN;
}

char *wide_hide(const char *text, size_t len, size_t *out_len)
{
	const char *end = text + len;
	/* Each number of at least DIGITS_MIN bytes grows by less than its own length. */
	char *out = malloc(2 * len + 1), *to = out;

	*out_len = 0;
	if (!out)
		return NULL;
	if (memmem(text, len, WIDE_MARK, sizeof(WIDE_MARK) - 1)) {
		free(out);
		return NULL;
	}
	for (const char *at = text; at < end;) {
		const char *next = *at == '"' ? after_string(at, end) : after_number(at, end);
		const size_t n = next > at ? (size_t)(next - at) : 1;

		if (*at != '"' && is_wide(at, n)) {
			to = mempcpy(to, HEAD, sizeof(HEAD) - 1);
			to = mempcpy(to, at, n);
			*to++ = '"';
		} else {
			to = mempcpy(to, at, n);
		}
		at += n;
	}
	*to = '\0';
	*out_len = (size_t)(to - out);
	return out;
}

size_t wide_show(char *text)
{
	char *to = text, *at = text, *mark;

	while ((mark = strstr(at, HEAD))) {
		const char *number = mark + sizeof(HEAD) - 1;
		const size_t n = strspn(number, DIGITS);
		/* With escape sequences a text may have the mark all the same, and more behind it than digits. */
		const bool ours = n >= DIGITS_MIN && number[n] == '"';

		memmove(to, at, (size_t)(mark - at));
		to += mark - at;
		memmove(to, ours ? number : mark, ours ? n : sizeof(HEAD) - 1);
		to += ours ? n : sizeof(HEAD) - 1;
		at = ours ? mark + sizeof(HEAD) - 1 + n + 1 : mark + sizeof(HEAD) - 1;
	}
	memmove(to, at, strlen(at) + 1);
	return (size_t)(to - text) + strlen(to);
}
