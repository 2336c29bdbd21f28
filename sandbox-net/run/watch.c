/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One loop over three descriptors: signals, the channel to init, the monitor.
 *
 * Job control. A command that is stopped (Ctrl-Z) gives the terminal back and
 * the monitor stops itself, so that the shell sees its job stop. When the
 * shell continues the job, SIGCONT comes here too: the command's group gets
 * the terminal again, if it is ours to give, and goes on.
 */
#include "sandbox-net/run/watch.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox-net/resources/resources.h"
#include "sandbox-net/run/channel.h"
#include "sandbox-net/run/report.h"
#include "sandbox-net/run/run.h"
#include "sandbox-net/run/terminal.h"

static const int passed_on[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP, SIGWINCH };

struct state {
	pid_t command; /* as seen here; its process group too */
	int status;    /* wait status, once `ended` */
	bool ended;
	bool abandoned; /* the monitor is gone */
};

void watch_block_signals(struct watch *w, sigset_t *old)
{
	struct sigaction sa;

	sigemptyset(&w->signals);
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(*passed_on); i++)
		if (sigaction(passed_on[i], NULL, &sa) == 0 && sa.sa_handler != SIG_IGN)
			sigaddset(&w->signals, passed_on[i]);
	sigprocmask(SIG_BLOCK, &w->signals, old);
}

void watch_end(pid_t init_pid, int channel)
{
	if (channel >= 0)
		close(channel);
	if (init_pid <= 0)
		return;
	kill(init_pid, SIGKILL);
	while (waitpid(init_pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}

static void on_signal(struct watch *w, struct state *s, int signals)
{
	struct signalfd_siginfo si;

	if (read(signals, &si, sizeof(si)) != sizeof(si))
		return;
	if (si.ssi_signo == SIGCONT && s->command > 0)
		terminal_give(w->terminal, s->command);
	channel_send(w->channel, CHANNEL_SIGNAL, (int)si.ssi_signo, NULL);
}

static void on_stopped(struct watch *w, struct state *s, int signo)
{
	/* It wanted the terminal and the shell has put us in the foreground meanwhile (fg of a running job). */
	if ((signo == SIGTTIN || signo == SIGTTOU) && terminal_give(w->terminal, s->command)) {
		channel_send(w->channel, CHANNEL_SIGNAL, SIGCONT, NULL);
		return;
	}
	if (w->terminal->fd < 0)
		return; /* no job control: whoever stopped it continues it */
	terminal_take_back(w->terminal);
	report_stopped(w->report);
}

static void on_channel(struct watch *w, struct state *s)
{
	struct channel_msg msg;
	pid_t pid;

	if (channel_recv(w->channel, &msg, &pid) != 1) {
		s->status = SIGKILL; /* init was killed: so was the command */
		s->ended = true;
		return;
	}
	switch (msg.type) {
	case CHANNEL_STARTED:
		s->command = pid;
		report_started(w->report, pid);
		break;
	case CHANNEL_EXEC:
		report_exec(w->report, w->command, msg.value, msg.text);
		break;
	case CHANNEL_STOPPED:
		on_stopped(w, s, msg.value);
		break;
	case CHANNEL_ENDED:
		s->status = msg.value;
		s->ended = true;
		break;
	default:
		break;
	}
}

static void watch_loop(struct watch *w, struct state *s, int signals)
{
	struct pollfd fds[] = {
		{ .fd = signals, .events = POLLIN },
		{ .fd = w->channel, .events = POLLIN },
		{ .fd = w->report->fd, .events = POLLIN },
	};

	while (!s->ended && !s->abandoned) {
		if (poll(fds, 3, -1) < 0) {
			s->abandoned = errno != EINTR;
			continue;
		}
		if (fds[1].revents)
			on_channel(w, s);
		if (fds[0].revents && !s->ended)
			on_signal(w, s, signals);
		/* The monitor says nothing: whatever comes is its end, or a monitor out of its mind. */
		if (fds[2].revents)
			s->abandoned = true;
	}
}

int watch_run(struct watch *w)
{
	struct resource_hits hits;
	struct state s = { 0 };
	int signals;

	signals = signalfd(-1, &w->signals, SFD_CLOEXEC | SFD_NONBLOCK);
	w->terminal->given = terminal_is_ours(w->terminal); /* the command takes it itself, before it can want it */
	if (signals < 0 || channel_send(w->channel, CHANNEL_GO, w->terminal->given, NULL))
		s.abandoned = true;
	watch_loop(w, &s, signals);
	watch_end(w->init_pid, w->channel);
	terminal_take_back(w->terminal);
	terminal_close(w->terminal);
	resources_end(w->resources, &hits);
	report_ended(w->report, s.ended ? s.status : SIGKILL, &hits);
	if (!s.ended)
		return RUN_FAILED;
	return WIFEXITED(s.status) ? WEXITSTATUS(s.status) : 128 + WTERMSIG(s.status);
}
