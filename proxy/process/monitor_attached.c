/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monitor of an attached sandbox. Nothing of the sandbox is netgate's: it
 * is neither started nor ended here. What ends is its gate, in one way
 * (end_gate()), and the sandbox is left with `lo`.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdpass.h"
#include "base/tell.h"
#include "proxy/process/finder.h"
#include "proxy/process/keeper.h"
#include "proxy/process/monitor_impl.h"
#include "proxy/process/proxy.h"
#include "proxy/process/session.h"

static const char *name_of(const struct run *r)
{
	return r->m->attached->request.name;
}

static void hang_up(struct run *r)
{
	if (r->m->report_fd >= 0)
		close(r->m->report_fd);
	r->m->report_fd = -1;
}

/* The proxy records this end and goes; if it does not, it is killed, which takes the gate away just as well. */
static void end_gate(struct run *r, enum monitor_end end)
{
	if (r->end != MONITOR_END_COMMAND)
		return;
	r->end = end;
	r->deadline_us = 0;
	r->kill_us = clock_mono_us() + MONITOR_GRACE_ATTACHED_S * US_PER_S;
	if (!r->failed)
		r->status = 0;
	hang_up(r);
	monitor_finish_proxy(r);
}

/* ---- sandbox-net attach ---- */

/* Where S is, if the request did not say. Takes `dir` (-1: none). Returns false for what is out of order. */
static bool take_place(struct run *r, const struct attach_msg *msg, int dir)
{
	struct session *s = r->m->attached;
	struct stat st;

	if (s->place.ino && dir < 0)
		return true;
	if (s->place.ino || dir < 0 || fstat(dir, &st) || !S_ISDIR(st.st_mode) || !msg->ino || !msg->file[0] ||
	    strstr(msg->file, "..")) {
		if (dir >= 0)
			close(dir);
		return false;
	}
	close(s->place.dir);
	s->place = (struct place){ .dir = dir, .dev = msg->dev, .ino = msg->ino };
	memcpy(s->place.file, msg->file, sizeof(s->place.file));
	return true;
}

/* The gate is in force, and sandbox-net found S to be still what it was. */
static void armed(struct run *r)
{
	const struct session *s = r->m->attached;
	const struct attach_msg done = { .magic = ATTACH_MAGIC, .type = ATTACH_DONE };
	const struct monitor_msg settled = { .type = MONITOR_SETTLED };
	const uint32_t word = KEEPER_ARMED;

	if (fdpass_send(r->m->proxy_fd, &settled, sizeof(settled), NULL, 0) < 0) {
		monitor_fail_silently(r);
		end_gate(r, MONITOR_END_ATTACH_FAILED);
		return;
	}
	r->started = true;
	if (r->m->timeout_us)
		r->deadline_us = clock_mono_us() + r->m->timeout_us;
	monitor_start_finder(
		r, &(struct finder_sandbox){ .init = s->request.pid, .user = -1, .net = -1, .place = &s->place });
	(void)fdpass_send(s->keeper_fd, &word, sizeof(word), NULL, 0);
	(void)fdpass_send(r->m->report_fd, &done, sizeof(done), NULL, 0);
	hang_up(r);
}

void attached_message(struct run *r)
{
	struct attach_msg msg;
	size_t n_fds;
	int dir = -1;
	ssize_t n = fdpass_recv(r->m->report_fd, &msg, sizeof(msg), &dir, 1, &n_fds);

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (attach_msg_ok(&msg, n) && msg.type == ATTACH_ARMED && take_place(r, &msg, dir)) {
		armed(r);
		return;
	}
	/* Whoever asked for it is told by sandbox-net itself. */
	monitor_fail_silently(r);
	end_gate(r, MONITOR_END_ATTACH_FAILED);
}

/* ---- ends ---- */

void attached_order(struct run *r)
{
	uint32_t word = 0;
	ssize_t n = recv(r->m->attached->keeper_fd, &word, sizeof(word), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == sizeof(word) && word == KEEPER_DETACH)
		end_gate(r, MONITOR_END_DETACHED);
	else
		end_gate(r, n == sizeof(word) ? MONITOR_END_STOPPED : MONITOR_END_KILLED);
}

void attached_signal(struct run *r, int signo)
{
	if (signo == SIGINT || signo == SIGTERM || signo == SIGQUIT)
		end_gate(r, MONITOR_END_STOPPED);
}

void attached_link_gone(struct run *r)
{
	const bool there = place_exists(&r->m->attached->place);

	if (there && r->started && r->end == MONITOR_END_COMMAND)
		tell(r->m->tell_fd, "sandbox %s: its link to the gate was taken away; it has no network any more",
		     name_of(r));
	end_gate(r, there ? MONITOR_END_LINK_DELETED : MONITOR_END_SANDBOX_GONE);
}

/* Where somebody in the sandbox can make interfaces, this may be one of his, which lead nowhere: it is on record. Any other came from outside. */
void attached_link_other(struct run *r)
{
	if (!r->m->attached->request.alone || r->end != MONITOR_END_COMMAND)
		return;
	tell(r->m->tell_fd, "sandbox %s: another interface was added to it, so its gate is closed", name_of(r));
	end_gate(r, MONITOR_END_ANOTHER_INTERFACE);
}

void attached_timed_out(struct run *r)
{
	tell(r->m->tell_fd, "sandbox %s: the time limit is reached; its network is closed", name_of(r));
	end_gate(r, MONITOR_END_TIME_LIMIT);
}

void attached_proxy_ended(struct run *r, int status)
{
	if (monitor_proxy_said_why(status))
		monitor_fail_silently(r);
	else if (!r->started)
		monitor_fail_silently(r); /* for want of the launcher, as a rule, which says why itself */
	else if (r->end == MONITOR_END_COMMAND && WIFSIGNALED(status))
		monitor_fail(r, "the proxy was killed by signal %d; it has no network any more", WTERMSIG(status));
	else if (r->end == MONITOR_END_COMMAND)
		monitor_fail(r, "the proxy ended early; it has no network any more");
	else if (WIFSIGNALED(status) || WEXITSTATUS(status) != 0)
		monitor_fail(r, "the proxy failed at the end; the log may lack its last records");
	hang_up(r);
}
