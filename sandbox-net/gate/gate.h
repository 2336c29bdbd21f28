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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/handoff.h"

#define GATE_LINK_NAME_MAX 16 /* with the NUL; IFNAMSIZ */

struct err;
struct netlink;

struct gate {
	int fds[HANDOFF_FDS]; /* sockets of G; CLOEXEC. HANDOFF_GUEST: -1 without a TAP device */
	size_t n_fds;	      /* that there are */
};

/* For a virtual machine: the device that its monitor (QEMU, Firecracker) opens in S. */
struct gate_tap {
	const char *name;
	uid_t owner; /* who may open it without a capability; as the caller's user namespace has it */
};

/* What a gate is to be like. */
struct gate_plan {
	struct gate_layout layout;
	char link[GATE_LINK_NAME_MAX]; /* the name of S's end of the link */
	const struct gate_tap *tap;    /* NULL: the sandbox is no virtual machine */
	bool big_tcp;		       /* only this kernel's own stack uses S's end: upload in pieces of GATE_BIG_TCP */
	bool alone;		       /* no other interface is ever to work in S (see alone.h); not with `tap` */
};

/* As every gate is, unless there is a reason. */
void gate_plan_usual(struct gate_plan *plan);

/*
 * What stands at S's end of the gate. Without plan->tap, S's own stack: addresses and default routes on the link.
 * With it, S is a piece of wire: whatever comes out of the TAP device goes to
 * the gate and back, and S itself has no address, no route, and sends nothing (see wire.h).
 *
 * `s_netns`: a descriptor of S's network namespace, owned by a user namespace
 * below the caller's. The caller must have CAP_SYS_ADMIN and CAP_NET_ADMIN
 * over its own user namespace; it stays in its own network namespace, since
 * the work is done in a child process. The link's end in S comes up last, and carries packets when this
 * returns. Returns 0; or -1 with every descriptor -1, and no link of it is in S any more.
 */
int gate_build(int s_netns, const struct gate_plan *plan, struct gate *gate, struct err *err);

/* Closes the descriptors. When nobody else holds one, the kernel takes G and the link away. */
void gate_close(struct gate *gate);

/*
 * Whether S, which somebody else made, has no network: `lo`, links that are down and nobody can remove, no route beside
 * theirs but over lo or to nowhere, and none of these in the gate's way; with `tap`, also that device, left from a gate before. Returns 0; or -1 with what was found, in printable ASCII.
 */
int gate_check_empty(int s_netns, const struct gate_tap *tap, struct err *err);

/*
 * Checks, from inside S, that its only way out is the gate: two links (lo and
 * ours), default routes over the gate and nothing else. Returns 0; or -1 with what was found.
 */
int gate_check(int s_netns, const struct gate_plan *plan, struct err *err);

/* The index of S's end of the gate's link, through a socket of S; 0: there is none. */
int gate_find_end(struct netlink *s);

/*
 * Proves this, and that this proxy answers: TCP over IPv4 and IPv6 to an arbitrary address and
 * a datagram to port 53 each bring back `nonce`. Waits at most 5 s for each answer.
 *
 * With plan->tap: three links, no address or route but those of lo, and what answers
 * is asked for through the TAP device, by a network namespace that stands in for the guest.
 * Returns 0; or -1 with what was found.
 */
int gate_prove(int s_netns, const struct gate_plan *plan, const uint8_t nonce[HANDOFF_NONCE], struct err *err);

#endif
