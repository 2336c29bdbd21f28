/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate's DNS: answers from the policy and the map alone and never asks
 * upstream, so that a look-up carries nothing out. Every query leaves a
 * decision record before its answer is sent.
 *
 * IN A and AAAA of an allowed name: its synthetic address, TTL 60. Other types of an
 * allowed name, and every type of an ancestor of one: NODATA. A denied name:
 * NXDOMAIN with SOA, RA and (with OPT) EDE 17. PTR of a synthetic address: its
 * name. Another class: REFUSED. Malformed: FORMERR, or silence where
 * dns_query_parse() says so. EDNS version above 0: BADVERS.
 */
#ifndef PROXY_DNS_DNS_SERVER_H
#define PROXY_DNS_DNS_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

struct audit;
struct dns_map;
struct dns_server;
struct event_base;
struct policy;

#define DNS_TCP_CLIENTS_MAX 64
#define DNS_TCP_IDLE_S	    10

struct dns_server_config {
	struct event_base *base;
	const struct policy *policy;
	struct audit *audit;
	struct dns_map *map;
	int udp4, udp6; /* HANDOFF_UDP4/6; stay the caller's */
};

/* Reads both UDP sockets from now on. NULL with errno. */
struct dns_server *dns_server_new(const struct dns_server_config *config);
void dns_server_free(struct dns_server *s);

/*
 * Takes over an accepted TCP connection to port 53 (RFC 7766: two-byte
 * lengths, several queries, also at once); `conn` goes into its records.
 * Above DNS_TCP_CLIENTS_MAX it is closed with a limit_connections record. Always takes `fd`.
 */
void dns_server_tcp(struct dns_server *s, int fd, uint64_t conn, const struct endpoint *src,
		    const struct endpoint *dst);

#endif
