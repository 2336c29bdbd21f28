/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the JSON writer: whatever bytes come in, what comes out is ASCII and
 * valid JSON, and decoding it gives the bytes back. The first byte of the
 * input is the maximum shown, the second the size of the buffer (in eights).
 * links: base/json.c base/addr.c
 */
#include "base/json.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned int hex_digit(char c)
{
	assert((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'));
	return (unsigned int)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* Undoes JSON's own escapes of one string; only these two may occur. Returns the length. */
static size_t undo_json(const char *in, size_t len, char *out)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		assert(in[i] >= 0x20 && in[i] < 0x7f && in[i] != '"');
		if (in[i] == '\\') {
			i++;
			assert(i < len && (in[i] == '\\' || in[i] == '"'));
		}
		out[n++] = in[i];
	}
	return n;
}

/* Undoes the reversible escaping and compares with the input. */
static void check_value(const char *text, size_t len, const uint8_t *in, size_t in_len, size_t max)
{
	size_t shown = in_len < max ? in_len : max;
	size_t n = 0, i = 0;

	while (n < shown) {
		unsigned int c = (unsigned char)text[i++];

		assert(i <= len);
		if (c == '\\' && text[i] == 'x') {
			c = hex_digit(text[i + 1]) << 4 | hex_digit(text[i + 2]);
			i += 3;
		} else if (c == '\\') {
			assert(text[i] == '\\');
			i++;
		}
		assert(c == in[n]);
		n++;
	}
	if (shown < in_len) {
		assert(text[i] == '\\' && text[i + 1] == '+');
		assert(strtoul(text + i + 2, NULL, 10) == in_len - shown);
	} else {
		assert(i == len);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char head[] = "{\"n\":7,\"k\":\"";
	static const char tail[] = "\"}\n";
	size_t max, cap, len, value;
	char *buf, *text;
	struct json j;

	if (size < 2)
		return 0;
	max = data[0];
	cap = (size_t)data[1] * 8;
	data += 2;
	size -= 2;
	buf = malloc(cap + 1);
	text = calloc(1, cap + 1);
	assert(buf && text);
	json_begin(&j, buf, cap);
	json_u64(&j, "n", 7);
	json_bytes(&j, "k", data, size, max);
	len = json_end(&j);
	if (len) {
		assert(len <= cap && len >= sizeof(head) - 1 + sizeof(tail) - 1);
		assert(memcmp(buf, head, sizeof(head) - 1) == 0);
		assert(memcmp(buf + len - (sizeof(tail) - 1), tail, sizeof(tail) - 1) == 0);
		value = undo_json(buf + sizeof(head) - 1, len - (sizeof(head) - 1) - (sizeof(tail) - 1), text);
		check_value(text, value, data, size, max);
	} else {
		/* Nothing is refused that could have fitted at its longest: five bytes for one, and the mark. */
		assert((size < max ? size : max) * 5 + 24 + sizeof(head) + sizeof(tail) > cap);
	}
	free(text);
	free(buf);
	return 0;
}
