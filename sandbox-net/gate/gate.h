/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a gate G for an existing sandbox namespace S: veth pair, fixed MACs,
 * permanent neighbours, catch-all local routes, the hardened nft rules and the
 * sockets that go to the proxy. Nothing of the host's namespace is touched.
 *
 * G has no name and no bind mount: it lives only as long as somebody holds one
 * of its sockets. The caller hands them to the proxy and closes its own.
 */
#ifndef SANDBOX_NET_GATE_H
#define SANDBOX_NET_GATE_H

#include "base/handoff.h"

/* The link: its two ends have fixed names and addresses, and find each other without ARP or ND. */
#define GATE_LINK	       "gw0"
#define GATE_SANDBOX_LINK      "eth0"
#define GATE_MAC_BYTES	       2, 0, 0, 0, 0, 1
#define GATE_SANDBOX_MAC_BYTES 2, 0, 0, 0, 0, 2

struct err;

struct gate {
	int fds[HANDOFF_FDS]; /* sockets of G; CLOEXEC */
};

/*
 * `s_netns`: a descriptor of S's network namespace, owned by a user namespace
 * below the caller's. The caller must have CAP_SYS_ADMIN and CAP_NET_ADMIN
 * over its own user namespace; it stays in its own network namespace, since
 * the work is done in a child process. `eth0` in S comes up last, and carries packets when this
 * returns. Returns 0; or -1 with every descriptor -1, and the kernel then takes what was built away.
 */
int gate_build(int s_netns, struct gate *gate, struct err *err);

/* Closes the descriptors. When nobody else holds one, the kernel takes G and eth0 away. */
void gate_close(struct gate *gate);

/*
 * Whether S, which somebody else made, has no network: `lo`, links that are down and nobody can remove, no route and no
 * neighbour beside theirs. Returns 0; or -1 with what was found, in printable ASCII.
 */
int gate_check_empty(int s_netns, struct err *err);

/*
 * Proves, from inside S, that its only way out is the gate: two links (lo and
 * our eth0), default routes over the gate and nothing else, no other
 * neighbour; and that this proxy answers: TCP over IPv4 and IPv6 to an arbitrary address and
 * a datagram to port 53 each bring back `nonce`. Waits at most 5 s for each answer.
 * Returns 0; or -1 with what was found.
 */
int gate_prove(int s_netns, const uint8_t nonce[HANDOFF_NONCE], struct err *err);

#endif
