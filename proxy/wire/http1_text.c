/* SPDX-License-Identifier: Apache-2.0 */
/* Byte classes and text comparison of the HTTP/1 parsers. */
#include "proxy/wire/http1_text.h"

#include <string.h>

#define T HTTP1_BYTE_TOKEN
#define G HTTP1_BYTE_TARGET
#define R HTTP1_BYTE_REG_NAME

const uint8_t http1_byte_class[256] = {
	['!'] = T | G | R,
	['"'] = G,
	['#'] = T,
	['$'] = T | G | R,
	['%'] = T | G,
	['&'] = T | G | R,
	['\''] = T | G | R,
	['('] = G | R,
	[')'] = G | R,
	['*'] = T | G | R,
	['+'] = T | G | R,
	[','] = G,
	['-'] = T | G | R,
	['.'] = T | G | R,
	['/'] = G,
	['0' ... '9'] = T | G | R,
	[':'] = G,
	[';'] = G | R,
	['<'] = G,
	['='] = G | R,
	['>' ... '@'] = G,
	['A' ... 'Z'] = T | G | R,
	['[' ... ']'] = G,
	['^'] = T | G,
	['_'] = T | G | R,
	['`'] = T | G,
	['a' ... 'z'] = T | G | R,
	['{'] = G,
	['|'] = T | G,
	['}'] = G,
	['~'] = T | G | R,
};

static bool is_value_byte(uint8_t c)
{
	return (c >= ' ' && c != 0x7f) || c == '\t';
}

/* True when one of the eight bytes of `w` is below 0x20 or 0x7f; exact, whatever the byte order. */
static bool has_control(uint64_t w)
{
	const uint64_t ones = UINT64_MAX / 255, high = ones * 0x80;
	uint64_t del = w ^ ones * 0x7f;

	return (((w - ones * 0x20) & ~w) | ((del - ones) & ~del)) & high;
}

size_t http1_span_value(const uint8_t *p, size_t n)
{
	size_t i = 0;

	while (i < n) {
		size_t stop = i + 1;

		if (n - i >= sizeof(uint64_t)) {
			uint64_t w;

			memcpy(&w, p + i, sizeof(w));
			stop = i + sizeof(w);
			if (!has_control(w))
				i = stop;
		}
		for (; i < stop; i++) {
			if (!is_value_byte(p[i]))
				return i;
		}
	}
	return i;
}

static bool is_ows(char c)
{
	return c == ' ' || c == '\t';
}

struct http1_text http1_text_trim(struct http1_text t)
{
	while (t.len > 0 && is_ows(t.p[0])) {
		t.p++;
		t.len--;
	}
	while (t.len > 0 && is_ows(t.p[t.len - 1]))
		t.len--;
	return t;
}

bool http1_text_exactly(struct http1_text t, const char *s)
{
	return t.len == strlen(s) && memcmp(t.p, s, t.len) == 0;
}

bool http1_text_same(struct http1_text a, struct http1_text b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++) {
		if (http1_lower((uint8_t)a.p[i]) != http1_lower((uint8_t)b.p[i]))
			return false;
	}
	return true;
}

bool http1_text_is(struct http1_text t, const char *lower)
{
	for (size_t i = 0; i < t.len; i++) {
		if (lower[i] == '\0' || http1_lower((uint8_t)t.p[i]) != (uint8_t)lower[i])
			return false;
	}
	return lower[t.len] == '\0';
}

bool http1_list_next(struct http1_text *list, struct http1_text *member)
{
	while (list->len > 0) {
		const char *comma = memchr(list->p, ',', list->len);
		size_t n = comma ? (size_t)(comma - list->p) : list->len;
		size_t step = comma ? n + 1 : n;

		*member = http1_text_trim((struct http1_text){ list->p, n });
		list->p += step;
		list->len -= step;
		if (member->len > 0)
			return true;
	}
	return false;
}
