/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the NFLOG message parser and what follows it: each packet lies inside
 * the datagram, the parser always moves on, and each payload goes through the packet parser.
 * links: proxy/audit/nflog.c proxy/wire/packet.c base/addr.c
 */
#include "proxy/audit/nflog.h"

#include <assert.h>
#include <stddef.h>

#include "proxy/wire/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void assert_inside(const uint8_t *data, size_t size, const void *p, size_t len)
{
	const uint8_t *at = p;

	assert(!at || (at >= data && at <= data + size && len <= (size_t)(data + size - at)));
	assert(at || len == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reader r = reader_over(data, size);
	struct nflog_packet p;
	struct packet packet;
	size_t left = size;

	while (nflog_next(&r, &p) == NFLOG_PACKET) {
		assert(r.left < left);
		left = r.left;
		assert_inside(data, size, p.prefix, p.prefix_len);
		assert_inside(data, size, p.payload, p.payload_len);
		if (p.payload && packet_parse(p.payload, p.payload_len, &packet) == PARSE_OK)
			assert_inside(data, size, packet.payload, packet.payload_len);
	}
	return 0;
}
