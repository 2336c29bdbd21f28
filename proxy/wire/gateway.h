/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ethernet frames in which a guest asks something of its gateway, below IP or
 * before it has an address: ARP (RFC 826), neighbour solicitations (RFC 4861)
 * and DHCP's UDP. Pure: a frame in, what it asks, a frame out.
 */
#ifndef PROXY_WIRE_GATEWAY_H
#define PROXY_WIRE_GATEWAY_H

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "proxy/wire/parse.h"

#define GATEWAY_MAC	  6
#define GATEWAY_HEADERS	  (14 + 20 + 8) /* of a frame with UDP over IPv4 */
#define GATEWAY_FRAME_MAX (14 + 1500)

enum gateway_kind { GATEWAY_ARP, GATEWAY_SOLICIT, GATEWAY_DHCP };

struct gateway_question {
	enum gateway_kind kind;
	uint8_t mac[GATEWAY_MAC]; /* who asks; in ARP both fields that say so agree */
	struct addr src;	  /* zero where there is none yet */
	struct addr dst;	  /* ARP: none */
	struct addr target;	  /* ARP, solicitation: whose MAC is asked for */
	const uint8_t *payload;	  /* DHCP; borrowed */
	size_t payload_len;
};

/* Who answers, and whom. */
struct gateway_answerer {
	uint8_t mac[GATEWAY_MAC];   /* the gateway's */
	uint8_t guest[GATEWAY_MAC]; /* whom alone it answers */
	struct addr v4, v6;	    /* the gateway's addresses */
};

/*
 * Reads a whole frame. PARSE_OK: a well-formed question of one of the kinds,
 * whoever asks. PARSE_BAD: anything else. Never PARSE_MORE.
 */
enum parse gateway_parse(const uint8_t *frame, size_t len, struct gateway_question *q);

/*
 * Writes the frame that answers an ARP request or a neighbour solicitation of
 * the guest for the gateway's own address. Returns its length; 0 where there is no answer: another
 * asker, another address, an address that is only being tried out (RFC 4862 §5.4).
 */
size_t gateway_answer(const struct gateway_answerer *a, const struct gateway_question *q, uint8_t *out, size_t cap);

/*
 * Writes a frame with a DHCP message from the gateway to `dst`, which the guest's MAC stands for unless it is the broadcast
 * address. `payload` may lie in `out` where it belongs, at GATEWAY_HEADERS. Returns its length; 0 when it does not fit.
 */
size_t gateway_dhcp(const struct gateway_answerer *a, const struct addr *dst, const uint8_t *payload,
		    size_t payload_len, uint8_t *out, size_t cap);

#endif
