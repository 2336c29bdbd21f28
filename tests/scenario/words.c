/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "tests/scenario/words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tests/scenario/fail.h"
#include "tests/unit/hello_builder.h"

#define MADE_MAX (16 * 1024 * 1024)

static int hex(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	if (!at)
		fail("\\x needs two hex digits");
	return (int)(at - digits);
}

/* Decodes a quoted word that begins behind its quote; returns what lies behind the closing one. */
static char *unquote(char *from, struct word *out)
{
	char *to = from;

	*out = (struct word){ .quoted = true, .s = from };
	while (*from != '"') {
		if (*from == '\0')
			fail("a quote is not closed");
		if (*from != '\\') {
			*to++ = *from++;
			continue;
		}
		switch (from[1]) {
		case 'r':
			*to++ = '\r';
			break;
		case 'n':
			*to++ = '\n';
			break;
		case 't':
			*to++ = '\t';
			break;
		case 'x':
			*to++ = (char)(hex(from[2]) << 4 | hex(from[3]));
			from += 2;
			break;
		case '\\':
		case '"':
			*to++ = from[1];
			break;
		default:
			fail("\\%c means nothing", from[1]);
		}
		from += 2;
	}
	out->len = (size_t)(to - out->s);
	*to = '\0';
	return from + 1;
}

void words_split(char *line, struct words *out)
{
	static char none[1];

	out->n = 0;
	for (;;) {
		struct word *w = &out->at[out->n];

		while (isspace((unsigned char)*line))
			line++;
		*w = (struct word){ .s = none };
		if (*line == '\0' || *line == '#')
			return;
		if (out->n == WORDS_MAX)
			fail("more than %d words", WORDS_MAX);
		out->n++;
		if (*line == '"') {
			line = unquote(line + 1, w);
			continue;
		}
		w->s = line;
		while (*line && !isspace((unsigned char)*line))
			line++;
		w->len = (size_t)(line - w->s);
		if (*line)
			*line++ = '\0';
	}
}

static void put(struct bytes *out, const void *p, size_t n)
{
	if (bytes_append(out, p, n, MADE_MAX) < 0)
		fail("too many bytes");
}

static void put_tls(struct bytes *out, const char *name, bool ech)
{
	static struct hello_bytes message, stream;
	const struct hello_spec spec = { .sni = strcmp(name, "-") == 0 ? "" : name, .ech = ech };

	hello_build(&message, &spec);
	hello_split(&stream, &message, HELLO_RECORD_MAX, HELLO_RECORD_MAX);
	put(out, stream.b, stream.n);
}

static void put_socks(struct bytes *out, const char *name, uint64_t port)
{
	const uint8_t begin[] = { 5, 1, 0, 3, (uint8_t)strlen(name) };
	const uint8_t end[] = { (uint8_t)(port >> 8), (uint8_t)port };

	put(out, begin, sizeof(begin));
	put(out, name, strlen(name));
	put(out, end, sizeof(end));
}

static void put_pattern(struct bytes *out, uint64_t n)
{
	static const char abc[] = "abcdefghijklmnopqrstuvwxyz";

	for (; n >= sizeof(abc) - 1; n -= sizeof(abc) - 1)
		put(out, abc, sizeof(abc) - 1);
	put(out, abc, (size_t)n);
}

static void put_let(struct bytes *out, const struct lets *lets, const char *name)
{
	for (size_t i = 0; i < lets->n; i++) {
		const struct bytes *b = &lets->at[i].bytes;

		if (strcmp(lets->at[i].name, name) != 0)
			continue;
		put(out, bytes_data(b), bytes_len(b));
		return;
	}
	fail("nothing is called $%s", name);
}

size_t words_bytes(const struct words *w, size_t i, const struct lets *lets, struct bytes *out)
{
	for (; i < w->n; i++) {
		const struct word *word = &w->at[i];

		if (word->quoted) {
			put(out, word->s, word->len);
		} else if (strcmp(word->s, "then") == 0) {
			break;
		} else if (word->s[0] == '$') {
			put_let(out, lets, word->s + 1);
		} else if (strcmp(word->s, "tls") == 0) {
			bool ech = i + 2 < w->n && strcmp(w->at[i + 2].s, "ech") == 0;

			put_tls(out, w->at[++i].s, ech);
			i += ech;
		} else if (strcmp(word->s, "socks") == 0 && i + 2 < w->n) {
			put_socks(out, w->at[i + 1].s, words_number(w->at[i + 2].s));
			i += 2;
		} else if (strcmp(word->s, "bytes") == 0) {
			put_pattern(out, words_number(w->at[++i].s));
		} else {
			fail("\"%s\" stands for no bytes", word->s);
		}
	}
	return i;
}

struct bytes *lets_set(struct lets *lets, const char *name)
{
	size_t i = 0;

	while (i < lets->n && strcmp(lets->at[i].name, name) != 0)
		i++;
	if (i == LETS_MAX || strlen(name) >= sizeof(lets->at[0].name))
		fail("more than %d names, or a long one", LETS_MAX);
	if (i == lets->n)
		lets->n++;
	memcpy(lets->at[i].name, name, strlen(name) + 1);
	bytes_free(&lets->at[i].bytes);
	return &lets->at[i].bytes;
}

void lets_free(struct lets *lets)
{
	for (size_t i = 0; i < lets->n; i++)
		bytes_free(&lets->at[i].bytes);
	lets->n = 0;
}

uint64_t words_number(const char *text)
{
	char *end;
	uint64_t v = strtoull(text, &end, 10);

	if (end == text || *end)
		fail("\"%s\" is no number", text);
	return v;
}

uint64_t words_time(const char *text)
{
	static const struct {
		const char *unit;
		uint64_t us;
	} units[] = { { "us", 1 }, { "ms", 1000 }, { "s", 1000000 }, { "m", 60000000 }, { "h", 3600000000 } };
	char *end;
	uint64_t v = strtoull(text, &end, 10);

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (end != text && strcmp(end, units[i].unit) == 0)
			return v * units[i].us;
	fail("\"%s\" is no time", text);
}
