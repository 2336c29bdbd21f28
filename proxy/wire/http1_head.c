/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1 heads: the start line and the field lines (RFC 9112 §2–§5). What the
 * fields mean is found in http1_frame.c and http1_host.c once all are there.
 *
 * A head is parsed from its first byte each time. What is wrong shows as soon
 * as the bytes are there, not at the end of the head.
 */
#include <string.h>

#include "base/reader.h"
#include "proxy/wire/http1.h"
#include "proxy/wire/http1_frame.h"
#include "proxy/wire/http1_host.h"
#include "proxy/wire/http1_text.h"

/* Exactly the bytes of `s`. */
static enum parse take_literal(struct reader *r, const char *s)
{
	for (; *s; s++) {
		if (r->left == 0)
			return PARSE_MORE;
		if (reader_u8(r) != (uint8_t)*s)
			return PARSE_BAD;
	}
	return PARSE_OK;
}

/* The next `n` bytes, which are there, as a text. */
static struct http1_text take_text(struct reader *r, size_t n)
{
	struct reader sub = reader_take(r, n);

	return (struct http1_text){ (const char *)sub.p, sub.left };
}

/* One byte or more of `class`, and the byte `stop` behind them. */
static enum parse take_word(struct reader *r, uint8_t class, uint8_t stop, struct http1_text *out)
{
	size_t n = http1_span(r->p, r->left, class);

	if (n == r->left)
		return PARSE_MORE;
	if (n == 0 || r->p[n] != stop)
		return PARSE_BAD;
	*out = take_text(r, n);
	reader_u8(r);
	return PARSE_OK;
}

/* "HTTP/1.0" or "HTTP/1.1" (RFC 9112 §2.3: case-sensitive). */
static enum parse take_version(struct reader *r, struct http1_head *head)
{
	enum parse got = take_literal(r, "HTTP/1.");

	if (got)
		return got;
	if (r->left == 0)
		return PARSE_MORE;
	head->minor = (unsigned)reader_u8(r) - '0';
	return head->minor <= 1 ? PARSE_OK : PARSE_BAD;
}

static enum parse take_request_line(struct reader *r, struct http1_head *head)
{
	enum parse got = PARSE_OK;

	if (r->left > 0 && r->p[0] == '\r')
		got = take_literal(r, "\r\n");
	if (!got)
		got = take_word(r, HTTP1_BYTE_TOKEN, ' ', &head->method);
	if (!got)
		got = take_word(r, HTTP1_BYTE_TARGET, ' ', &head->target);
	if (!got)
		got = take_version(r, head);
	return got ? got : take_literal(r, "\r\n");
}

/* RFC 9112 §4. Servers that have no reason phrase often leave out the space before it, too. */
static enum parse take_status_line(struct reader *r, struct http1_head *head)
{
	enum parse got = take_version(r, head);

	if (!got)
		got = take_literal(r, " ");
	if (got)
		return got;
	for (int i = 0; i < 3; i++) {
		unsigned digit;

		if (r->left == 0)
			return PARSE_MORE;
		digit = (unsigned)reader_u8(r) - '0';
		if (digit > 9 || (i == 0 && digit == 0))
			return PARSE_BAD;
		head->status = head->status * 10 + digit;
	}
	if (r->left > 0 && r->p[0] == ' ')
		take_text(r, http1_span_value(r->p, r->left));
	return take_literal(r, "\r\n");
}

/* A field line or the empty line (*end) that ends the head (RFC 9112 §5). */
static enum parse take_field(struct reader *r, struct http1_field *f, bool *end)
{
	struct reader line = *r;
	enum parse got;

	*end = r->left > 0 && r->p[0] == '\r';
	if (*end)
		return take_literal(r, "\r\n");
	got = take_word(r, HTTP1_BYTE_TOKEN, ':', &f->name);
	if (got)
		return got;
	f->value = http1_text_trim(take_text(r, http1_span_value(r->p, r->left)));
	got = take_literal(r, "\r\n");
	f->line = take_text(&line, (size_t)(r->p - line.p));
	return got;
}

static enum parse take_fields(struct reader *r, struct http1_head *head, enum http1_error *error)
{
	for (;;) {
		struct http1_field f;
		enum parse got;
		bool end;

		got = take_field(r, &f, &end);
		if (got || end)
			return got;
		if (head->n_fields == HTTP1_FIELDS_MAX) {
			*error = HTTP1_ERROR_TOO_LARGE;
			return PARSE_BAD;
		}
		head->fields[head->n_fields++] = f;
	}
}

typedef enum parse start_line_fn(struct reader *r, struct http1_head *head);

/* Everything up to the empty line, as syntax. On PARSE_BAD `*error` is set. */
static enum parse parse_lines(const uint8_t *p, size_t len, start_line_fn *start_line, struct http1_head *head,
			      enum http1_error *error)
{
	struct reader r = reader_over(p, len < HTTP1_HEAD_MAX ? len : HTTP1_HEAD_MAX);
	enum parse got;

	memset(head, 0, offsetof(struct http1_head, nominated));
	*error = HTTP1_ERROR_NONE;
	got = start_line(&r, head);
	if (!got)
		got = take_fields(&r, head, error);
	if (got == PARSE_MORE && len >= HTTP1_HEAD_MAX) {
		*error = HTTP1_ERROR_TOO_LARGE;
		got = PARSE_BAD;
	}
	if (got == PARSE_BAD && !*error)
		*error = HTTP1_ERROR_SYNTAX;
	head->len = (size_t)(r.p - p);
	return got;
}

enum parse http1_request(const uint8_t *p, size_t len, struct http1_head *head, enum http1_error *error)
{
	enum parse got = parse_lines(p, len, take_request_line, head, error);
	const struct http1_field *host;
	enum http1_error host_error;

	if (got)
		return got;
	*error = http1_frame_request(head, &host);
	host_error = http1_host_find(head, host);
	if (!*error)
		*error = host_error;
	return *error ? PARSE_BAD : PARSE_OK;
}

enum parse http1_response(const uint8_t *p, size_t len, struct http1_text request_method, struct http1_head *head,
			  enum http1_error *error)
{
	enum parse got = parse_lines(p, len, take_status_line, head, error);

	if (got)
		return got;
	*error = http1_frame_response(head, request_method);
	return *error ? PARSE_BAD : PARSE_OK;
}
