/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers beyond 2^63. A config.json has them (RLIM_INFINITY is 18446744073709551615), and jansson reads none;
 * as a real number it would come out changed. While the text is an object in memory, such a number is a string with a mark.
 */
#ifndef SANDBOX_NET_OCI_WIDE_H
#define SANDBOX_NET_OCI_WIDE_H

#include <stddef.h>

#define WIDE_MARK "netgate-number:"

/*
 * `len` bytes of JSON text with each integer that may be too large turned into a marked string; what is no JSON stays
 * none. *out_len gets the length. To be freed; NULL when memory is out, or (*out_len is 0) when the text has the mark already.
 */
char *wide_hide(const char *text, size_t len, size_t *out_len);

/* The way back, in place, in NUL-terminated JSON text. Returns the new length. */
size_t wide_show(char *text);

#endif
