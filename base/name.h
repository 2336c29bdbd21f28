/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host names in their one canonical form: lower-case ASCII letters, digits,
 * '-' and '_', labels of 1 to 63 bytes, 253 bytes at most, no trailing dot.
 * A name is made canonical once, where it enters; everything after compares bytes.
 */
#ifndef BASE_NAME_H
#define BASE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAME_LEN_MAX   253
#define NAME_LABEL_MAX 63

struct name {
	uint8_t len;		  /* 0: no name */
	char s[NAME_LEN_MAX + 1]; /* canonical, NUL-terminated */
};

/*
 * Makes `len` bytes at `in` canonical: folds ASCII case, drops one trailing
 * dot. Returns 0; -1 (and out->len = 0) for anything that is not a host name:
 * other bytes, empty or over-long labels, two trailing dots, an IP literal, or
 * a name whose last label is all digits or 0x-hex ("127.1", "2130706433",
 * "0x7f.1"), which resolvers read as addresses (WHATWG URL, "ends in a number").
 */
int name_canonical(const void *in, size_t len, struct name *out);

/* True when both are the same name. */
bool name_equal(const struct name *a, const struct name *b);

/* The part of a canonical name after its first dot; NULL when there is none. Points into `s`. */
const char *name_parent(const char *s);

/* True when `name` is below `suffix` at a label boundary ("a.b" is below "b"; "b" itself is not). */
bool name_is_below(const struct name *name, const char *suffix, size_t suffix_len);

#endif
