/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the descriptors that the proxy may have (RLIMIT_NOFILE) are shared out, so that no use of them takes another's: however
 * many connections a sandbox opens, there is one left for the log, a look-up and a refusal.
 *
 *   own         standard streams, the loop, the gate's sockets, the log and the one it is rotated to, the monitor, the finder
 *   bounded     pipes, DNS over TCP, name servers, sockets that wait for whose they were or for their last acknowledgement
 *   races       attempts of a dial beside its first: one in RACES_SHARE of all descriptors, RACES_MAX at most
 *   connections the rest, two each: the client's socket, and the server's or the first attempt at it
 */
#ifndef PROXY_PROCESS_DESCRIPTORS_H
#define PROXY_PROCESS_DESCRIPTORS_H

#include <stdint.h>

#define DESCRIPTORS_RACES_MAX	512
#define DESCRIPTORS_RACES_SHARE 16
#define DESCRIPTORS_CONNS_LEAST 40 /* connections, where the limit leaves less: then dials and pipes go without */

struct descriptors {
	uint64_t connections; /* open at once */
	uint64_t races;	      /* attempts beside the first one of their dial */
};

/* `limit`: the soft limit; RLIM_INFINITY is one, too. */
struct descriptors descriptors_share(uint64_t limit);

#endif
