/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1 bodies, framed by counting (RFC 9112 §6, §7.1).
 *
 * The chunked decoder is a machine over single bytes that keeps no text: it
 * can be cut anywhere. Only a chunk's data is counted off as a whole. A name
 * in the trailer section is compared as it passes.
 */
#include <string.h>

#include "base/reader.h"
#include "proxy/wire/http1.h"
#include "proxy/wire/http1_text.h"

#define SIZE_DIGITS_MAX 16

enum state {
	CHUNK_SIZE,
	CHUNK_EXT,
	CHUNK_LINE_LF,
	CHUNK_DATA, /* b->left is above 0 */
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	TRAILER_START,
	TRAILER_NAME,
	TRAILER_VALUE,
	TRAILER_LF,
	LAST_LF,
	BROKEN
};

static const char *const forbidden[] = { "host", "content-length", "transfer-encoding" };
#define N_FORBIDDEN	(sizeof(forbidden) / sizeof(forbidden[0]))
#define EVERY_FORBIDDEN ((1U << N_FORBIDDEN) - 1)

void http1_body_begin(struct http1_body *b, const struct http1_head *head)
{
	*b = (struct http1_body){ .kind = head->body };
	switch (head->body) {
	case HTTP1_BODY_NONE:
		b->done = true;
		break;
	case HTTP1_BODY_LENGTH:
		b->left = head->body_len;
		b->done = b->left == 0;
		break;
	case HTTP1_BODY_CHUNKED:
		b->state = CHUNK_SIZE;
		break;
	case HTTP1_BODY_UNTIL_CLOSE:
		b->left = UINT64_MAX;
		break;
	}
}

void http1_body_skip(struct http1_body *b, uint64_t n)
{
	if (b->kind == HTTP1_BODY_UNTIL_CLOSE)
		return;
	b->left -= n < b->left ? n : b->left;
	if (b->left > 0)
		return;
	if (b->kind == HTTP1_BODY_LENGTH)
		b->done = true;
	else if (b->state == CHUNK_DATA)
		b->state = CHUNK_DATA_CR;
}

static int hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = http1_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* b->size holds the size as far as it was read, b->line_len the number of its digits. */
static enum state chunk_size(struct http1_body *b, uint8_t c)
{
	int digit = hex_digit(c);

	if (digit >= 0) {
		if (b->line_len == SIZE_DIGITS_MAX || b->size > (uint64_t)INT64_MAX >> 4)
			return BROKEN;
		b->size = b->size << 4 | (uint64_t)digit;
		b->line_len++;
		return CHUNK_SIZE;
	}
	if (b->line_len == 0)
		return BROKEN;
	b->line_len = 0;
	return c == ';' ? CHUNK_EXT : c == '\r' ? CHUNK_LINE_LF : BROKEN;
}

/* The end of a chunk's first line: its data begins, or the trailer section. */
static enum state chunk_begin(struct http1_body *b, uint8_t c)
{
	b->left = b->size;
	b->size = 0;
	b->line_len = 0;
	return c != '\n' ? BROKEN : b->left > 0 ? CHUNK_DATA : TRAILER_START;
}

static enum state chunk_ext(struct http1_body *b, uint8_t c)
{
	if (c == '\r')
		return CHUNK_LINE_LF;
	if ((c < ' ' && c != '\t') || c >= 0x7f || ++b->line_len >= HTTP1_CHUNK_EXT_MAX)
		return BROKEN;
	return CHUNK_EXT;
}

/* Drops the forbidden names of which byte `c` is not the next one; at ':' (0), those that are longer. */
static void match_name(struct http1_body *b, uint8_t c)
{
	for (unsigned i = 0; i < N_FORBIDDEN; i++) {
		if ((b->match & 1U << i) && (uint8_t)forbidden[i][b->line_len] != c)
			b->match &= (uint8_t) ~(1U << i);
	}
}

static enum state trailer_name(struct http1_body *b, uint8_t c)
{
	if (c == ':') {
		match_name(b, '\0');
		return b->line_len == 0 || b->match ? BROKEN : TRAILER_VALUE;
	}
	if (!(http1_byte_class[c] & HTTP1_BYTE_TOKEN))
		return BROKEN;
	match_name(b, http1_lower(c));
	b->line_len++;
	return TRAILER_NAME;
}

static enum state trailer_value(uint8_t c)
{
	if (c == '\r')
		return TRAILER_LF;
	return http1_span_value(&c, 1) == 1 ? TRAILER_VALUE : BROKEN;
}

static enum state trailer_start(struct http1_body *b, uint8_t c)
{
	if (c == '\r')
		return LAST_LF;
	b->line_len = 0;
	b->match = EVERY_FORBIDDEN;
	return trailer_name(b, c);
}

/* The empty line at the end is not one. */
static bool in_trailer_line(const struct http1_body *b, uint8_t c)
{
	return b->state == TRAILER_START ? c != '\r' : b->state > TRAILER_START && b->state <= TRAILER_LF;
}

/* The state behind byte `c`, which is not a chunk's data. */
static enum state step(struct http1_body *b, uint8_t c)
{
	if (in_trailer_line(b, c) && ++b->trailer_len > HTTP1_TRAILER_MAX)
		return BROKEN;
	switch ((enum state)b->state) {
	case CHUNK_SIZE:
		return chunk_size(b, c);
	case CHUNK_EXT:
		return chunk_ext(b, c);
	case CHUNK_LINE_LF:
		return chunk_begin(b, c);
	case CHUNK_DATA_CR:
		return c == '\r' ? CHUNK_DATA_LF : BROKEN;
	case CHUNK_DATA_LF:
		return c == '\n' ? CHUNK_SIZE : BROKEN;
	case TRAILER_START:
		return trailer_start(b, c);
	case TRAILER_NAME:
		return trailer_name(b, c);
	case TRAILER_VALUE:
		return trailer_value(c);
	case TRAILER_LF:
		return c == '\n' ? TRAILER_START : BROKEN;
	case LAST_LF:
		b->done = c == '\n';
		return BROKEN; /* nothing may follow */
	case CHUNK_DATA:
	case BROKEN:
		break;
	}
	return BROKEN;
}

static enum parse feed_chunked(struct http1_body *b, struct reader *r)
{
	while (!b->done && r->left > 0) {
		if (b->state == CHUNK_DATA) {
			size_t n = r->left < b->left ? r->left : (size_t)b->left;

			reader_take(r, n);
			http1_body_skip(b, n);
			continue;
		}
		b->state = (uint8_t)step(b, reader_u8(r));
		if (b->state == BROKEN && !b->done)
			return PARSE_BAD;
	}
	return b->done ? PARSE_OK : PARSE_MORE;
}

enum parse http1_body_feed(struct http1_body *b, const uint8_t *p, size_t len, size_t *taken)
{
	struct reader r = reader_over(p, len);
	enum parse got = PARSE_MORE;

	*taken = 0;
	if (b->done)
		return PARSE_OK;
	if (b->kind == HTTP1_BODY_CHUNKED) {
		if (b->state == BROKEN)
			return PARSE_BAD;
		got = feed_chunked(b, &r);
		*taken = len - r.left;
		return got;
	}
	*taken = len < b->left ? len : (size_t)b->left;
	http1_body_skip(b, *taken);
	return b->done ? PARSE_OK : PARSE_MORE;
}
