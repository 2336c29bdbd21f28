/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as UTF-8 text (RFC 3629). */
#ifndef PROXY_CLI_UTF8_H
#define PROXY_CLI_UTF8_H

#include <stddef.h>

/*
 * The length of the one character at the front of `len` bytes (at least one): 1 to 4. 0 when the bytes there are none;
 * -1 when they could be the beginning of one that is cut off at the end.
 */
int utf8_length(const char *bytes, size_t len);

/*
 * A copy with U+FFFD for each byte that belongs to no character; NULL when out of memory. *out_len gets its length, and
 * *replaced how many bytes that were. The caller frees it.
 */
char *utf8_repair(const char *bytes, size_t len, size_t *out_len, size_t *replaced);

#endif
