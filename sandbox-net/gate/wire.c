/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/gate/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/gate/gate.h"
#include "sandbox-net/gate/netns.h"
#include "sandbox-net/gate/probe.h"
#include "sandbox-net/gate/rules.h"
#include "sandbox-net/gate/stack.h"
#include "sandbox-net/gate/tap.h"

#define WIRE_FRAME_MAX 65536

/* All that S's devices do is pass frames to each other. */
static int load_rules(const struct gate_tap *tap, int tap_index, int eth, struct err *err)
{
	struct rules_values values = { 0 };

	rules_set_name(&values, RULES_TAP, tap->name);
	rules_set_index(&values, RULES_TAP_INDEX, tap_index);
	rules_set_index(&values, RULES_LINK_INDEX, eth);
	return rules_load(RULES_WIRE, &values, err);
}

int wire_build(const struct gate_tap *tap, struct err *err)
{
	__attribute__((cleanup(netlink_close))) struct netlink nl = { .fd = -1 };
	int lo, eth, index;

	if (tap_make(tap->name, tap->owner, err) ||
	    stack_check(netlink_open(&nl, NETLINK_ROUTE), "netlink socket", err) ||
	    stack_check(netlink_find_link(&nl, "lo", &lo), "lo", err) ||
	    stack_check(netlink_find_link(&nl, tap->name, &index), tap->name, err) ||
	    stack_check(netlink_find_link(&nl, GATE_SANDBOX_LINK, &eth), GATE_SANDBOX_LINK, err) ||
	    load_rules(tap, index, eth, err) || stack_check(netlink_set_up(&nl, lo), "lo up", err) ||
	    stack_check(netlink_set_no_link_local(&nl, index), "addr_gen_mode", err) ||
	    stack_check(netlink_set_no_link_local(&nl, eth), "addr_gen_mode", err) ||
	    stack_check(netlink_set_up(&nl, index), "TAP device up", err) ||
	    stack_check(netlink_set_up(&nl, eth), "eth0 up", err) ||
	    stack_check(netlink_wait_running(&nl, eth), "wait for eth0", err))
		return -1;
	return 0;
}

/* One frame from `from` to `to`, or none; one that the other side has no room for is lost, as on any wire. */
static bool pass_frame(int from, int to)
{
	static uint8_t frame[WIRE_FRAME_MAX];
	ssize_t n = read(from, frame, sizeof(frame));

	if (n > 0)
		(void)!write(to, frame, (size_t)n);
	return n > 0;
}

/* Passes frames between the two devices until the other end of `until` is closed, and then what is there still. */
static _Noreturn void pump(int tap, int guest, int until)
{
	struct pollfd pfds[] = { { .fd = tap, .events = POLLIN },
				 { .fd = guest, .events = POLLIN },
				 { .fd = until, .events = POLLIN } };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		if (poll(pfds, 3, -1) < 0 && errno != EINTR)
			_exit(1);
		while (pass_frame(tap, guest) || pass_frame(guest, tap))
			;
		if (pfds[2].revents)
			_exit(0);
	}
}

static int wait_until_open(const char *name, struct err *err)
{
	__attribute__((cleanup(netlink_close))) struct netlink nl = { .fd = -1 };
	int index;

	if (stack_check(netlink_open(&nl, NETLINK_ROUTE), "netlink socket", err) ||
	    stack_check(netlink_find_link(&nl, name, &index), name, err))
		return -1;
	return stack_check(netlink_wait_running(&nl, index), "wait for the TAP device", err);
}

static int set_mac(const struct netlink_end *link, struct err *err)
{
	__attribute__((cleanup(netlink_close))) struct netlink nl = { .fd = -1 };
	int index;

	if (stack_check(netlink_open(&nl, NETLINK_ROUTE), "netlink socket", err) ||
	    stack_check(netlink_find_link(&nl, link->name, &index), link->name, err))
		return -1;
	return stack_check(netlink_set_mac(&nl, index, link->mac), "MAC address", err);
}

/* With both devices open: builds the stack of the guest, has its frames passed on, and asks. */
static int probe_between(int tap, int guest, const struct gate_plan *plan, const struct stack_ends *ends,
			 const uint8_t nonce[HANDOFF_NONCE], struct err *err)
{
	int running[2], rc;
	pid_t pid;

	if (set_mac(&ends->sandbox.link, err) || stack_build(ends, err))
		return -1;
	if (pipe2(running, O_CLOEXEC))
		return err_set_errno(err, errno, "pipe");
	pid = fork();
	if (pid == 0) {
		close(running[1]);
		pump(tap, guest, running[0]);
	}
	close(running[0]);
	rc = pid < 0 ? err_set_errno(err, errno, "fork") : probe_gate(&plan->layout, nonce, err);
	close(running[1]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return rc;
}

int wire_probe(const struct gate_plan *plan, const struct stack_ends *ends, const uint8_t nonce[HANDOFF_NONCE],
	       struct err *err)
{
	const struct gate_tap *tap = plan->tap;
	int own = tap_open(tap->name, err), guest = -1, rc = -1;

	if (own < 0)
		return -1;
	if (!wait_until_open(tap->name, err) && !netns_new(err))
		guest = tap_open(ends->sandbox.link.name, err);
	if (guest >= 0) {
		rc = probe_between(own, guest, plan, ends, nonce, err);
		close(guest);
	}
	close(own);
	return rc ? err_wrap(err, "through %s", tap->name) : 0;
}
