/* SPDX-License-Identifier: Apache-2.0 */
/* What the client does for `dns` and `flood`. */
#ifndef BENCH_DATAGRAMS_H
#define BENCH_DATAGRAMS_H

#include <netinet/in.h>
#include <stdint.h>

/* Asks a name server for the addresses of `host`, with one question on each of `at_once` sockets at a time. Prints the answer to the order. */
void dns_run(struct in_addr server, const char *host, int64_t ns, unsigned long at_once);

/* Sends small datagrams to a port, as fast as it can, and takes nothing. Prints the answer to the order. */
void flood_run(struct in_addr address, uint16_t port, int64_t ns);

#endif
