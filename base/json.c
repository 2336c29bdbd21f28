/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON writer of the audit log. It runs once a connection or query, so
 * runs of plain bytes are copied whole and nothing goes through stdio.
 */
#include "base/json.h"

#include <string.h>

#include "base/digits.h"

/* Room for `n` more bytes, or NULL and `full` from then on. */
static char *json_room(struct json *j, size_t n)
{
	char *at = j->buf + j->len;

	if (j->full || n > j->cap - j->len) {
		j->full = true;
		return NULL;
	}
	j->len += n;
	return at;
}

static void json_put(struct json *j, const void *p, size_t n)
{
	char *at = json_room(j, n);

	if (at)
		memcpy(at, p, n);
}

/* `,"key":` with the first byte of the value; the keys are literals of this program and need no escaping. */
static void json_key(struct json *j, const char *key, char first)
{
	size_t len = strlen(key);
	bool comma = !j->full && j->buf[j->len - 1] != '{';
	char *at = json_room(j, len + 3 + comma + (first != '\0'));

	if (!at)
		return;
	if (comma)
		*at++ = ',';
	*at++ = '"';
	memcpy(at, key, len);
	at += len;
	*at++ = '"';
	*at++ = ':';
	if (first)
		*at = first;
}

static bool is_plain(uint8_t c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void json_escape(struct json *j, uint8_t c)
{
	static const char hex[] = "0123456789abcdef";
	char out[] = { '\\', '\\', 'x', hex[c >> 4], hex[c & 15] };

	if (c == '"')
		json_put(j, "\\\"", 2);
	else if (c == '\\')
		json_put(j, "\\\\\\\\", 4);
	else
		json_put(j, out, sizeof(out));
}

void json_begin(struct json *j, char *buf, size_t cap)
{
	*j = (struct json){ .buf = buf, .cap = cap };
	json_put(j, "{", 1);
}

void json_open(struct json *j, const char *key)
{
	json_key(j, key, '{');
}

void json_close(struct json *j)
{
	json_put(j, "}", 1);
}

/* Writes `\\+N` as it stands inside a string. */
static void json_cut_mark(struct json *j, size_t n)
{
	char cut[3 + DIGITS_MAX] = "\\\\+";

	json_put(j, cut, (size_t)(digits_put(cut + 3, n) - cut));
}

/* The inside of a string and its closing quote. */
static void json_string(struct json *j, const uint8_t *in, size_t len, size_t max)
{
	size_t shown = len < max ? len : max;
	size_t i = 0;

	while (i < shown && !j->full) {
		size_t run = i;

		while (run < shown && is_plain(in[run]))
			run++;
		if (run > i)
			json_put(j, in + i, run - i);
		i = run;
		if (i < shown)
			json_escape(j, in[i++]);
	}
	if (shown < len)
		json_cut_mark(j, len - shown);
	json_put(j, "\"", 1);
}

void json_bytes(struct json *j, const char *key, const void *p, size_t len, size_t max)
{
	json_key(j, key, '"');
	json_string(j, p, len, max);
}

void json_texts(struct json *j, const char *key, char *const *texts, size_t max_items, size_t max)
{
	size_t n = 0, shown;

	json_key(j, key, '[');
	for (; n < max_items && max && texts[n]; n++) {
		size_t len = strlen(texts[n]);

		json_put(j, n ? ",\"" : "\"", n ? 2 : 1);
		json_string(j, (const uint8_t *)texts[n], len, max);
		max -= len < max ? len : max;
	}
	shown = n;
	while (texts[n])
		n++;
	if (shown < n) {
		json_put(j, shown ? ",\"" : "\"", shown ? 2 : 1);
		json_cut_mark(j, n - shown);
		json_put(j, "\"", 1);
	}
	json_put(j, "]", 1);
}

void json_text(struct json *j, const char *key, const char *text)
{
	if (text)
		json_bytes(j, key, text, strlen(text), SIZE_MAX);
}

void json_word(struct json *j, const char *key, const char *word)
{
	if (!word)
		return;
	json_key(j, key, '"');
	json_put(j, word, strlen(word));
	json_put(j, "\"", 1);
}

void json_u64(struct json *j, const char *key, uint64_t v)
{
	char digits[DIGITS_MAX];

	json_key(j, key, '\0');
	json_put(j, digits, (size_t)(digits_put(digits, v) - digits));
}

void json_bool(struct json *j, const char *key, bool v)
{
	json_key(j, key, '\0');
	json_put(j, v ? "true" : "false", v ? 4 : 5);
}

void json_addr(struct json *j, const char *key, const struct addr *a)
{
	char text[ADDR_STRLEN];

	if (a->family != ADDR_NONE)
		json_word(j, key, addr_format(a, text));
}

void json_endpoint(struct json *j, const char *key, const struct endpoint *e)
{
	char text[ENDPOINT_STRLEN];

	if (e->addr.family != ADDR_NONE)
		json_word(j, key, endpoint_format(e, text));
}

size_t json_end(struct json *j)
{
	json_put(j, "}\n", 2);
	return j->full ? 0 : j->len;
}
