/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DHCPv4 (RFC 2131, RFC 2132) for a server that has one lease to give, to one
 * client. Pure: a message in, what it asks for, a message out.
 */
#ifndef PROXY_WIRE_DHCP_H
#define PROXY_WIRE_DHCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/wire/parse.h"

#define DHCP_MESSAGE_MAX   1472 /* what a frame has room for; a longer one is BAD */
#define DHCP_REPLY_MAX	   576
#define DHCP_MAC	   6
#define DHCP_CLIENT_ID_MAX 255

enum dhcp_type {
	DHCP_NONE,
	DHCP_DISCOVER,
	DHCP_OFFER,
	DHCP_REQUEST,
	DHCP_DECLINE,
	DHCP_ACK,
	DHCP_NAK,
	DHCP_RELEASE,
	DHCP_INFORM
};

/* A client's message. Addresses are numbers in host order; 0: not given. */
struct dhcp_message {
	enum dhcp_type type;
	uint32_t xid;
	bool broadcast; /* the client can't receive unicast yet (RFC 2131 §4.1) */
	uint8_t mac[DHCP_MAC];
	uint32_t ciaddr;
	uint32_t requested;	  /* option 50 */
	uint32_t server;	  /* option 54 */
	const uint8_t *client_id; /* option 61, to be sent back (RFC 6842); borrowed, NULL: none */
	size_t client_id_len;
};

/* What there is to give. */
struct dhcp_lease {
	uint32_t addr, mask;
	uint32_t gateway; /* this server, the router and the name server */
	uint32_t seconds;
	uint16_t mtu;
};

/*
 * Reads a client's message, without IP and UDP headers: Ethernet, not relayed, the type and each option
 * that is read here at most once, none of them hidden in other fields (option 52), an end option. PARSE_OK or PARSE_BAD.
 */
enum parse dhcp_parse(const uint8_t *p, size_t len, struct dhcp_message *m);

/*
 * What the server says to it (RFC 2131 §4.3): OFFER, ACK, NAK; or NONE, for what
 * has no answer (DECLINE, RELEASE), is for another server, or makes no sense.
 */
enum dhcp_type dhcp_decide(const struct dhcp_message *m, const struct dhcp_lease *lease);

/* Writes the reply of type `type` to `m`. Returns its length; 0 when it does not fit into `cap` bytes (DHCP_REPLY_MAX is enough). */
size_t dhcp_write(const struct dhcp_message *m, enum dhcp_type type, const struct dhcp_lease *lease, uint8_t *out,
		  size_t cap);

#endif
