/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A container joins before it has a network namespace: docker asks for a link
 * by name, answers its own runtime's hook later by moving it there, and tells nobody. In order:
 *
 *   stand-in   the gate is built, proven and armed for an empty namespace that stands in for S
 *   handed     its link is moved here, down; docker is answered. From here on, whoever has the link has the gate and nothing else
 *   moved      the link is gone from here: S is at the path that docker named, and its runtime still prepares the container. Docker's
 *              resolver is put out of the way first; should the container's own program have begun before that, it
 *              is over. Then what docker leaves undone, and the look at S: no other way out
 *   begun      the container's own program runs, with its own capabilities: the look at them
 *   attached   netgate learns where S is
 *
 * Whatever fails on the way takes the gate away. The container then has no network.
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
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "sandbox-net/attach/client.h"
#include "sandbox-net/attach/jobs.h"
#include "sandbox-net/attach/start.h"
#include "sandbox-net/attach/target.h"
#include "sandbox-net/attach/vet.h"
#include "sandbox-net/docker/program.h"
#include "sandbox-net/gate/adopt.h"
#include "sandbox-net/gate/handoff.h"

#define JOIN_LOOK_MS 20 /* between two looks at the container's processes */
#define JOIN_STRIKES 5	/* looks in a row that find one with a say over the gate */

struct join {
	const struct join_request *request;
	struct gate_plan plan;
	struct target target;
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

/* ---- stand-in ---- */

static int request_session(struct join *j, int *proxy, struct err *err)
{
	struct attach_msg msg = { .risks = j->request->risks, .file = "-" };
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

/* ---- moved ---- */

static int complete(struct join *j, struct err *err)
{
	if (adopt_wait_moved(j->request->link, err) ||
	    target_open(&j->target, TARGET_NETNS, j->request->sandbox_key, NULL, err))
		return -1;
	if (adopt_silence_resolver(j->target.netns, &j->plan, err))
		return -1;
	if (program_begun(j->target.dev, j->target.ino))
		return err_set(err, "the container's program began before docker's name server was out of its reach");
	/* As for other containers whose rules nobody in them can change: a network that is connected later carries nothing. */
	j->plan.alone = !(j->request->risks >> ATTACH_RISK_NET_ADMIN & 1);
	if (adopt_complete(j->target.netns, &j->plan, j->request->ipv6, err))
		return -1;
	return gate_check(j->target.netns, &j->plan, err);
}

/* ---- begun ---- */

static int look_at_processes(struct join *j, struct err *err)
{
	const uint64_t until = clock_mono_us() + JOIN_START_MS * 1000ull;
	int strikes = 0;

	while (vet_processes(&j->target, j->request->risks, err)) {
		strikes = program_begun(j->target.dev, j->target.ino) ? strikes + 1 : 0;
		if (strikes == JOIN_STRIKES || clock_mono_us() >= until)
			return -1;
		poll(NULL, 0, JOIN_LOOK_MS);
	}
	return 0;
}

static int say_where(struct join *j, struct err *err)
{
	struct attach_msg msg = { .dev = j->target.dev, .ino = j->target.ino };

	memcpy(msg.file, j->target.file, sizeof(msg.file));
	if (client_send(j->sock, &msg, ATTACH_ARMED, j->target.dir, err) == 0 &&
	    client_wait(j->sock, &msg, ATTACH_DONE, NULL, err) == 0)
		return 0;
	/* The gate of a container that is over already may be, too. */
	return program_begun(j->target.dev, j->target.ino) ? -1 : 0;
}

static int run(struct join *j, void (*ready)(void *arg), void *arg, struct err *err)
{
	int rc;

	if (build(j, err))
		return -1;
	/* A few milliseconds of work that must not wait behind others'. Without the right to it, it is as fast as they are. */
	(void)sched_setscheduler(0, SCHED_RR, &(struct sched_param){ .sched_priority = 1 });
	ready(arg);
	rc = complete(j, err);
	(void)sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ .sched_priority = 0 });
	return rc || look_at_processes(j, err) || say_where(j, err) ? -1 : 0;
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
	struct join j = {
		.request = r, .target = { .pidfd = -1, .dir = -1, .netns = -1, .user = -1 }, .sock = -1, .stand_in = -1
	};
	int rc = run(&j, ready, arg, err);

	if (j.sock >= 0)
		close(j.sock);
	if (j.stand_in >= 0)
		close(j.stand_in);
	if (rc) {
		struct err gone = { "" };

		(void)jobs_detach(r->job, "", &gone);
	}
	target_close(&j.target);
	return rc;
}
