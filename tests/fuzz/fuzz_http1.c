/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1 heads and bodies. The first byte chooses what the rest is: a request,
 * or a response to one of some methods. What is found must not depend on how
 * much more is there, nor a body's end on how it is cut.
 * links: proxy/wire/http1_head.c proxy/wire/http1_host.c proxy/wire/http1_frame.c proxy/wire/http1_text.c
 * links: proxy/wire/http1_body.c base/addr.c
 */
#include <assert.h>
#include <string.h>

#include "proxy/wire/http1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const methods[] = { NULL, "GET", "HEAD", "CONNECT" }; /* NULL: the input is a request */

static enum parse parse(const char *method, const uint8_t *p, size_t len, struct http1_head *head)
{
	enum http1_error error;
	enum parse got;

	if (method)
		got = http1_response(p, len, (struct http1_text){ method, strlen(method) }, head, &error);
	else
		got = http1_request(p, len, head, &error);
	assert((got == PARSE_BAD) == (error != HTTP1_ERROR_NONE));
	return got;
}

static void check_text(struct http1_text t, const uint8_t *p, size_t len)
{
	const uint8_t *at = (const uint8_t *)t.p;

	assert(t.len == 0 || (at >= p && t.len <= len && (size_t)(at - p) <= len - t.len));
}

/* In an accepted head every line ends in CRLF, and the first empty line behind the start line is its end. */
static void check_lines(const uint8_t *p, size_t len)
{
	size_t skip = p[0] == '\r' ? 2 : 0;

	assert(len >= 4 && memcmp(p + len - 4, "\r\n\r\n", 4) == 0);
	assert(memmem(p + skip, len - skip, "\r\n\r\n", 4) == p + len - 4);
	for (size_t i = 0; i < len; i++) {
		assert(p[i] != '\n' || (i > 0 && p[i - 1] == '\r'));
		assert(p[i] != '\r' || p[i + 1] == '\n');
		assert((p[i] >= ' ' && p[i] != 0x7f) || p[i] == '\t' || p[i] == '\r' || p[i] == '\n');
	}
}

static void check_host(const struct http1_head *head)
{
	for (size_t i = 0; i < head->host.len; i++) {
		char c = head->host.p[i];

		assert(c > ' ' && c < 0x7f && !strchr("@%,/\\?#\"<>", c));
		assert(c != ':' || head->host.p[0] == '[');
	}
	assert(head->has_host == (head->host.len > 0));
	assert(head->has_port == (head->port > 0));
}

static void check_head(const struct http1_head *head, const uint8_t *p, size_t size)
{
	assert(head->len <= size && head->len <= HTTP1_HEAD_MAX);
	assert(head->minor <= 1 && head->n_fields <= HTTP1_FIELDS_MAX && head->n_nominated <= HTTP1_NOMINATED_MAX);
	check_lines(p, head->len);
	check_text(head->method, p, head->len);
	check_text(head->target, p, head->len);
	check_text(head->path, p, head->len);
	check_text(head->host, p, head->len);
	check_text(head->upgrade_to, p, head->len);
	for (size_t i = 0; i < head->n_fields; i++) {
		check_text(head->fields[i].line, p, head->len);
		check_text(head->fields[i].name, (const uint8_t *)head->fields[i].line.p, head->fields[i].line.len);
		check_text(head->fields[i].value, (const uint8_t *)head->fields[i].line.p, head->fields[i].line.len);
		http1_is_hop_by_hop(head, &head->fields[i]);
	}
	for (size_t i = 0; i < head->n_nominated; i++)
		check_text(head->nominated[i], p, head->len);
	check_host(head);
}

/* Feeds `p` in pieces of `size`, moving what may be moved unseen if `unseen`; says how much was the body's. */
static enum parse feed(const struct http1_head *head, const uint8_t *p, size_t len, size_t size, bool unseen,
		       size_t *total)
{
	struct http1_body b;
	enum parse got = PARSE_MORE;

	http1_body_begin(&b, head);
	*total = 0;
	while (got == PARSE_MORE && *total < len) {
		size_t left = len - *total, taken;

		if (unseen && b.left > 0) {
			taken = b.left < left ? (size_t)b.left : left;
			http1_body_skip(&b, taken);
			got = b.done ? PARSE_OK : PARSE_MORE;
		} else {
			left = left < size ? left : size;
			got = http1_body_feed(&b, p + *total, left, &taken);
			assert(taken <= left && (got != PARSE_MORE || taken == left));
		}
		*total += taken;
		assert(b.done == (got == PARSE_OK));
	}
	return got;
}

static void check_body(const struct http1_head *head, const uint8_t *p, size_t len)
{
	size_t whole, piece;
	enum parse got = feed(head, p, len, len, false, &whole);

	for (size_t size = 1; size < 8; size += 3) {
		for (int unseen = 0; unseen < 2; unseen++) {
			assert(feed(head, p, len, size, unseen, &piece) == got);
			assert(got == PARSE_BAD || piece == whole);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct http1_head head, part;
	const char *method;
	enum parse got, got_half;
	const uint8_t *p = data + 1;

	if (size == 0)
		return 0;
	size--;
	method = methods[data[0] % 4];
	got_half = parse(method, p, size / 2, &part);
	got = parse(method, p, size, &head);
	assert(got != PARSE_MORE || (got_half == PARSE_MORE && size < HTTP1_HEAD_MAX));
	assert(got_half == PARSE_MORE || got_half == got);
	if (got != PARSE_OK)
		return 0;
	check_head(&head, p, size);
	assert(parse(method, p, head.len, &part) == PARSE_OK);
	assert(part.len == head.len && part.n_fields == head.n_fields && part.body == head.body);
	assert(parse(method, p, head.len - 1, &part) == PARSE_MORE);
	check_body(&head, p + head.len, size - head.len);
	return 0;
}
