/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers of dropped packets.
 * links: proxy/wire/packet.c base/addr.c
 */
#include <assert.h>
#include <string.h>

#include "proxy/wire/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct packet none;
	struct packet k, cut;
	enum parse got = packet_parse(data, size, &k);

	assert(got != PARSE_MORE);
	if (got == PARSE_BAD) {
		assert(memcmp(&k, &none, sizeof(k)) == 0);
		return 0;
	}
	assert(k.src.addr.family == k.dst.addr.family && k.src.addr.family == data[0] >> 4);
	assert(k.total >= (k.src.addr.family == ADDR_V4 ? 20 : 40));
	assert(!k.fragment || (k.src.port == 0 && k.dst.port == 0 && k.icmp == 0 && !k.payload));
	if (k.payload) {
		assert(k.proto == 17 && k.payload_len <= k.total);
		assert(k.payload >= data && k.payload_len <= size &&
		       (size_t)(k.payload - data) <= size - k.payload_len);
	}
	/* A shorter capture says the same or less. */
	if (packet_parse(data, size / 2, &cut) == PARSE_OK) {
		assert(memcmp(&cut.src.addr, &k.src.addr, sizeof(k.src.addr)) == 0);
		assert(cut.src.port == 0 || cut.src.port == k.src.port);
		assert(cut.icmp == 0 || cut.icmp == k.icmp);
		assert(cut.payload_len <= k.payload_len);
	}
	return 0;
}
