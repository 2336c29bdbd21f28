/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See the header. States: both children alive; the launcher gone (the sandbox
 * is too: the proxy is told to finish); the proxy gone first (a failure: the
 * sandbox is ended, for it has no network and leaves no record any more).
 * A message that is not of the right size, type or order is a failure as well.
 */
#include "proxy/process/monitor_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdpass.h"
#include "base/report.h"
#include "base/tell.h"
#include "proxy/process/capture.h"
#include "proxy/process/counters.h"
#include "proxy/process/finder.h"
#include "proxy/process/proxy.h"
#include "proxy/process/session.h"
#include "proxy/process/stop.h"

static const int forwarded[] = { SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2 };

void monitor_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(*forwarded); i++)
		sigaddset(set, forwarded[i]);
}

void monitor_fail(struct run *r, const char *fmt, ...)
{
	char text[MONITOR_ERROR_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!r->failed && !r->m->error[0])
		memcpy(r->m->error, text, sizeof(text));
	if (!r->failed && r->m->attached)
		tell(r->m->tell_fd, "sandbox %s: %s", r->m->attached->request.name, text);
	else if (!r->failed)
		tell(r->m->tell_fd, "%s", text);
	r->failed = true;
	r->status = EXIT_NETGATE;
}

/* The same when a person has been told already. */
void monitor_fail_silently(struct run *r)
{
	r->failed = true;
	r->status = EXIT_NETGATE;
}

/* Ends the sandbox: the launcher takes the end of its stream as the order to kill everything in it. */
static void end_sandbox(struct run *r)
{
	/* It still says how it ended. */
	if (!r->ending && r->m->report_fd >= 0)
		(void)shutdown(r->m->report_fd, SHUT_WR);
	r->ending = true;
	/* Should it not obey, its own death ends the sandbox just as well. */
	if (!r->kill_us)
		r->kill_us = clock_mono_us() + MONITOR_GRACE_S * US_PER_S;
}

/* Where the log was moved or removed, the proxy gets the file that is there now. */
static void look_after_log(struct run *r)
{
	const struct monitor_msg msg = { .type = MONITOR_LOG };

	(void)log_watch_look(&r->m->log);
	if (r->m->log.fresh && r->m->proxy_fd >= 0 &&
	    fdpass_send(r->m->proxy_fd, &msg, sizeof(msg), r->m->log.fd, 1) == 0)
		r->m->log.fresh = false;
}

void monitor_finish_proxy(struct run *r)
{
	const struct monitor_msg msg = {
		.type = MONITOR_FINISH, .status = r->wait_status, .ended = r->end, .hits = r->m->hits
	};

	look_after_log(r);
	if (r->m->proxy_fd < 0)
		return;
	if (fdpass_send(r->m->proxy_fd, &msg, sizeof(msg), NULL, 0) < 0) {
		close(r->m->proxy_fd);
		r->m->proxy_fd = -1;
	}
}

void monitor_note(struct monitor *m, const char *text)
{
	if (m->n_notes < MONITOR_NOTES_MAX && (m->notes[m->n_notes] = strdup(text)))
		m->n_notes++;
}

static void take_hits(struct monitor *m, const struct resource_hits *hits)
{
	char text[TELL_LINE_MAX];

	m->hits = *hits;
	if (hits->oom_kills) {
		snprintf(text, sizeof(text), "the memory limit was reached: %" PRIu64 " process%s killed",
			 hits->oom_kills, hits->oom_kills == 1 ? " was" : "es were");
		monitor_note(m, text);
	}
	if (hits->forks_refused) {
		snprintf(text, sizeof(text), "the limit of processes was reached: %" PRIu64 " could not be started",
			 hits->forks_refused);
		monitor_note(m, text);
	}
}

/* ---- the proxy's end ---- */

static void proxy_ended(struct run *r, int status)
{
	r->m->proxy = 0;
	if (r->m->attached) {
		attached_proxy_ended(r, status);
		return;
	}
	if (monitor_proxy_said_why(status)) {
		monitor_fail_silently(r);
	} else if (r->m->launcher && r->wait_status == -1) {
		if (WIFSIGNALED(status))
			monitor_fail(r,
				     "the proxy was killed by signal %d; the command is ended, for it has no network "
				     "any more",
				     WTERMSIG(status));
		else if (!r->launcher_failed)
			monitor_fail(r, "the proxy ended early; the command is ended, for it has no network any more");
	} else if (WIFSIGNALED(status) || WEXITSTATUS(status) != 0) {
		monitor_fail(r, "the proxy failed at the end of the job; the log may lack its last records");
	}
	if (r->m->launcher)
		end_sandbox(r);
}

/*
 * The launcher fails for want of the proxy, too; then what counts is why that one ended. A proxy that says nothing
 * has ended for want of the launcher.
 */
static void reap_proxy(struct run *r)
{
	int status;

	if (!r->m->proxy || waitpid(r->m->proxy, &status, WNOHANG) != r->m->proxy)
		return;
	if (WIFSIGNALED(status) || WEXITSTATUS(status) == PROXY_SAID_WHY)
		proxy_ended(r, status);
	else
		r->m->proxy = 0;
}

/* ---- the launcher's reports ---- */

static void command_ended(struct run *r, int status)
{
	r->wait_status = status;
	r->m->ms = r->started ? (clock_mono_us() - r->started_us) / 1000 : 0;
	if (!r->failed)
		r->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Takes one report. False when there was none. */
static bool on_report(struct run *r)
{
	struct report_msg msg;
	int fds[REPORT_FDS];
	size_t n_fds = 0;
	ssize_t n = fdpass_recv(r->m->report_fd, &msg, sizeof(msg), fds, REPORT_FDS, &n_fds);

	if (n == -EAGAIN || n == -EINTR)
		return false;
	if (n != sizeof(msg)) {
		/* The end of the stream: its exit, which SIGCHLD tells. */
		if (n != 0)
			monitor_fail(r, "the launcher sent a malformed report");
		end_sandbox(r);
		close(r->m->report_fd);
		r->m->report_fd = -1;
		return false;
	}
	tell_printable(msg.text, sizeof(msg.text));
	if (msg.type == REPORT_SANDBOX && n_fds == REPORT_FDS)
		monitor_start_finder(r, &(struct finder_sandbox){
						.init = msg.value, .user = fds[REPORT_USER], .net = fds[REPORT_NET] });
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
	switch (msg.type) {
	case REPORT_SANDBOX:
		break;
	case REPORT_FIXED:
		r->m->log.path = NULL;
		break;
	case REPORT_NOTE:
		monitor_note(r->m, msg.text);
		break;
	case REPORT_STARTED:
		r->started = true;
		r->started_us = clock_mono_us();
		r->command = msg.value;
		if (r->m->timeout_us)
			r->deadline_us = clock_mono_us() + r->m->timeout_us;
		break;
	case REPORT_STOPPED:
		stop_until(r->kill_us ? r->kill_us : r->deadline_us);
		break;
	case REPORT_FAILED:
		r->launcher_failed = true;
		reap_proxy(r);
		monitor_fail(r, "%s", msg.text);
		end_sandbox(r);
		break;
	case REPORT_EXEC:
		monitor_fail(r, "%s", msg.text);
		r->status = msg.value == EXIT_NOT_EXECUTABLE ? EXIT_NOT_EXECUTABLE : EXIT_NOT_FOUND;
		break;
	case REPORT_ENDED:
		command_ended(r, msg.value);
		take_hits(r->m, &msg.hits);
		break;
	default:
		monitor_fail(r, "the launcher sent a report of unknown type %u", msg.type);
		end_sandbox(r);
	}
	return true;
}

/* ---- the proxy's requests ---- */

/* Once, and only what it should be: it goes to the terminal. */
static bool take_head(struct monitor *m, const char head[static REPORT_HEAD_MAX])
{
	size_t n = strspn(head, "0123456789abcdef");

	if (m->head[0] || n != 64 || head[n] != '\0')
		return false;
	memcpy(m->head, head, n + 1);
	return true;
}

static void read_counters(const struct run *r, int nft_fd)
{
	struct monitor_msg answer = { .type = MONITOR_COUNTED };

	answer.failed = counters_read(nft_fd, answer.packets, answer.bytes) < 0;
	(void)fdpass_send(r->m->proxy_fd, &answer, sizeof(answer), NULL, 0);
}

/* Does what the proxy asks for. False for what it may not send: it is not the program any more that was started. */
static bool obey(struct run *r, const struct monitor_msg *msg, int nft_fd)
{
	switch (msg->type) {
	case MONITOR_COUNTERS:
		if (nft_fd < 0)
			return false;
		read_counters(r, nft_fd);
		return true;
	case MONITOR_ENDED:
		return nft_fd < 0 && take_head(r->m, msg->head);
	case MONITOR_LINK_GONE:
		if (nft_fd >= 0 || !r->m->attached)
			return false;
		attached_link_gone(r);
		return true;
	case MONITOR_LINK_OTHER:
		if (nft_fd >= 0 || !r->m->attached)
			return false;
		attached_link_other(r);
		return true;
	default:
		return false;
	}
}

static void on_proxy(struct run *r)
{
	struct monitor_msg msg;
	int nft_fd = -1;
	size_t n_fds = 0;
	ssize_t n = fdpass_recv(r->m->proxy_fd, &msg, sizeof(msg), &nft_fd, 1, &n_fds);
	bool ok;

	if (n == -EAGAIN || n == -EINTR)
		return;
	ok = n == sizeof(msg) && obey(r, &msg, n_fds ? nft_fd : -1);
	if (n_fds > 0)
		close(nft_fd);
	if (ok)
		return;
	/* The end of the stream, or its reset, is its exit, which SIGCHLD tells. */
	if (n > 0 || n == -EMSGSIZE || n == -EPROTO) {
		monitor_fail(r, "the proxy sent a message that it may not send, and is ended");
		if (r->m->proxy)
			kill(r->m->proxy, SIGKILL);
	}
	close(r->m->proxy_fd);
	r->m->proxy_fd = -1;
}

/* ---- children, signals, time ---- */

static void launcher_ended(struct run *r, int status)
{
	r->m->launcher = 0;
	tty_restore(&r->m->tty, r->command); /* before the summary is written to it */
	if (r->wait_status == -1 && !r->failed)
		monitor_fail(r,
			     WIFSIGNALED(status) ? "the launcher was killed by signal %d; the sandbox is gone with it"
						 : "the launcher ended early with status %d",
			     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	end_sandbox(r);
	monitor_finish_proxy(r);
}

static void reap(struct run *r)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		/* What the launcher still had to say was sent before it died; and the proxy may have ended for just that. */
		if (pid == r->m->launcher || (pid == r->m->proxy && !r->m->attached && !monitor_proxy_said_why(status)))
			while (r->m->report_fd >= 0 && on_report(r))
				;
		if (pid == r->m->launcher) {
			launcher_ended(r, status);
		} else if (pid == r->m->proxy) {
			proxy_ended(r, status);
		} else if (pid == r->finder) {
			r->finder = 0;
		}
	}
}

static void on_signal(struct run *r)
{
	struct signalfd_siginfo info;

	if (read(r->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP)
		look_after_log(r); /* at once, as daemons do; what it means to the command is the command's business */
	if (info.ssi_signo == SIGCHLD) {
		reap(r);
	} else if (r->m->attached) {
		attached_signal(r, (int)info.ssi_signo);
	} else if (r->m->launcher) {
		r->forwarded |= UINT64_C(1) << info.ssi_signo;
		kill(r->m->launcher, (int)info.ssi_signo);
	}
}

/* The command had its time, and its grace: by force, then. */
static void end_by_force(struct run *r)
{
	if (r->timed_out && r->wait_status == -1) {
		r->wait_status = SIGKILL;
		tell(r->m->tell_fd, "it did not end in %d s and was killed", MONITOR_GRACE_S);
	}
	end_sandbox(r);
}

/* The proxy of a command that ran is waited for: it may be held up by who reads the log, and has an end to record. */
static bool may_kill_proxy(const struct run *r)
{
	return r->m->proxy && (r->m->attached || (!r->m->launcher && !r->started));
}

/* Milliseconds until the next deadline, for poll(), -1 for none; does what is due. */
static int next_deadline(struct run *r)
{
	uint64_t now = clock_mono_us(), next;

	if (now >= r->m->log.next_us)
		look_after_log(r);
	if (r->deadline_us && now >= r->deadline_us && r->m->attached) {
		attached_timed_out(r);
	} else if (r->deadline_us && now >= r->deadline_us) {
		r->deadline_us = 0;
		r->timed_out = true;
		if (r->m->launcher)
			kill(r->m->launcher, SIGTERM);
		r->kill_us = now + MONITOR_GRACE_S * US_PER_S;
		tell(r->m->tell_fd, "the time limit is reached; ending the command");
	}
	if (r->kill_us && now >= r->kill_us && r->m->launcher) {
		r->kill_us = now + MONITOR_GRACE_S * US_PER_S;
		if (!r->ending)
			end_by_force(r);
		else
			kill(r->m->launcher, SIGKILL);
	}
	if (r->kill_us && now >= r->kill_us && may_kill_proxy(r)) {
		r->kill_us = now + MONITOR_GRACE_S * US_PER_S;
		kill(r->m->proxy, SIGKILL);
	}
	next = r->deadline_us && r->deadline_us < r->m->log.next_us ? r->deadline_us : r->m->log.next_us;
	if (r->kill_us && r->kill_us < next && (r->m->launcher || may_kill_proxy(r)))
		next = r->kill_us;
	return next == LOG_WATCH_NEVER ? -1 : next <= now ? 0 : (int)((next - now) / 1000) + 1;
}

/*
 * A command that is told to end and does so by that signal: netgate does the
 * same, so that a shell's loop or script around it ends as well. The terminal
 * sent Ctrl-C to the command's group alone, where without netgate it would have
 * been the whole group of the job.
 */
static void choose_death(struct run *r)
{
	const int signo = r->wait_status != -1 && WIFSIGNALED(r->wait_status) ? WTERMSIG(r->wait_status) : 0;
	const bool typed = signo == SIGINT || signo == SIGQUIT;

	if (r->failed || r->timed_out || (!typed && signo != SIGTERM && signo != SIGHUP))
		return;
	r->m->died_of = signo;
	r->m->died_of_key = typed && !(r->forwarded >> signo & 1) && tty_is_ours(&r->m->tty);
}

/* Waits for what comes next on `fds`, and on the pipes that must never be full. Returns as poll(2). */
static int wait_for_events(struct run *r, struct pollfd *fds, size_t n)
{
	const struct monitor *m = r->m;
	int rc;

	for (size_t i = 0; i < m->n_captures; i++)
		fds[n + i] = (struct pollfd){ .fd = m->captures[i].fd, .events = POLLIN };
	rc = poll(fds, n + m->n_captures, next_deadline(r));
	for (size_t i = 0; rc > 0 && i < m->n_captures; i++)
		if (fds[n + i].revents)
			capture_read(&m->captures[i]);
	return rc;
}

int monitor_run(struct monitor *m)
{
	struct run r = { .m = m, .finder_fd = -1, .status = EXIT_NETGATE, .wait_status = -1 };
	sigset_t set;

	stop_never_by_writing();
	monitor_signals(&set);
	r.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r.signal_fd < 0) {
		monitor_fail(&r, "signalfd: %s", strerror(errno));
		end_sandbox(&r);
	}
	monitor_offer_finder(&r);
	while (m->launcher || m->proxy) {
		struct pollfd fds[4 + MONITOR_CAPTURES_MAX] = {
			{ .fd = r.signal_fd, .events = POLLIN },
			{ .fd = m->report_fd, .events = POLLIN },
			{ .fd = m->proxy_fd, .events = POLLIN },
			{ .fd = m->attached && r.end == MONITOR_END_COMMAND ? m->attached->keeper_fd : -1,
			  .events = POLLIN }
		};

		if (wait_for_events(&r, fds, 4) < 0 && errno != EINTR)
			break;
		if (fds[1].revents && m->report_fd >= 0 && m->attached)
			attached_message(&r);
		else if (fds[1].revents && m->report_fd >= 0)
			(void)on_report(&r);
		if (fds[3].revents)
			attached_order(&r);
		if (fds[2].revents && m->proxy_fd >= 0)
			on_proxy(&r);
		if (fds[0].revents)
			on_signal(&r);
	}
	monitor_end_finder(&r);
	for (size_t i = 0; i < m->n_captures; i++)
		capture_finish(&m->captures[i]);
	m->timed_out = r.timed_out && r.started;
	m->wait_status = r.wait_status;
	tty_restore(&m->tty, r.command); /* once more: the command may have outlived a killed launcher for a moment */
	choose_death(&r);
	tty_close(&m->tty);
	close(r.signal_fd);
	return m->timed_out ? EXIT_TIMED_OUT : r.status;
}
