/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP at the explicit front door: what a request asks the proxy for, and what
 * of it goes on (RFC 9110 §7.6, RFC 9112 §3.2).
 *
 * A head is not passed on as it came: the target loses scheme and authority,
 * Host is written anew from the authority that was judged, and the fields that
 * are meant for the proxy end here. No Via is added: a sandbox's requests look the same through every door.
 */
#include <errno.h>
#include <string.h>

#include "proxy/conn/front.h"
#include "proxy/conn/http.h"

#define PROXY_HEAD_MAX (HTTP1_HEAD_MAX + 256) /* a head that grows by what is written anew */

static bool is_literal(struct http1_text t)
{
	return t.len > 2 && t.p[0] == '[';
}

static enum reason take_target(struct conn *c, const struct http1_head *head, uint16_t port, struct name *out,
			       struct conn_seen *seen)
{
	struct http1_text host = head->host;

	if (is_literal(host))
		host = (struct http1_text){ host.p + 1, host.len - 2 };
	return front_name(c, host.p, host.len, port, out, seen);
}

bool http_proxy_is_connect(const struct http1_head *head)
{
	return head->method.len == 7 && memcmp(head->method.p, "CONNECT", 7) == 0;
}

enum step http_proxy_connect(struct conn *c, const struct http1_head *head, struct conn_seen *seen)
{
	size_t len = head->len;
	struct verdict v;
	enum reason reason;

	conn_end_leg(c, CLOSE_CLIENT, false);
	c->door = DOOR_CONNECT;
	c->unanswered = true;
	reason = take_target(c, head, head->port, &c->asked, seen);
	if (reason != REASON_NONE) {
		v = conn_refuse(c, seen, reason);
		return conn_deny(c, &v, seen);
	}
	bytes_consume(&c->in, len);
	bytes_free(&c->up.head);
	http_free(c->http);
	c->http = NULL;
	return front_dial(c);
}

enum reason http_proxy_target(struct conn *c, const struct http1_head *head, struct name *host, struct conn_seen *seen)
{
	enum reason reason;

	if (head->target.p[0] == '/' || head->target.p[0] == '*')
		return REASON_HTTP_MALFORMED; /* for a server, not for a proxy */
	reason = take_target(c, head, head->has_port ? head->port : 80, host, seen);
	if (host->len > 0)
		seen->host = host;
	return reason;
}

/* ---- heads ---- */

struct writer {
	struct bytes *out;
	size_t max;
	int error;
};

static void put(struct writer *w, const void *p, size_t n)
{
	if (w->error == 0 && n > 0)
		w->error = bytes_append(w->out, p, n, w->max);
}

static void put_text(struct writer *w, const char *text)
{
	put(w, text, strlen(text));
}

/* The fields that go on. Host is written by the caller. */
static void put_fields(struct writer *w, const struct http1_head *head, bool upgrade)
{
	for (size_t i = 0; i < head->n_fields; i++) {
		const struct http1_field *f = &head->fields[i];

		if (http1_is_hop_by_hop(head, f) || http1_text_is(f->name, "host") ||
		    (!upgrade && http1_text_is(f->name, "upgrade")))
			continue;
		put(w, f->line.p, f->line.len);
	}
}

static void put_end(struct writer *w, bool upgrade, bool last)
{
	if (upgrade)
		put_text(w, "Connection: Upgrade\r\n");
	else if (last)
		put_text(w, "Connection: close\r\n");
	put_text(w, "\r\n");
}

/* RFC 9112 §3.2.1 and §3.2.4: no path is "/", but for OPTIONS "*". */
static void put_path(struct writer *w, const struct http1_head *head)
{
	bool options = head->method.len == 7 && memcmp(head->method.p, "OPTIONS", 7) == 0;

	if (head->path.len == 0)
		put_text(w, options ? "*" : "/");
	else if (head->path.p[0] == '?')
		put_text(w, "/");
	put(w, head->path.p, head->path.len);
}

int http_proxy_request(struct bytes *out, const struct http1_head *head)
{
	struct writer w = { .out = out, .max = PROXY_HEAD_MAX };

	put(&w, head->method.p, head->method.len);
	put_text(&w, " ");
	put_path(&w, head);
	put_text(&w, head->minor == 0 ? " HTTP/1.0\r\nHost: " : " HTTP/1.1\r\nHost: ");
	/* The authority as the client wrote it, from the host up to the path: some sign their Host. */
	put(&w, head->host.p, (size_t)(head->path.p - head->host.p));
	put_text(&w, "\r\n");
	put_fields(&w, head, head->upgrade);
	/* To a client of HTTP/1.0 no connection is kept (RFC 9112 §9.3). */
	put_end(&w, head->upgrade, !head->keep_alive || head->minor == 0);
	return w.error;
}

int http_proxy_response(struct bytes *out, const uint8_t *p, const struct http1_head *head, bool last)
{
	struct writer w = { .out = out, .max = HTTP1_HEAD_MAX * 2 };
	const char *fields = head->n_fields > 0 ? head->fields[0].line.p : (const char *)p + head->len - 2;
	bool upgrade = head->status == 101;

	put(&w, p, (size_t)(fields - (const char *)p));
	put_fields(&w, head, upgrade);
	put_end(&w, upgrade, last);
	return w.error;
}
