/* SPDX-License-Identifier: Apache-2.0 */
/* The hand-off: each step waits for the one before, and any other answer ends it. */
#include "sandbox-net/gate/handoff.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/fdpass.h"
#include "base/handoff.h"
#include "sandbox-net/gate/gate.h"

static int wait_for(int proxy, enum handoff_type type, struct err *err)
{
	struct pollfd p = { .fd = proxy, .events = POLLIN };
	struct handoff_msg msg;
	ssize_t n;
	int rc;

	do
		rc = poll(&p, 1, HANDOFF_WAIT_MS);
	while (rc < 0 && errno == EINTR);
	if (rc <= 0)
		return err_set(err, "the proxy does not answer");
	n = recv(proxy, &msg, sizeof(msg), MSG_DONTWAIT | MSG_TRUNC);
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return err_set(err, "the proxy has ended");
	if (n != sizeof(msg) || msg.magic != HANDOFF_MAGIC || msg.type != type)
		return err_set(err, "the proxy gave an answer that was not asked for");
	return 0;
}

static int tell(int proxy, const struct handoff_msg *msg, const struct gate *gate, struct err *err)
{
	int rc = fdpass_send(proxy, msg, sizeof(*msg), gate ? gate->fds : NULL, gate ? gate->n_fds : 0);

	return rc ? err_set_errno(err, -rc, "cannot reach the proxy") : 0;
}

int handoff_run(int proxy, int s_netns, const struct gate_plan *plan, const enum resource_holder *holder, bool *built,
		struct err *err)
{
	struct handoff_msg msg = { .magic = HANDOFF_MAGIC, .type = HANDOFF_GATE, .layout = plan->layout };
	struct handoff_msg arm = { .magic = HANDOFF_MAGIC, .type = HANDOFF_ARM };
	struct gate gate;
	int rc;

	for (int i = 0; holder && i < RESOURCE_COUNT; i++)
		arm.holder[i] = holder[i];
	if (plan->tap)
		snprintf(msg.tap, sizeof(msg.tap), "%s", plan->tap->name);
	if (getrandom(msg.nonce, sizeof(msg.nonce), 0) != sizeof(msg.nonce))
		return err_set_errno(err, errno, "getrandom");
	if (gate_build(s_netns, plan, &gate, err))
		return -1;
	if (built)
		*built = true;
	rc = tell(proxy, &msg, &gate, err);
	gate_close(&gate);
	if (rc || wait_for(proxy, HANDOFF_READY, err))
		return -1;
	if (gate_prove(s_netns, plan, msg.nonce, err))
		return err_wrap(err, "the gate is not proven");
	return tell(proxy, &arm, NULL, err) || wait_for(proxy, HANDOFF_ARMED, err) ? -1 : 0;
}
