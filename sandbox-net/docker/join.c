/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A container joins before it has a network namespace: docker asks for a link
 * by name, answers its own runtime's hook later by moving it there, and tells nobody. In order:
 *
 *   stand-in   the gate is built, proven and armed for an empty namespace that stands in for S
 *   handed     its link is moved here, down; docker is answered. From here on, whoever has the link has the gate and nothing else
 *   closed     S is at the path that docker named, and its runtime still prepares the container. Rules let nothing pass but the gate's link,
 *              whatever else docker puts there; and docker's resolver is out of the way
 *   moved      the link is there, and docker done with it: then what docker leaves undone
 *   vetted     the first process has the capabilities with which its program will begin, and waits for docker's word to begin: docker is done with
 *              every network. The look at S, no other way out; and at the capabilities. A later one would prove little: who begins with more than
 *              he may have can change S, and drop it, or leave S and come back
 *   attached   netgate learns where S is
 *
 * From "handed" on docker hears of nothing that goes wrong, and would begin a container without a gate, perhaps with another network. So whatever fails takes
 * the gate away, closes S, and kills who is in the container. Who does it waits for a process that does the work, so that it is done
 * as well when that one is killed; should the waiting one be killed, the other goes on.
 */
#include "sandbox-net/docker/join.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "sandbox-net/attach/caps.h"
#include "sandbox-net/attach/client.h"
#include "sandbox-net/attach/jobs.h"
#include "sandbox-net/attach/start.h"
#include "sandbox-net/attach/target.h"
#include "sandbox-net/attach/vet.h"
#include "sandbox-net/docker/program.h"
#include "sandbox-net/gate/adopt.h"
#include "sandbox-net/gate/handoff.h"
#include "sandbox-net/gate/netns.h"

#define JOIN_LOOK_MS 2 /* between two looks at the container's first process; with runc it waits for 20 or more */

struct join {
	const struct join_request *request;
	struct gate_plan plan;
	struct target target;
	struct program program;
	void (*ready)(void *arg);
	void *arg;
	int sock, stand_in;
};

void join_job(char job[static ATTACH_NAME_MAX + 8], const char *endpoint)
{
	snprintf(job, ATTACH_NAME_MAX + 8, "docker-%.32s", endpoint);
}

void join_link(char link[static GATE_LINK_NAME_MAX], const char *endpoint)
{
	snprintf(link, GATE_LINK_NAME_MAX, "ng%.12s", endpoint);
}

/* As for other sandboxes in which nobody could change rules: a network that is connected later carries nothing, and ends the gate. */
static bool is_alone(const struct join_request *r)
{
	return !(r->risks >> ATTACH_RISK_NET_ADMIN & 1);
}

/* ---- stand-in ---- */

static int request_session(struct join *j, int *proxy, struct err *err)
{
	/* Nobody but docker knows yet which profile the container will have. */
	struct attach_msg msg = { .risks = j->request->risks,
				  .notes = vet_notes(VET_FILTER_NOT_KNOWN),
				  .alone = is_alone(j->request),
				  .file = "-" };
	int nowhere = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int rc;

	if (nowhere < 0)
		return err_set_errno(err, errno, "/");
	memcpy(msg.name, j->request->name, sizeof(msg.name));
	memcpy(msg.to, j->request->to, sizeof(msg.to));
	rc = client_send(j->sock, &msg, ATTACH_REQUEST, nowhere, err) ||
	     client_wait(j->sock, &msg, ATTACH_GO, proxy, err);
	close(nowhere);
	return rc ? -1 : 0;
}

static int build(struct join *j, struct err *err)
{
	const struct join_request *r = j->request;
	int proxy = -1, rc;

	gate_plan_usual(&j->plan);
	j->plan.layout = r->layout;
	if (start_gate(r->job, r->gate, r->n_gate, err))
		return -1;
	j->sock = client_connect(r->job, CLIENT_WAIT_MS, err);
	if (j->sock < 0 || request_session(j, &proxy, err))
		return -1;
	j->stand_in = adopt_make_stand_in(err);
	rc = j->stand_in < 0 ? -1 : handoff_run(proxy, j->stand_in, &j->plan, NULL, NULL, err);
	close(proxy);
	if (rc || adopt_hand_over(j->stand_in, &j->plan, r->link, err))
		return -1;
	close(j->stand_in);
	j->stand_in = -1;
	return 0;
}

/* ---- closed ---- */

/* Waits until S is where docker said; in vain when the gate is gone. */
static int wait_for_sandbox(struct join *j, struct err *err)
{
	const uint64_t until = clock_mono_us() + JOIN_START_MS * 1000ull;
	const int mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	/* What is mounted anew is an exceptional condition; what netgate says without being asked is its end. */
	struct pollfd p[] = { { .fd = mounts, .events = POLLPRI }, { .fd = j->sock, .events = POLLIN } };
	struct err absent;
	int rc;

	if (mounts < 0)
		return err_set_errno(err, errno, "/proc/self/mountinfo");
	while ((rc = target_open(&j->target, TARGET_NETNS, j->request->sandbox_key, NULL, &absent)) != 0) {
		const uint64_t now = clock_mono_us();

		target_close(&j->target);
		if (p[1].revents || now >= until)
			break;
		(void)poll(p, 2, (int)((until - now) / 1000 + 1));
	}
	close(mounts);
	if (rc)
		return err_set(err, p[1].revents ? "the gate has ended before the container was there"
						 : "docker has not made the container in time");
	return 0;
}

static int close_sandbox(struct join *j, struct err *err)
{
	uint64_t may;

	if (wait_for_sandbox(j, err) || (is_alone(j->request) && adopt_close_others(j->target.netns, err)) ||
	    adopt_silence_resolver(j->target.netns, &j->plan, err) || program_find(&j->program, j->target.ino, err))
		return -1;
	if (program_look(&j->program, &may) != PROGRAM_AWAITED)
		return err_set(err, "the container's program began before other ways out were closed");
	return 0;
}

/* ---- moved ---- */

static int complete(struct join *j, struct err *err)
{
	return adopt_wait_moved(j->request->link, err) ||
			       adopt_complete(j->target.netns, &j->plan, j->request->ipv6, err)
		       ? -1
		       : 0;
}

/* ---- vetted ---- */

/*
 * Capabilities count over S as well as over the gate: those of a container with a user namespace of its own, too. The runtime drops what the
 * container is not to have as one of the last things, and nothing brings it back: whatever the container runs later descends from here. Where
 * it may have all, the last look is when it has begun.
 */
static int vet_program(const struct join *j, struct err *err)
{
	const uint64_t until = clock_mono_us() + JOIN_START_MS * 1000ull;
	const bool risky = !is_alone(j->request);
	enum program_state state;
	bool looked = false;
	uint64_t may;

	while ((state = program_look(&j->program, &may)) == PROGRAM_AWAITED) {
		if (gate_check(j->target.netns, &j->plan, err))
			return -1;
		if (!risky && !(may & CAPS_DANGEROUS))
			return 0;
		if (clock_mono_us() >= until)
			return err_set(err, "docker has not begun the container's program in time");
		looked = true;
		poll(NULL, 0, JOIN_LOOK_MS);
	}
	/* Docker may have made another network since the last look. */
	if (state == PROGRAM_BEGUN && risky && looked)
		return gate_check(j->target.netns, &j->plan, err);
	if (state == PROGRAM_BEGUN && !risky && (may & CAPS_DANGEROUS))
		return err_set(err, "the container has, or can gain, CAP_NET_ADMIN or CAP_SYS_ADMIN, and so could "
				    "change the gate's "
				    "links and rules; run it without them, or accept this with accept-risk=net-admin");
	return err_set(err, "the container's program began before it could be seen with which capabilities");
}

static int say_where(struct join *j, struct err *err)
{
	struct attach_msg msg = { .dev = j->target.dev, .ino = j->target.ino };
	uint64_t may;

	memcpy(msg.file, j->target.file, sizeof(msg.file));
	if (client_send(j->sock, &msg, ATTACH_ARMED, j->target.dir, err) == 0 &&
	    client_wait(j->sock, &msg, ATTACH_DONE, NULL, err) == 0)
		return 0;
	/* The gate of a container that is over already may be, too. */
	return program_look(&j->program, &may) == PROGRAM_OVER ? 0 : -1;
}

static int follow(void *arg, int *fds, struct err *err)
{
	struct join *j = arg;
	int rc;

	(void)fds;
	/* Who waits for this may be killed: it is no reason to leave S as it is. */
	(void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
	/* Some milliseconds of work that must not wait behind others'. Without the right to it, it is as fast as they are. */
	(void)sched_setscheduler(0, SCHED_RR, &(struct sched_param){ .sched_priority = 1 });
	j->ready(j->arg);
	rc = close_sandbox(j, err) || complete(j, err) || vet_program(j, err);
	(void)sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ .sched_priority = 0 });
	rc = rc || say_where(j, err) ? -1 : 0;
	/* Wherever it has gone. */
	if (rc)
		program_kill(&j->program);
	return rc;
}

/* ---- without a gate ---- */

/* Docker tells a container that runs from one that is being made by nothing that it says. */
static int check_not_begun(const struct join_request *r, struct err *err)
{
	struct program program = { .dir = -1 };
	struct err unsaid = { "" };
	struct target target;
	const bool begun = target_open(&target, TARGET_NETNS, r->sandbox_key, NULL, &unsaid) == 0 &&
			   program_find(&program, target.ino, &unsaid) != 0;

	program_close(&program);
	target_close(&target);
	return begun ? err_set(err, "the container runs already: connect it before it is started") : 0;
}

/* Returns 0; -1 when S is not there. */
static int shut(const struct join_request *r)
{
	struct err unsaid = { "" };
	struct target target;
	const int rc = target_open(&target, TARGET_NETNS, r->sandbox_key, NULL, &unsaid);

	if (rc == 0) {
		(void)adopt_close_others(target.netns, &unsaid);
		program_kill_all(target.ino);
	}
	target_close(&target);
	return rc;
}

static void refuse(const struct join_request *r)
{
	const bool done = shut(r) == 0;
	struct err unsaid = { "" };

	(void)jobs_detach(r->job, "", &unsaid);
	/* Docker finds no link any more, and begins nothing; or it has moved it meanwhile, and S is there. */
	if (!done && adopt_wait_moved(r->link, &unsaid) == 0)
		(void)shut(r);
}

int join_rehearse(const struct join_request *r, struct err *err)
{
	const int rc = start_gate(r->job, r->gate, r->n_gate, err) || jobs_detach(r->job, "", err) ? -1 : 0;

	/* One that it chose, it removes. */
	if (r->log)
		(void)unlink(r->log);
	return rc;
}

void join_free_options(struct join_request *r)
{
	while (r->n_gate > 0)
		free(r->gate[--r->n_gate]);
}

int join_run(const struct join_request *r, void (*ready)(void *arg), void *arg, struct err *err)
{
	struct join j = { .request = r,
			  .ready = ready,
			  .arg = arg,
			  .target = { .pidfd = -1, .dir = -1, .netns = -1, .user = -1 },
			  .program = { .dir = -1 },
			  .sock = -1,
			  .stand_in = -1 };
	int rc;

	if (check_not_begun(r, err))
		return -1;
	rc = build(&j, err) || netns_run_apart(follow, &j, NULL, 0, err) ? -1 : 0;
	if (j.sock >= 0)
		close(j.sock);
	if (j.stand_in >= 0)
		close(j.stand_in);
	if (rc)
		refuse(r);
	return rc;
}
