/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host names made canonical. Whatever is not plainly a host name is refused
 * here, before a rule or a resolver sees it: a checker and a resolver that
 * read the same bytes differently are how allowlists have been passed.
 */
#include "base/name.h"

#include <string.h>

#define SAME(c)		     [c] = (c)
#define LETTER(upper, lower) [upper] = (lower), [lower] = (lower)

/*
 * The canonical form of one byte; 0 for a byte that no host name has. A table, since nobody, a processor's branch
 * predictor included, can say whether the next one is a letter or a digit.
 */
static const char canonical_byte[256] = {
	LETTER('A', 'a'), LETTER('B', 'b'), LETTER('C', 'c'), LETTER('D', 'd'), LETTER('E', 'e'), LETTER('F', 'f'),
	LETTER('G', 'g'), LETTER('H', 'h'), LETTER('I', 'i'), LETTER('J', 'j'), LETTER('K', 'k'), LETTER('L', 'l'),
	LETTER('M', 'm'), LETTER('N', 'n'), LETTER('O', 'o'), LETTER('P', 'p'), LETTER('Q', 'q'), LETTER('R', 'r'),
	LETTER('S', 's'), LETTER('T', 't'), LETTER('U', 'u'), LETTER('V', 'v'), LETTER('W', 'w'), LETTER('X', 'x'),
	LETTER('Y', 'y'), LETTER('Z', 'z'), SAME('0'),	      SAME('1'),	SAME('2'),	  SAME('3'),
	SAME('4'),	  SAME('5'),	    SAME('6'),	      SAME('7'),	SAME('8'),	  SAME('9'),
	SAME('-'),	  SAME('_'),	    SAME('.'),
};

/*
 * True when the last label of a name would make a resolver read the name as an IPv4
 * address: all digits, or "0x" and hex digits, of which "0x" has none and
 * still counts (WHATWG URL, "ends in a number checker").
 */
static bool is_number(const char *label)
{
	const char *set = "0123456789";

	if (label[0] < '0' || label[0] > '9')
		return false;
	if (label[0] == '0' && label[1] == 'x') {
		label += 2;
		set = "0123456789abcdef";
	}
	return label[strspn(label, set)] == '\0';
}

/* Writes the canonical bytes of `len` at `p` into `s`. Returns where the last label begins, or -1. */
static int canonical_labels(const uint8_t *p, size_t len, char *s)
{
	size_t label = 0;

	for (size_t i = 0; i < len; i++) {
		s[i] = canonical_byte[p[i]];
		if (s[i] == '\0')
			return -1;
		if (s[i] != '.')
			continue;
		if (i == label || i - label > NAME_LABEL_MAX)
			return -1;
		label = i + 1;
	}
	s[len] = '\0';
	return label < len && len - label <= NAME_LABEL_MAX ? (int)label : -1;
}

int name_canonical(const void *in, size_t len, struct name *out)
{
	const uint8_t *p = in;
	int last = -1;

	if (len > 0 && p[len - 1] == '.')
		len--;
	if (len <= NAME_LEN_MAX)
		last = canonical_labels(p, len, out->s);
	if (last < 0 || is_number(out->s + last)) {
		out->len = 0;
		out->s[0] = '\0';
		return -1;
	}
	out->len = (uint8_t)len;
	return 0;
}

bool name_equal(const struct name *a, const struct name *b)
{
	return a->len == b->len && memcmp(a->s, b->s, a->len) == 0;
}

const char *name_parent(const char *s)
{
	const char *dot = strchr(s, '.');

	return dot ? dot + 1 : NULL;
}

bool name_is_below(const struct name *name, const char *suffix, size_t suffix_len)
{
	size_t at;

	if (name->len <= suffix_len)
		return false;
	at = name->len - suffix_len;
	return name->s[at - 1] == '.' && memcmp(name->s + at, suffix, suffix_len) == 0;
}
