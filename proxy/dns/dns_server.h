/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate's DNS: answers from the policy and the map alone and never asks
 * upstream, so that a look-up carries nothing out. Every query leaves a
 * decision record before its answer is sent; one that can't be recorded gets SERVFAIL.
 *
 *   question                                    answer                    record
 *   A, AAAA of an allowed name                  its synthetic address     allow
 *   another type of an allowed name             NODATA                    allow
 *   PTR of an address that was given out        its name                  as for the name
 *   ANY of an allowed name (RFC 8482)           NODATA                    dns_type
 *   NULL, OPT and the meta types 0, 128–254     REFUSED                   dns_type
 *     (AXFR, TKEY …) of an allowed name
 *   an ancestor of an allowed name, the root    NODATA                    not_allowed
 *   any type of another name                    NXDOMAIN                  not_allowed, denied_by_rule
 *   what is no host name                        NXDOMAIN                  bad_name
 *   a new name above DNS_MAP_MAX                SERVFAIL                  limit_names
 *   a class other than IN                       REFUSED                   dns_type
 *   EDNS version above 0                        BADVERS                   dns_malformed
 *   malformed; another opcode                   FORMERR; NOTIMP           dns_malformed
 *   shorter than a header, or itself an answer  none                      dns_malformed
 *
 * TTL 60 throughout, with SOA where there is no record (RFC 2308), and with OPT an
 * EDE 17 that says the reason where a name is denied (RFC 8914). In audit mode every name
 * is allowed but localhost and those below it, which programs expect to be their own machine (RFC 6761 §6.3).
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
#define DNS_TCP_IDLE_S	    10 /* without a complete query */
#define DNS_TCP_QUERY_MAX   4096
#define DNS_UDP_BURST	    32 /* queries of one socket in one turn of the loop */

struct dns_server_config {
	struct event_base *base;
	const struct policy *policy;
	struct audit *audit;
	struct dns_map *map;
	int udp4, udp6; /* HANDOFF_UDP4/6; stay the caller's */
	/* Told of each query over UDP before it is answered; or NULL. */
	void (*asked)(void *arg, const struct endpoint *src, const struct endpoint *dst);
	void *asked_arg;
};

/* Reads both UDP sockets from now on. NULL with errno. */
struct dns_server *dns_server_new(const struct dns_server_config *config);
void dns_server_free(struct dns_server *s);

/* Datagrams taken from the UDP sockets so far. */
uint64_t dns_server_taken(const struct dns_server *s);

/*
 * Takes over an accepted TCP connection to port 53 (RFC 7766: two-byte
 * lengths, several queries, also at once); `conn` goes into its records.
 * Above DNS_TCP_CLIENTS_MAX it is closed with a limit_connections record. Always takes `fd`.
 * Each connection leaves a decision record, without a query client_gone or
 * hello_timeout; there is no close record, since nothing went upstream.
 */
void dns_server_tcp(struct dns_server *s, int fd, uint64_t conn, const struct endpoint *src,
		    const struct endpoint *dst);

#endif
