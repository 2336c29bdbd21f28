/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox-net attach. In order: find the sandbox and pin it; look at it; ask
 * the job's netgate for a session; build the gate, hand it off and prove it as for a command that is run; look once more
 * whether the sandbox is what it was. From the first error on, whatever was built goes with the descriptors; but an attempt that
 * failed has left nothing when it returns.
 */
#include "sandbox-net/attach/attach.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/handoff.h"
#include "sandbox-net/attach/client.h"
#include "sandbox-net/attach/link_end.h"
#include "sandbox-net/attach/options.h"
#include "sandbox-net/attach/start.h"
#include "sandbox-net/attach/target.h"
#include "sandbox-net/attach/vet.h"
#include "sandbox-net/gate/handoff.h"

struct attach {
	const struct attach_options *options;
	const char *job;
	char name[ATTACH_NAME_MAX + 8];
	struct target target;
	struct gate_plan plan;
	struct vet_found found;
	bool started; /* the job's netgate, for this sandbox alone */
	bool built;   /* the gate's link is in S */
	int sock;
	int undo_sock; /* a second connection, when there is a session; connected before we are somebody else to netgate */
};

static const struct gate_tap *tap_of(const struct attach_options *o)
{
	return o->tap.name ? &o->tap : NULL;
}

static int request_session(struct attach *a, int *proxy, struct err *err)
{
	struct attach_msg msg = { .pid = a->target.pid,
				  .risks = a->options->risks,
				  .notes = a->found.notes,
				  .alone = a->plan.alone || a->plan.tap,
				  .dev = a->target.dev,
				  .ino = a->target.ino };

	memcpy(msg.name, a->name, sizeof(msg.name));
	memcpy(msg.to, a->target.to, sizeof(msg.to));
	memcpy(msg.file, a->target.file, sizeof(msg.file));
	return client_send(a->sock, &msg, ATTACH_REQUEST, a->target.dir, err) ||
			       client_wait(a->sock, &msg, ATTACH_GO, proxy, err)
		       ? -1
		       : 0;
}

static int connect_sandbox(struct attach *a, struct err *err)
{
	struct attach_msg msg = { 0 };
	int proxy = -1, rc;

	if (request_session(a, &proxy, err))
		return -1;
	a->undo_sock = client_connect(a->job, CLIENT_WAIT_MS, err);
	if (a->undo_sock < 0) {
		close(proxy);
		return -1;
	}
	/* Last, since it can't be undone: whom netgate speaks with was settled when the sockets were connected. */
	if (target_join(&a->target, err)) {
		close(proxy);
		return -1;
	}
	rc = handoff_run(proxy, a->target.netns, &a->plan, NULL, &a->built, err);
	close(proxy);
	if (rc || target_check(&a->target, err) || client_send(a->sock, &msg, ATTACH_ARMED, -1, err))
		return -1;
	return client_wait(a->sock, &msg, ATTACH_DONE, NULL, err);
}

static int prepare(struct attach *a, struct err *err)
{
	const struct attach_options *o = a->options;

	gate_plan_usual(&a->plan);
	a->plan.tap = tap_of(o);
	if (o->link && snprintf(a->plan.link, sizeof(a->plan.link), "%s", o->link) >= (int)sizeof(a->plan.link))
		return err_set(err, "%s: that can't be the name of an interface", o->link);
	if (target_open(&a->target, o->kind, o->what, o->to, err))
		return -1;
	snprintf(a->name, sizeof(a->name), "%s", o->name ? o->name : a->target.name);
	a->job = o->job ? o->job : a->name;
	if (o->has_owner && target_check_owner(&a->target, o->owner, err))
		return -1;
	if (vet_sandbox(&a->target, a->plan.tap, o->risks, o->known, &a->found, err) || target_check(&a->target, err))
		return err_wrap(err, "%s", a->target.to);
	a->plan.alone =
		!a->plan.tap && (o->alone || !(a->found.makes_links || (o->risks >> ATTACH_RISK_NET_ADMIN & 1)));
	return 0;
}

/* Notes are about a sandbox that is attached: beside an error they would look like its reason. */
static void tell(const struct attach *a)
{
	for (int i = 0; i < ATTACH_NOTE_COUNT; i++)
		if (a->found.notes >> i & 1)
			fprintf(stderr, "sandbox-net: note: %s\n", attach_note_texts[i]);
	fprintf(stderr, "sandbox-net: %s is attached to job %s as %s; its name server is %s\n", a->target.to, a->job,
		a->name, GATE_ADDR4);
}

static int run(struct attach *a, struct err *err)
{
	/* In the user namespace that we may join, root of the sandbox could trace us otherwise, and we are outside of all else of it. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return err_set_errno(err, errno, "PR_SET_DUMPABLE");
	if (prepare(a, err))
		return -1;
	if (a->options->n_gate > 0) {
		if (start_gate(a->job, a->options->gate, a->options->n_gate, err))
			return -1;
		a->started = true;
	}
	a->sock = client_connect(a->job, CLIENT_WAIT_MS, err);
	if (a->sock < 0)
		return -1;
	if (connect_sandbox(a, err))
		return err_wrap(err, "%s was not attached", a->target.to);
	return 0;
}

/* Waits for the session's end: until then, netgate takes the name for taken. A netgate that was started for this sandbox alone ends. */
static void end_session(struct attach *a)
{
	struct attach_msg msg = { 0 };
	struct err unsaid = { "" };

	if (a->started && a->undo_sock < 0)
		a->undo_sock = client_connect(a->job, CLIENT_WAIT_MS, &unsaid);
	if (!a->started)
		memcpy(msg.name, a->name, sizeof(msg.name));
	if (a->undo_sock >= 0 && client_send(a->undo_sock, &msg, ATTACH_DETACH, -1, &unsaid) == 0)
		(void)client_wait(a->undo_sock, &msg, ATTACH_DONE, NULL, &unsaid);
}

static void hang_up(int *sock)
{
	if (*sock >= 0)
		close(*sock);
	*sock = -1;
}

/* Whoever tries again at once finds no gate, and no name that is taken. */
static void undo(struct attach *a)
{
	struct err unsaid = { "" };
	struct link_end end;
	const bool found = a->built && link_end_open_named(&end, &a->target, a->plan.link) == 0;

	hang_up(&a->sock);
	end_session(a);
	if (found) {
		(void)link_end_remove(&end, &unsaid);
		link_end_close(&end);
	}
}

int attach_sandbox(const struct attach_options *o, struct err *err)
{
	struct attach a = { .options = o, .sock = -1, .undo_sock = -1 };
	int rc = run(&a, err);

	if (rc)
		undo(&a);
	else if (!o->quiet)
		tell(&a);
	hang_up(&a.sock);
	hang_up(&a.undo_sock);
	target_close(&a.target);
	return rc;
}

static int main_for(int argc, char **argv, bool machine)
{
	static struct attach_options options;
	struct err err = { "" };
	int rc = (machine ? tap_options_parse : attach_options_parse)(argc, argv, &options, &err);

	if (rc == 0 && options.help) {
		fputs(machine ? tap_help : attach_help, stdout);
		return 0;
	}
	if (rc || attach_sandbox(&options, &err)) {
		fprintf(stderr, "sandbox-net: %s\n", err.text);
		return ATTACH_FAILED;
	}
	return 0;
}

int attach_main(int argc, char **argv)
{
	return main_for(argc, argv, false);
}

int tap_main(int argc, char **argv)
{
	return main_for(argc, argv, true);
}
