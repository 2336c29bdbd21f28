/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. Options that a client may send and that change nothing here are stepped over. */
#include "proxy/wire/dhcp.h"

#include <string.h>

#include "base/reader.h"
#include "base/writer.h"

#define OP_REQUEST     1
#define OP_REPLY       2
#define HTYPE_ETHERNET 1
#define FLAG_BROADCAST 0x8000
#define COOKIE	       0x63825363 /* RFC 2131 §3 */
#define CHADDR_PADDING 10
#define SNAME_AND_FILE (64 + 128)
#define REPLY_MIN      300 /* as BOOTP had it (RFC 1542 §2.1): some clients take nothing shorter */

/* RFC 2132. */
enum option {
	OPTION_PAD = 0,
	OPTION_MASK = 1,
	OPTION_ROUTER = 3,
	OPTION_DNS = 6,
	OPTION_MTU = 26,
	OPTION_REQUESTED = 50,
	OPTION_SECONDS = 51,
	OPTION_OVERLOAD = 52,
	OPTION_TYPE = 53,
	OPTION_SERVER = 54,
	OPTION_CLIENT_ID = 61,
	OPTION_END = 255
};

/* A number of exactly `size` bytes that was not there before. */
static uint32_t take_once(struct reader *value, size_t size, bool *seen, bool *bad)
{
	uint32_t n = reader_uint(value, size);

	*bad |= *seen || !reader_done(value);
	*seen = true;
	return n;
}

struct seen {
	bool type, requested, server, client_id, bad;
};

static void take_option(struct dhcp_message *m, uint8_t code, struct reader value, struct seen *seen)
{
	switch (code) {
	case OPTION_TYPE:
		m->type = (enum dhcp_type)take_once(&value, 1, &seen->type, &seen->bad);
		break;
	case OPTION_REQUESTED:
		m->requested = take_once(&value, 4, &seen->requested, &seen->bad);
		break;
	case OPTION_SERVER:
		m->server = take_once(&value, 4, &seen->server, &seen->bad);
		break;
	case OPTION_CLIENT_ID:
		seen->bad |= seen->client_id || value.left < 2; /* RFC 2132 §9.14 */
		seen->client_id = true;
		m->client_id = value.p;
		m->client_id_len = value.left;
		break;
	case OPTION_OVERLOAD:
		seen->bad = true;
		break;
	default:
		break;
	}
}

/* Up to the end option; what is behind it is padding, and not read. */
static bool take_options(struct reader *r, struct dhcp_message *m)
{
	struct seen seen = { false };

	while (!r->bad && !seen.bad) {
		uint8_t code = reader_u8(r);

		if (r->bad)
			return false;
		if (code == OPTION_END)
			return m->type >= DHCP_DISCOVER && m->type <= DHCP_INFORM;
		if (code != OPTION_PAD)
			take_option(m, code, reader_take(r, reader_u8(r)), &seen);
	}
	return false;
}

static bool is_client_type(enum dhcp_type type)
{
	return type != DHCP_OFFER && type != DHCP_ACK && type != DHCP_NAK;
}

enum parse dhcp_parse(const uint8_t *p, size_t len, struct dhcp_message *m)
{
	struct reader r = reader_over(p, len), mac;
	bool good = len <= DHCP_MESSAGE_MAX;

	*m = (struct dhcp_message){ .type = DHCP_NONE };
	good &= reader_u8(&r) == OP_REQUEST;
	good &= reader_u8(&r) == HTYPE_ETHERNET;
	good &= reader_u8(&r) == DHCP_MAC;
	reader_u8(&r); /* hops */
	m->xid = reader_u32(&r);
	reader_u16(&r); /* seconds */
	m->broadcast = reader_u16(&r) & FLAG_BROADCAST;
	m->ciaddr = reader_u32(&r);
	reader_u32(&r);		     /* yiaddr */
	reader_u32(&r);		     /* siaddr */
	good &= reader_u32(&r) == 0; /* giaddr: relayed */
	mac = reader_take(&r, DHCP_MAC);
	memcpy(m->mac, mac.p, mac.left);
	reader_take(&r, CHADDR_PADDING);
	reader_take(&r, SNAME_AND_FILE);
	good &= reader_u32(&r) == COOKIE; /* and not cut before here: it would read as 0 */
	if (good && take_options(&r, m) && is_client_type(m->type))
		return PARSE_OK;
	*m = (struct dhcp_message){ .type = DHCP_NONE };
	return PARSE_BAD;
}

/* RFC 2131 §4.3.2: which of the four kinds of DHCPREQUEST it is shows in what is filled in. */
static enum dhcp_type decide_request(const struct dhcp_message *m, const struct dhcp_lease *lease)
{
	if (m->server) {
		if (m->server != lease->gateway || m->ciaddr || !m->requested)
			return DHCP_NONE;
		return m->requested == lease->addr ? DHCP_ACK : DHCP_NAK;
	}
	if (m->requested)
		return m->ciaddr ? DHCP_NONE : m->requested == lease->addr ? DHCP_ACK : DHCP_NAK;
	if (m->ciaddr)
		return m->ciaddr == lease->addr ? DHCP_ACK : DHCP_NAK;
	return DHCP_NONE;
}

enum dhcp_type dhcp_decide(const struct dhcp_message *m, const struct dhcp_lease *lease)
{
	switch (m->type) {
	case DHCP_DISCOVER:
		return DHCP_OFFER;
	case DHCP_REQUEST:
		return decide_request(m, lease);
	case DHCP_INFORM:
		return m->ciaddr == lease->addr ? DHCP_ACK : DHCP_NONE;
	default:
		return DHCP_NONE;
	}
}

static void put_option(struct writer *w, enum option code, size_t size, uint32_t value)
{
	writer_u8(w, code);
	writer_u8(w, (unsigned)size);
	if (size == 4)
		writer_u32(w, value);
	else if (size == 2)
		writer_u16(w, value);
	else
		writer_u8(w, value);
}

/* RFC 2131 §4.3.1, table 3: a NAK says no more than that. */
static void put_options(struct writer *w, const struct dhcp_message *m, enum dhcp_type type,
			const struct dhcp_lease *lease)
{
	put_option(w, OPTION_TYPE, 1, type);
	put_option(w, OPTION_SERVER, 4, lease->gateway);
	if (type != DHCP_NAK) {
		if (m->type != DHCP_INFORM)
			put_option(w, OPTION_SECONDS, 4, lease->seconds);
		put_option(w, OPTION_MASK, 4, lease->mask);
		put_option(w, OPTION_ROUTER, 4, lease->gateway);
		put_option(w, OPTION_DNS, 4, lease->gateway);
		put_option(w, OPTION_MTU, 2, lease->mtu);
	}
	if (m->client_id) {
		writer_u8(w, OPTION_CLIENT_ID);
		writer_u8(w, (unsigned)m->client_id_len);
		writer_put(w, m->client_id, m->client_id_len);
	}
	writer_u8(w, OPTION_END);
}

size_t dhcp_write(const struct dhcp_message *m, enum dhcp_type type, const struct dhcp_lease *lease, uint8_t *out,
		  size_t cap)
{
	struct writer w = { .p = out, .cap = cap };

	writer_u8(&w, OP_REPLY);
	writer_u8(&w, HTYPE_ETHERNET);
	writer_u8(&w, DHCP_MAC);
	writer_u8(&w, 0);
	writer_u32(&w, m->xid);
	writer_u16(&w, 0);
	writer_u16(&w, m->broadcast ? FLAG_BROADCAST : 0);
	writer_u32(&w, type == DHCP_ACK ? m->ciaddr : 0);
	writer_u32(&w, type == DHCP_NAK || m->type == DHCP_INFORM ? 0 : lease->addr);
	writer_u32(&w, 0); /* siaddr: there is nothing to boot from */
	writer_u32(&w, 0);
	writer_put(&w, m->mac, DHCP_MAC);
	writer_zero(&w, CHADDR_PADDING);
	writer_zero(&w, SNAME_AND_FILE);
	writer_u32(&w, COOKIE);
	put_options(&w, m, type, lease);
	if (w.len < REPLY_MIN)
		writer_zero(&w, REPLY_MIN - w.len);
	return w.full ? 0 : w.len;
}
