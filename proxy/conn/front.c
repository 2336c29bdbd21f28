/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FRONT: clients that are told of a proxy speak to the gate's own address.
 *
 * One port serves both protocols: SOCKS5 begins with a 5, SOCKS4 (refused)
 * with a 4, everything else is HTTP or wrong. What is asked for by CONNECT or
 * SOCKS5 is judged and dialled before it is answered, so that the answer is
 * the truth. Then the connection is a tunnel like one that was dialled for
 * its destination: what the client sends first is judged (tunnel.c), and must name the same host.
 *
 * A client that asks for an address of the gate itself gets no further than
 * one that connects to it: no rule has it, and the guard refuses it.
 */
#include "proxy/conn/front.h"
#include "proxy/conn/quiet.h"

#include <errno.h>

#include "base/clock.h"
#include "base/handoff.h"
#include "proxy/dns/dns_map.h"
#include "proxy/wire/sniff.h"
#include "proxy/wire/socks5.h"
#include "rules/match.h"

#define FRONT_READ     16384
#define FRONT_HELD_MAX 16384 /* bytes of a client's first flight; all messages that are read here are shorter */
#define SOCKS4_VERSION 4

bool front_is_door(const struct conn_env *env, const struct endpoint *local)
{
	return (local->port == GATE_PROXY_PORT || local->port == GATE_SOCKS_PORT) &&
	       (addr_equal(&local->addr, &env->gate4) || addr_equal(&local->addr, &env->gate6));
}

void front_reset(struct conn *c)
{
	c->door = DOOR_HTTP;
	c->dst = c->local;
	c->dns_name = NULL;
	c->asked.len = 0;
}

void front_begin(struct conn *c)
{
	c->state = CONN_FRONT;
	front_reset(c);
	conn_deadline(c, (uint64_t)CONN_HELLO_S * US_PER_S);
}

enum reason front_addr(struct conn *c, const struct addr *addr, uint16_t port)
{
	c->dst = (struct endpoint){ *addr, port };
	c->dns_name = dns_map_name(c->env->map, addr);
	if (port == 0)
		return REASON_PORT_NOT_ALLOWED;
	return !c->dns_name && dns_map_covers(addr) ? REASON_NO_NAME : REASON_NONE;
}

enum reason front_name(struct conn *c, const char *text, size_t len, uint16_t port, struct name *out,
		       struct conn_seen *seen)
{
	struct addr addr;

	out->len = 0;
	if (addr_parse(text, len, &addr) == 0)
		return front_addr(c, &addr, port);
	c->dst = (struct endpoint){ .port = port };
	c->dns_name = NULL;
	if (name_canonical(text, len, out) < 0) {
		seen->raw_name = text;
		seen->raw_name_len = len;
		return REASON_BAD_NAME;
	}
	return port == 0 ? REASON_PORT_NOT_ALLOWED : REASON_NONE;
}

enum step front_dial(struct conn *c)
{
	const struct conn_seen seen = { .proto = c->dst.port == 443  ? PROTO_TLS
						 : c->dst.port == 80 ? PROTO_HTTP
								     : PROTO_ANY };
	const struct verdict v = conn_decide(c, &seen);

	if (!v.allow)
		return conn_deny(c, &v, &seen);
	c->peek = !v.any_bytes;
	return conn_dial(c, &v);
}

enum step front_established(struct conn *c)
{
	static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	const size_t len = sizeof(established) - 1;

	c->unanswered = false;
	if (c->door == DOOR_SOCKS5)
		return socks_established(c);
	return bytes_append(&c->down.head, established, len, len) < 0 ? STEP_CLOSE : STEP_WAIT;
}

/* What kind of client it is. STEP_WAIT: not known yet. */
static enum step look(struct conn *c)
{
	const struct conn_seen seen = { .proto = PROTO_HTTP };
	const uint8_t *p = bytes_data(&c->in);
	struct verdict v;

	if (bytes_len(&c->in) == 0)
		return STEP_WAIT;
	if (c->greeted || p[0] == SOCKS5_VERSION || p[0] == SOCKS4_VERSION)
		return socks_step(c);
	switch (sniff(p, bytes_len(&c->in))) {
	case SNIFF_MORE:
		return STEP_WAIT;
	case SNIFF_HTTP2:
		v = conn_refuse(c, &seen, REASON_UPGRADE);
		return conn_deny(c, &v, &seen);
	default:
		return http_begin(c);
	}
}

enum step front_step(struct conn *c)
{
	const struct conn_seen nothing = { .proto = PROTO_ANY };
	uint64_t none = 0;
	enum step s;
	ssize_t n;

	if (flow_run(&c->down, c->env->pool, &none) == FLOW_TO_ERROR)
		return STEP_CLOSE;
	n = quiet_recv(&c->client_quiet, &c->in, c->client_fd, FRONT_READ, FRONT_HELD_MAX);
	s = look(c);
	/* What came before the end may be a whole request. */
	if (s == STEP_WAIT && c->state == CONN_FRONT && n <= 0 && n != -EAGAIN) {
		(void)conn_refuse(c, &nothing, REASON_CLIENT_GONE);
		return STEP_CLOSE;
	}
	if (s == STEP_WAIT && c->state == CONN_FRONT && clock_mono_us() >= c->deadline_us) {
		(void)conn_refuse(c, &nothing, REASON_HELLO_TIMEOUT);
		return STEP_CLOSE;
	}
	return s;
}
