/* SPDX-License-Identifier: Apache-2.0 */
/* Many connections at once, on one loop: what the client does for `hellos`, `requests` and `hold`. */
#ifndef BENCH_CROWD_H
#define BENCH_CROWD_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* Where connections go. */
struct way {
	struct in_addr address;
	uint16_t proxy; /* not 0: there, behind a CONNECT; requests name the server in their URI */
};

struct crowd_job {
	const struct way *way;
	const char *host;
	bool http;	       /* requests on connections that stay, each after the answer to the one before */
	unsigned long at_once; /* connections */
	unsigned long count;   /* so many connections, which stay open; or 0 */
	uint64_t unread;       /* with `count`: bytes that each asks for and does not read */
	int64_t ns;	       /* without `count`: for so long */
};

/* Does it, and prints the answer to the order. */
void crowd_run(const struct crowd_job *job);

#endif
