/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "proxy/guest/guest.h"

#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/handoff.h"
#include "proxy/audit/audit.h"
#include "proxy/wire/dhcp.h"
#include "proxy/wire/gateway.h"

#define SECOND_US 1000000u

struct guest {
	int fd;
	struct audit *audit;
	struct event *readable;
	struct gateway_answerer self;
	struct addr address, everybody, nobody; /* the guest's; 255.255.255.255; 0.0.0.0 */
	struct dhcp_lease lease;
	uint64_t taken;
	uint64_t second_us; /* when the present second of answers began */
	unsigned answers;   /* in it */
};

static uint32_t number(const struct addr *v4)
{
	return (uint32_t)v4->b[0] << 24 | (uint32_t)v4->b[1] << 16 | (uint32_t)v4->b[2] << 8 | v4->b[3];
}

static bool may_answer(struct guest *g)
{
	uint64_t now = clock_mono_us();

	if (now - g->second_us >= SECOND_US) {
		g->second_us = now;
		g->answers = 0;
	}
	return g->answers++ < GUEST_ANSWERS_S;
}

/* Where the reply goes: RFC 2131 §4.1, for a client on the same link. */
static const struct addr *reply_address(const struct guest *g, const struct dhcp_message *m, enum dhcp_type type)
{
	if (type == DHCP_NAK || (m->broadcast && !m->ciaddr))
		return &g->everybody;
	return &g->address;
}

/* What the rules of G count as DHCP. */
static bool is_between_us(const struct guest *g, const struct gateway_question *q)
{
	return (addr_equal(&q->src, &g->nobody) || addr_equal(&q->src, &g->address)) &&
	       (addr_equal(&q->dst, &g->everybody) || addr_equal(&q->dst, &g->self.v4));
}

/* Returns the length of the answer in `out`, or 0. */
static size_t answer_dhcp(struct guest *g, const struct gateway_question *q, uint8_t *out, size_t cap)
{
	uint8_t *payload = out + GATEWAY_HEADERS;
	struct dhcp_message m;
	enum dhcp_type type;
	size_t len;

	if (!is_between_us(g, q) || dhcp_parse(q->payload, q->payload_len, &m) != PARSE_OK ||
	    memcmp(m.mac, g->self.guest, GATEWAY_MAC) != 0)
		return 0;
	type = dhcp_decide(&m, &g->lease);
	if (type == DHCP_NONE) {
		g->taken += m.type == DHCP_RELEASE || m.type == DHCP_DECLINE;
		return 0;
	}
	if (!may_answer(g) || (type == DHCP_ACK && audit_lease(g->audit, &g->address)))
		return 0;
	g->taken++;
	len = dhcp_write(&m, type, &g->lease, payload, cap - GATEWAY_HEADERS);
	return len ? gateway_dhcp(&g->self, reply_address(g, &m, type), payload, len, out, cap) : 0;
}

static bool serve_one(struct guest *g)
{
	uint8_t frame[GATEWAY_FRAME_MAX + 1], out[GATEWAY_FRAME_MAX];
	struct gateway_question q;
	ssize_t n = recv(g->fd, frame, sizeof(frame), MSG_DONTWAIT | MSG_TRUNC);
	size_t len = 0;

	if (n < 0)
		return errno == EINTR;
	if ((size_t)n > sizeof(frame) || gateway_parse(frame, (size_t)n, &q) != PARSE_OK)
		return true;
	if (q.kind == GATEWAY_DHCP)
		len = answer_dhcp(g, &q, out, sizeof(out));
	else if (may_answer(g))
		len = gateway_answer(&g->self, &q, out, sizeof(out));
	/* An answer that can't be sent is lost like any frame: the guest asks again. */
	if (len)
		(void)send(g->fd, out, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	return true;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	for (int i = 0; i < GUEST_TURN && serve_one(arg); i++)
		;
}

struct guest *guest_new(struct event_base *base, int link_fd, struct audit *audit)
{
	static const uint8_t mac[GATEWAY_MAC] = { GATE_MAC_BYTES }, guest[GATEWAY_MAC] = { GATE_SANDBOX_MAC_BYTES };
	struct guest *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->fd = link_fd;
	g->audit = audit;
	memcpy(g->self.mac, mac, GATEWAY_MAC);
	memcpy(g->self.guest, guest, GATEWAY_MAC);
	(void)addr_parse(GATE_ADDR4, strlen(GATE_ADDR4), &g->self.v4);
	(void)addr_parse(GATE_ADDR6, strlen(GATE_ADDR6), &g->self.v6);
	(void)addr_parse(GATE_SANDBOX4, strlen(GATE_SANDBOX4), &g->address);
	g->everybody = addr_v4(0xffffffff);
	g->nobody = addr_v4(0);
	g->lease = (struct dhcp_lease){
		.addr = number(&g->address),
		.mask = ~0u << (32 - GATE_PLEN4),
		.gateway = number(&g->self.v4),
		.seconds = GUEST_LEASE_S,
		.mtu = GATE_MTU,
	};
	g->readable = event_new(base, link_fd, EV_READ | EV_PERSIST, on_readable, g);
	if (!g->readable || event_add(g->readable, NULL) < 0) {
		guest_free(g);
		errno = ENOMEM;
		return NULL;
	}
	return g;
}

void guest_free(struct guest *g)
{
	if (!g)
		return;
	if (g->readable)
		event_free(g->readable);
	free(g);
}

uint64_t guest_taken(const struct guest *g)
{
	return g->taken;
}
