/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DHCP messages: what is read lies in the input, a decision is one of four, and its reply is well-formed.
 * links: proxy/wire/dhcp.c
 */
#include <assert.h>
#include <string.h>

#include "proxy/wire/dhcp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every option of a reply lies in it, up to the end option. */
static void check_reply(const uint8_t *p, size_t len)
{
	size_t at = 240;

	while (p[at] != 255) {
		assert(at + 2u + p[at + 1] < len);
		at += 2u + p[at + 1];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct dhcp_lease lease = { .addr = 0x0ac80002, .gateway = 0x0ac80001, .mtu = 1500 };
	uint8_t out[DHCP_REPLY_MAX];
	enum dhcp_type type;
	struct dhcp_message m;
	enum parse got = dhcp_parse(data, size, &m);

	assert(got != PARSE_MORE);
	if (got == PARSE_BAD) {
		assert(m.type == DHCP_NONE && !m.client_id);
		return 0;
	}
	assert(size <= DHCP_MESSAGE_MAX && m.type != DHCP_OFFER && m.type != DHCP_ACK && m.type != DHCP_NAK);
	if (m.client_id)
		assert(m.client_id > data && m.client_id_len >= 2 && m.client_id_len <= DHCP_CLIENT_ID_MAX &&
		       (size_t)(m.client_id - data) + m.client_id_len < size);
	type = dhcp_decide(&m, &lease);
	assert(type == DHCP_NONE || type == DHCP_OFFER || type == DHCP_ACK || type == DHCP_NAK);
	if (type != DHCP_NONE) {
		size_t len = dhcp_write(&m, type, &lease, out, sizeof(out));

		assert(len >= 300);
		assert(memcmp(out + 4, data + 4, 4) == 0 && memcmp(out + 28, data + 28, 6) == 0);
		check_reply(out, len);
	}
	return 0;
}
