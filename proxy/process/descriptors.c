/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic; see the header. */
#include "proxy/process/descriptors.h"

#include "proxy/conn/cut.h"
#include "proxy/conn/pipe_pool.h"
#include "proxy/dns/dns_server.h"
#include "proxy/process/attribution.h"
#include "proxy/upstream/resolver.h"

#define OWN	 64
#define RESERVED (OWN + 2 * PIPE_POOL_MAX + DNS_TCP_CLIENTS_MAX + RESOLVER_SOCKETS_MAX + ATTRIBUTION_MAX + CUTS_MAX)

struct descriptors descriptors_share(uint64_t limit)
{
	uint64_t races = limit / DESCRIPTORS_RACES_SHARE;
	uint64_t taken;

	if (races > DESCRIPTORS_RACES_MAX)
		races = DESCRIPTORS_RACES_MAX;
	taken = RESERVED + races;
	if (limit < taken + 2 * DESCRIPTORS_CONNS_LEAST)
		return (struct descriptors){ .connections = DESCRIPTORS_CONNS_LEAST, .races = races };
	return (struct descriptors){ .connections = (limit - taken) / 2, .races = races };
}
