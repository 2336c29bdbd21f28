/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The authority of a request (RFC 9112 §3.2). Target and Host must name one
 * host: which of two the server behind would believe can't be known here.
 */
#include "proxy/wire/http1_host.h"

#include <string.h>

#include "base/addr.h"
#include "base/digits.h"
#include "proxy/wire/http1_text.h"

#define HTTP_PORT 80

struct authority {
	struct http1_text host;
	bool has_port;
	uint16_t port;
};

/* Brackets are for IPv6 addresses only; no zone id, no IPvFuture (RFC 3986 §3.2.2). Returns its length or 0. */
static size_t span_literal(struct http1_text t)
{
	const char *end = memchr(t.p, ']', t.len);
	struct addr a;

	if (!end || addr_parse(t.p + 1, (size_t)(end - t.p) - 1, &a) || a.family != ADDR_V6)
		return 0;
	return (size_t)(end - t.p) + 1;
}

static bool parse_authority(struct http1_text t, struct authority *a)
{
	uint32_t port = 0;
	size_t n;

	*a = (struct authority){ 0 };
	if (t.len == 0)
		return false;
	n = t.p[0] == '[' ? span_literal(t) : http1_span((const uint8_t *)t.p, t.len, HTTP1_BYTE_REG_NAME);
	if (n == 0)
		return false;
	a->host = (struct http1_text){ t.p, n };
	if (n == t.len)
		return true;
	if (t.p[n] != ':' || digits_parse(t.p + n + 1, t.len - n - 1, UINT16_MAX, &port) || port == 0)
		return false;
	a->has_port = true;
	a->port = (uint16_t)port;
	return true;
}

/* Absolute-form: "http://" authority, then what origin-form would carry. */
static enum http1_error parse_absolute(struct http1_head *head, struct authority *a)
{
	static const char scheme[] = "http://";
	const size_t skip = sizeof(scheme) - 1;
	struct http1_text t = head->target;
	size_t n = skip;

	if (t.len < skip || !http1_text_is((struct http1_text){ t.p, skip }, scheme))
		return HTTP1_ERROR_SYNTAX;
	while (n < t.len && t.p[n] != '/' && t.p[n] != '?')
		n++;
	head->path = (struct http1_text){ t.p + n, t.len - n };
	if (!parse_authority((struct http1_text){ t.p + skip, n - skip }, a))
		return HTTP1_ERROR_HOST;
	return HTTP1_ERROR_NONE;
}

/* The four forms of RFC 9112 §3.2. `a->host` stays empty where the target names none. */
static enum http1_error parse_target(struct http1_head *head, bool connect, struct authority *a)
{
	*a = (struct authority){ 0 };
	head->path = (struct http1_text){ head->target.p + head->target.len, 0 };
	if (connect)
		return parse_authority(head->target, a) && a->has_port ? HTTP1_ERROR_NONE : HTTP1_ERROR_HOST;
	if (head->target.p[0] != '/' && !http1_text_exactly(head->target, "*"))
		return parse_absolute(head, a);
	head->path = head->target;
	if (head->target.p[0] == '*' && !http1_text_exactly(head->method, "OPTIONS"))
		return HTTP1_ERROR_SYNTAX;
	return HTTP1_ERROR_NONE;
}

static bool agree(const struct authority *target, const struct authority *field, bool connect)
{
	uint16_t target_port = target->has_port ? target->port : HTTP_PORT;
	uint16_t field_port = field->has_port ? field->port : HTTP_PORT;

	if (!http1_text_same(target->host, field->host))
		return false;
	return target_port == field_port || (connect && !field->has_port);
}

static void set_host(struct http1_head *head, const struct authority *a)
{
	head->host = a->host;
	head->has_host = true;
	head->has_port = a->has_port;
	head->port = a->port;
}

enum http1_error http1_host_find(struct http1_head *head, const struct http1_field *field)
{
	bool connect = http1_text_exactly(head->method, "CONNECT");
	struct authority target, host;
	enum http1_error error = parse_target(head, connect, &target);

	if (error)
		return error;
	if (target.host.len > 0)
		set_host(head, &target);
	if (!field)
		return head->minor == 0 || connect ? HTTP1_ERROR_NONE : HTTP1_ERROR_HOST;
	if (!http1_field_is_tight(field) || !parse_authority(field->value, &host))
		return HTTP1_ERROR_HOST;
	if (target.host.len == 0)
		set_host(head, &host);
	else if (!agree(&target, &host, connect))
		return HTTP1_ERROR_HOST;
	return HTTP1_ERROR_NONE;
}

bool http1_field_is_tight(const struct http1_field *f)
{
	const char *p = f->name.p + f->name.len + 1;

	while (p < f->value.p && *p == ' ')
		p++;
	return p == f->value.p && f->value.p + f->value.len + 2 == f->line.p + f->line.len;
}
