/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of a guest: what is read lies in the input, and only the guest gets an answer, for the gate's addresses.
 * links: proxy/wire/gateway.c base/addr.c
 */
#include <assert.h>
#include <string.h>

#include "base/handoff.h"
#include "proxy/wire/gateway.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gateway_answerer a = { .mac = { GATE_MAC_BYTES }, .guest = { GATE_SANDBOX_MAC_BYTES } };
	uint8_t out[GATEWAY_FRAME_MAX];
	struct gateway_question q;
	enum parse got = gateway_parse(data, size, &q);
	size_t len;

	assert(got != PARSE_MORE);
	if (got == PARSE_BAD)
		return 0;
	(void)addr_parse(GATE_ADDR4, strlen(GATE_ADDR4), &a.v4);
	(void)addr_parse(GATE_ADDR6, strlen(GATE_ADDR6), &a.v6);
	assert(size <= GATEWAY_FRAME_MAX && memcmp(q.mac, data + 6, GATEWAY_MAC) == 0);
	if (q.kind == GATEWAY_DHCP) {
		assert(q.payload >= data + GATEWAY_HEADERS && q.payload_len <= size - GATEWAY_HEADERS);
		assert((size_t)(q.payload - data) + q.payload_len <= size);
	}
	len = gateway_answer(&a, &q, out, sizeof(out));
	if (len == 0)
		return 0;
	assert(q.kind != GATEWAY_DHCP && memcmp(q.mac, a.guest, GATEWAY_MAC) == 0);
	assert(addr_equal(&q.target, q.kind == GATEWAY_ARP ? &a.v4 : &a.v6));
	assert(len == (q.kind == GATEWAY_ARP ? 42 : 86) && memcmp(out, a.guest, GATEWAY_MAC) == 0);
	assert(gateway_answer(&a, &q, out, len - 1) == 0);
	return 0;
}
