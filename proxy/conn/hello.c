/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HELLO: reads the client's first bytes until they say which host is meant,
 * has that judged, and starts what follows.
 *
 * The same look is taken at the first bytes of a connection that was dialled
 * for its destination alone (TUNNEL with `peek`): see tunnel.c.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "proxy/conn/conn.h"
#include "proxy/conn/hello.h"
#include "proxy/conn/quiet.h"
#include "proxy/conn/retry.h"
#include "proxy/wire/request_line.h"
#include "proxy/wire/sniff.h"
#include "proxy/wire/tls_hello.h"

#define HELLO_READ 16384

enum hello hello_look(struct conn *c, struct hello_seen *out)
{
	const uint8_t *p = bytes_data(&c->in);
	size_t len = bytes_len(&c->in);
	enum parse parsed;

	out->has_sni = false;
	out->seen = (struct conn_seen){ .proto = PROTO_ANY };
	switch (sniff(p, len)) {
	case SNIFF_MORE:
		return HELLO_MORE;
	case SNIFF_OTHER:
		return HELLO_OTHER;
	case SNIFF_HTTP2:
		out->seen.proto = PROTO_HTTP;
		return HELLO_HTTP2;
	case SNIFF_HTTP1:
		out->seen.proto = PROTO_HTTP;
		return HELLO_HTTP;
	case SNIFF_TLS:
		break;
	}
	out->seen.proto = PROTO_TLS;
	parsed = tls_hello_parse(p, len, c->env->scratch, &out->tls);
	if (parsed == PARSE_MORE)
		return HELLO_MORE;
	if (parsed == PARSE_BAD)
		return HELLO_TLS_BAD;
	out->seen.len = out->tls.len;
	out->seen.ech = out->tls.ech;
	out->seen.alpn = out->tls.alpn[0] ? out->tls.alpn : NULL;
	if (!out->tls.has_sni)
		return HELLO_TLS;
	if (name_canonical(out->tls.sni, out->tls.sni_len, &out->sni) < 0) {
		out->seen.raw_name = out->tls.sni;
		out->seen.raw_name_len = out->tls.sni_len;
		return HELLO_TLS_BAD_NAME;
	}
	out->has_sni = true;
	out->seen.sni = &out->sni;
	return HELLO_TLS;
}

static enum step refuse(struct conn *c, const struct conn_seen *seen, enum reason reason)
{
	const struct verdict v = conn_refuse(c, seen, reason);

	return conn_deny(c, &v, seen);
}

static enum step decide_and_dial(struct conn *c, const struct hello_seen *hello)
{
	const struct verdict v = conn_decide(c, &hello->seen);

	if (!v.allow)
		return conn_deny(c, &v, &hello->seen);
	if (hello->seen.proto == PROTO_TLS && !retry_watch(c, hello))
		return STEP_CLOSE;
	return conn_dial(c, &v);
}

/* No hello in time. In audit mode, a silent connection is judged by its destination alone. */
static enum step out_of_time(struct conn *c)
{
	const struct conn_seen nothing = { .proto = PROTO_ANY };
	struct verdict v;

	if (bytes_len(&c->in) > 0 || c->dst.port == 443 || c->dst.port == 80)
		return refuse(c, &nothing, REASON_HELLO_TIMEOUT);
	v = conn_decide(c, &nothing);
	if (!v.allow)
		return STEP_CLOSE;
	c->peek = !v.any_bytes;
	return conn_dial(c, &v);
}

enum step hello_step(struct conn *c)
{
	ssize_t n = quiet_recv(&c->client_quiet, &c->in, c->client_fd, HELLO_READ, TLS_HELLO_MAX);
	const struct conn_seen nothing = { .proto = PROTO_ANY };
	struct hello_seen hello;

	if (n == -EAGAIN)
		return clock_mono_us() >= c->deadline_us ? out_of_time(c) : STEP_WAIT;
	if (n <= 0) {
		(void)conn_refuse(c, &nothing, REASON_CLIENT_GONE);
		return STEP_CLOSE;
	}
	/* Only who is silent in audit mode has less time than that. */
	c->deadline_us = c->accepted_us + (uint64_t)CONN_HELLO_S * US_PER_S;
	switch (hello_look(c, &hello)) {
	case HELLO_MORE:
		return clock_mono_us() >= c->deadline_us ? out_of_time(c) : STEP_WAIT;
	case HELLO_TLS:
	case HELLO_OTHER:
		return decide_and_dial(c, &hello);
	case HELLO_TLS_BAD:
		return refuse(c, &hello.seen, REASON_TLS_MALFORMED);
	case HELLO_TLS_BAD_NAME:
		return refuse(c, &hello.seen, REASON_BAD_NAME);
	case HELLO_HTTP2:
		return refuse(c, &hello.seen, REASON_UPGRADE);
	case HELLO_HTTP:
		return http_begin(c);
	}
	return STEP_CLOSE;
}
