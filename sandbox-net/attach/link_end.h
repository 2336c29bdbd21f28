/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox's end of the link, from outside. When a gate ends, the kernel takes the link away, but only when it comes to
 * that: who says that a sandbox is left with `lo` takes it away himself.
 */
#ifndef SANDBOX_NET_LINK_END_H
#define SANDBOX_NET_LINK_END_H

#include "base/attach.h"
#include "sandbox-net/gate/netlink.h"

struct err;
struct target;

struct link_end {
	struct netlink sandbox; /* a socket of S, which keeps S alive */
	int index;
};

/*
 * Finds it where an attachment has its S, while the gate is there: what has this index later is the same link, or none. Takes `dir`, of an
 * ATTACH_ITEM. Returns 0, and link_end_close() is due; or -1 when there is none, or none that the caller may take away: then it is the
 * kernel's.
 */
int link_end_open(struct link_end *e, int dir, const struct attach_msg *item);

/* Likewise by its name, also where the gate has ended, for whoever had it built and so knows that it is no other link. */
int link_end_open_named(struct link_end *e, const struct target *t, const char *name);

/* Once the gate has ended: the link is gone when this returns. Returns 0 or -1. */
int link_end_remove(struct link_end *e, struct err *err);

/* Lets go of S. */
void link_end_close(struct link_end *e);

#endif
