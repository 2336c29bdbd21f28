/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Framing and connection fields. Where a message ends must not depend on who
 * reads it: a request is refused for anything that another server might read
 * differently, also where the RFC lets a recipient repair it.
 */
#include "proxy/wire/http1_frame.h"

#include "proxy/wire/http1_host.h"
#include "proxy/wire/http1_text.h"

#define LENGTH_DIGITS_MAX 18

/* The fields that mean something here. */
struct meaning {
	bool request;
	const struct http1_field *host;
	const struct http1_field *length;
	const struct http1_field *coding;
	const struct http1_field *upgrade;
	bool option_close, option_keep_alive, option_upgrade;
};

static enum http1_error note_host(struct http1_head *head, struct meaning *m, const struct http1_field *f)
{
	(void)head;
	if (m->request && m->host)
		return HTTP1_ERROR_HOST;
	m->host = f;
	return HTTP1_ERROR_NONE;
}

static enum http1_error note_length(struct http1_head *head, struct meaning *m, const struct http1_field *f)
{
	struct http1_text v = f->value;
	uint64_t n = 0;

	if (v.len == 0 || v.len > LENGTH_DIGITS_MAX)
		return HTTP1_ERROR_FRAMING;
	for (size_t i = 0; i < v.len; i++) {
		if (v.p[i] < '0' || v.p[i] > '9')
			return HTTP1_ERROR_FRAMING;
		n = n * 10 + (uint64_t)(v.p[i] - '0');
	}
	if (m->request && (m->length || !http1_field_is_tight(f) || (v.p[0] == '0' && v.len > 1)))
		return HTTP1_ERROR_FRAMING;
	if (m->length && !http1_text_same(m->length->value, v))
		return HTTP1_ERROR_FRAMING;
	m->length = f;
	head->body_len = n;
	return HTTP1_ERROR_NONE;
}

static enum http1_error note_coding(struct http1_head *head, struct meaning *m, const struct http1_field *f)
{
	if (m->coding || head->minor == 0 || !http1_text_is(f->value, "chunked"))
		return HTTP1_ERROR_FRAMING;
	if (m->request && !http1_field_is_tight(f))
		return HTTP1_ERROR_FRAMING;
	m->coding = f;
	return HTTP1_ERROR_NONE;
}

static bool is_framing_name(struct http1_text name)
{
	return http1_text_is(name, "host") || http1_text_is(name, "content-length") ||
	       http1_text_is(name, "transfer-encoding");
}

static enum http1_error note_connection(struct http1_head *head, struct meaning *m, const struct http1_field *f)
{
	struct http1_text list = f->value, option;

	while (http1_list_next(&list, &option)) {
		if (http1_text_is(option, "close")) {
			m->option_close = true;
		} else if (http1_text_is(option, "keep-alive")) {
			m->option_keep_alive = true;
		} else if (http1_text_is(option, "upgrade")) {
			m->option_upgrade = true;
		} else if (http1_span((const uint8_t *)option.p, option.len, HTTP1_BYTE_TOKEN) < option.len) {
			if (m->request)
				return HTTP1_ERROR_SYNTAX;
		} else if (is_framing_name(option)) {
			if (m->request)
				return HTTP1_ERROR_FRAMING;
		} else if (head->n_nominated == HTTP1_NOMINATED_MAX) {
			return HTTP1_ERROR_TOO_LARGE;
		} else {
			head->nominated[head->n_nominated++] = option;
		}
	}
	return HTTP1_ERROR_NONE;
}

static enum http1_error note_upgrade(struct http1_head *head, struct meaning *m, const struct http1_field *f)
{
	if (m->upgrade)
		return m->request ? HTTP1_ERROR_SYNTAX : HTTP1_ERROR_NONE;
	m->upgrade = f;
	head->upgrade_to = f->value;
	return HTTP1_ERROR_NONE;
}

static enum http1_error note_expect(struct http1_head *head, struct meaning *m, const struct http1_field *f)
{
	if (m->request && head->minor > 0 && http1_text_is(f->value, "100-continue"))
		head->expect_continue = true;
	return HTTP1_ERROR_NONE;
}

/* Goes through all fields and returns the first error: a Host behind it is still wanted for the record. */
static enum http1_error note_fields(struct http1_head *head, struct meaning *m)
{
	static const struct {
		const char *name;
		enum http1_error (*note)(struct http1_head *head, struct meaning *m, const struct http1_field *f);
	} known[] = {
		[4] = { "host", note_host },
		[6] = { "expect", note_expect },
		[7] = { "upgrade", note_upgrade },
		[10] = { "connection", note_connection },
		[14] = { "content-length", note_length },
		[17] = { "transfer-encoding", note_coding },
	}; /* by the length of the name */
	enum http1_error first = HTTP1_ERROR_NONE;

	for (size_t i = 0; i < head->n_fields; i++) {
		const struct http1_field *f = &head->fields[i];
		size_t n = f->name.len;
		enum http1_error error;

		if (n >= sizeof(known) / sizeof(known[0]) || !known[n].name || !http1_text_is(f->name, known[n].name))
			continue;
		error = known[n].note(head, m, f);
		if (!first)
			first = error;
	}
	return first;
}

/* RFC 9112 §9.3; an Upgrade in HTTP/1.0 is to be ignored (RFC 9110 §7.8). */
static void conclude_connection(struct http1_head *head, const struct meaning *m)
{
	head->keep_alive = !m->option_close && (head->minor > 0 || m->option_keep_alive);
	head->upgrade = m->upgrade && m->option_upgrade && head->minor > 0;
}

enum http1_error http1_frame_request(struct http1_head *head, const struct http1_field **host)
{
	struct meaning m = { .request = true };
	enum http1_error error = note_fields(head, &m);

	*host = m.host;
	if (error)
		return error;
	if (m.length && m.coding)
		return HTTP1_ERROR_FRAMING;
	if (http1_text_exactly(head->method, "CONNECT")) {
		/* What follows belongs to the tunnel. Some clients send Content-Length: 0. */
		if (m.coding || head->body_len > 0)
			return HTTP1_ERROR_FRAMING;
		head->body = HTTP1_BODY_NONE;
	} else {
		head->body = m.coding ? HTTP1_BODY_CHUNKED : m.length ? HTTP1_BODY_LENGTH : HTTP1_BODY_NONE;
	}
	conclude_connection(head, &m);
	return HTTP1_ERROR_NONE;
}

/* RFC 9112 §6.3, rules 1 and 2. */
static bool never_has_body(const struct http1_head *head, struct http1_text request_method)
{
	if (head->status < 200 || head->status == 204 || head->status == 304)
		return true;
	if (http1_text_exactly(request_method, "HEAD"))
		return true;
	return head->status < 300 && http1_text_exactly(request_method, "CONNECT");
}

enum http1_error http1_frame_response(struct http1_head *head, struct http1_text request_method)
{
	struct meaning m = { .request = false };
	enum http1_error error = note_fields(head, &m);

	if (error)
		return error;
	if (m.length && m.coding)
		return HTTP1_ERROR_FRAMING;
	conclude_connection(head, &m);
	if (never_has_body(head, request_method)) {
		head->body = HTTP1_BODY_NONE;
	} else if (m.coding) {
		head->body = HTTP1_BODY_CHUNKED;
	} else if (m.length) {
		head->body = HTTP1_BODY_LENGTH;
	} else {
		head->body = HTTP1_BODY_UNTIL_CLOSE;
		head->keep_alive = false;
	}
	return HTTP1_ERROR_NONE;
}

bool http1_is_hop_by_hop(const struct http1_head *head, const struct http1_field *f)
{
	static const char proxy[] = "proxy-";
	const size_t n = sizeof(proxy) - 1;

	if (is_framing_name(f->name) || http1_text_is(f->name, "trailer") || http1_text_is(f->name, "upgrade"))
		return false;
	if (f->name.len > n && http1_text_is((struct http1_text){ f->name.p, n }, proxy))
		return true;
	if (http1_text_is(f->name, "connection") || http1_text_is(f->name, "keep-alive") ||
	    http1_text_is(f->name, "te"))
		return true;
	for (size_t i = 0; i < head->n_nominated; i++) {
		if (http1_text_same(head->nominated[i], f->name))
			return true;
	}
	return false;
}
