/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/attach/link_end.h"

#include <errno.h>
#include <linux/netlink.h>
#include <sys/prctl.h>

#include "base/err.h"
#include "sandbox-net/attach/target.h"
#include "sandbox-net/gate/gate.h"
#include "sandbox-net/gate/netns.h"

/* In a child: the socket is made with the rights that a gate was built with, and keeps them. */
static int open_socket(void *arg, int *fds, struct err *err)
{
	struct target t = *(const struct target *)arg;
	struct netlink nl;
	int r;

	/* As in attach.c. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return err_set_errno(err, errno, "PR_SET_DUMPABLE");
	if (target_join(&t, err) || netns_enter(t.netns, err))
		return -1;
	r = netlink_open(&nl, NETLINK_ROUTE);
	fds[0] = nl.fd;
	return r ? err_set_errno(err, -r, "netlink socket") : 0;
}

/* `name`: NULL: whatever it is called. */
static int find(struct link_end *e, const struct target *t, const char *name)
{
	struct err unsaid = { "" };

	*e = (struct link_end){ .sandbox = { .fd = -1 } };
	if (netns_run_apart(open_socket, (void *)t, &e->sandbox.fd, 1, &unsaid))
		return -1;
	if (!name)
		e->index = gate_find_end(&e->sandbox);
	else if (netlink_find_link(&e->sandbox, name, &e->index))
		e->index = 0;
	if (e->index == 0)
		link_end_close(e);
	return e->index ? 0 : -1;
}

int link_end_open(struct link_end *e, int dir, const struct attach_msg *item)
{
	struct target t;
	int rc = target_open_again(&t, dir, item) ? -1 : find(e, &t, NULL);

	target_close(&t);
	return rc;
}

int link_end_open_named(struct link_end *e, const struct target *t, const char *name)
{
	return find(e, t, name);
}

int link_end_remove(struct link_end *e, struct err *err)
{
	const int r = netlink_del_link(&e->sandbox, e->index);

	return r ? err_set_errno(err, -r, "take its link away") : 0;
}

void link_end_close(struct link_end *e)
{
	netlink_close(&e->sandbox);
}
