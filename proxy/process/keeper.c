/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One loop over the socket, signals, the sessions and the connections. A
 * connection says one thing: a request for a session takes it along, the
 * other questions are answered here: at once, when the gates that are to end are gone, or as fast as the answers are read. It waits for no reader.
 */
#include "proxy/process/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/attach.h"
#include "base/clock.h"
#include "base/fdpass.h"
#include "base/tell.h"
#include "proxy/process/job_socket.h"
#include "proxy/process/log_watch.h"
#include "proxy/process/monitor.h"
#include "proxy/process/session.h"

/* A sandbox, from its request to the end of its session. */
struct guest {
	uint64_t number; /* in the order in which they came, from 1 */
	pid_t pid;	 /* of the session */
	int fd;
	int dir; /* in which the sandbox is found, as the request brought it */
	bool armed;
	struct attach_msg item; /* as it is listed */
};

/* A connection. */
enum caller_state {
	CALLER_ASKS,
	CALLER_WAITS, /* for the end of the gate of `name`, or "" for all */
	CALLER_LISTS, /* those after number `listed` are still to be told */
};

struct caller {
	int fd;
	enum caller_state state;
	char name[ATTACH_NAME_MAX + 8];
	uint64_t listed;
};

struct kept {
	struct keeper *k;
	int signal_fd;
	struct guest guests[KEEPER_GUESTS_MAX];
	struct caller callers[KEEPER_CALLERS_MAX];
	size_t n_guests, n_callers;
	uint64_t n_came;      /* guests ever */
	uint64_t deadline_us; /* for the first sandbox; 0: none */
	bool came;	      /* some sandbox was attached */
	bool stopping;
	int status; /* to exit with: that of the last gate */
};

/* ---- answers ---- */

/* `dir`: a descriptor that goes with it, or -1. Returns 0 or -errno; -EAGAIN: there is no room now. */
static int send_msg(int fd, struct attach_msg *msg, enum attach_type type, int dir)
{
	msg->magic = ATTACH_MAGIC;
	msg->type = type;
	return fdpass_send(fd, msg, sizeof(*msg), &dir, dir >= 0);
}

static void done(int fd)
{
	struct attach_msg msg = { 0 };

	(void)send_msg(fd, &msg, ATTACH_DONE, -1);
}

__attribute__((format(printf, 2, 3))) static void refuse(int fd, const char *fmt, ...)
{
	struct attach_msg msg = { 0 };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg.text, sizeof(msg.text), fmt, ap);
	va_end(ap);
	(void)send_msg(fd, &msg, ATTACH_REFUSED, -1);
}

/* ---- sessions ---- */

static struct guest *find_guest(struct kept *s, const char *name)
{
	for (size_t i = 0; i < s->n_guests; i++)
		if (strcmp(s->guests[i].item.name, name) == 0)
			return &s->guests[i];
	return NULL;
}

/* What of the keeper's a session must not hold: its death would not be seen, nor its lock be free. */
static void become_session(struct kept *s, int connection)
{
	close(s->k->socket->listen_fd);
	close(s->k->socket->lock_fd);
	close(s->signal_fd);
	for (size_t i = 0; i < s->n_guests; i++) {
		close(s->guests[i].fd);
		close(s->guests[i].dir);
	}
	for (size_t i = 0; i < s->n_callers; i++)
		if (s->callers[i].fd != connection)
			close(s->callers[i].fd);
}

static void run_session(struct kept *s, struct session *session, pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
		_exit(EXIT_NETGATE);
	become_session(s, session->connection);
	_exit(s->k->session(s->k->arg, session));
}

/* Takes `*dir` when it succeeds. */
static void add_guest(struct kept *s, const struct attach_msg *request, int *dir, int connection)
{
	struct session session = { .request = *request,
				   .place = { .dir = *dir, .dev = request->dev, .ino = request->ino },
				   .connection = connection };
	struct guest *guest = &s->guests[s->n_guests];
	pid_t self = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		refuse(connection, "socketpair: %s", strerror(errno));
		return;
	}
	memcpy(session.place.file, request->file, sizeof(session.place.file));
	session.keeper_fd = pair[1];
	*guest = (struct guest){ .number = s->n_came + 1, .fd = pair[0], .dir = *dir, .item = *request };
	guest->pid = fork();
	if (guest->pid == 0) {
		close(pair[0]);
		run_session(s, &session, self);
	}
	close(pair[1]);
	if (guest->pid < 0) {
		close(pair[0]);
		refuse(connection, "fork: %s", strerror(errno));
		return;
	}
	*dir = -1;
	s->n_guests++;
	s->n_came++;
}

static bool is_own_network(const struct attach_msg *request)
{
	struct stat st;

	return stat("/proc/self/ns/net", &st) == 0 && st.st_dev == request->dev && st.st_ino == request->ino;
}

/* As add_guest(). */
static void on_request(struct kept *s, const struct attach_msg *request, int *dir, int connection)
{
	struct stat st;

	if (s->stopping)
		refuse(connection, "job %s is ending", s->k->job);
	else if (!attach_name_ok(request->name))
		refuse(connection, "that is not a name for a sandbox");
	else if (fstat(*dir, &st) || !S_ISDIR(st.st_mode) || !request->file[0] || strstr(request->file, ".."))
		refuse(connection, "the request does not say where the sandbox is");
	else if (is_own_network(request))
		refuse(connection, "that is netgate's own network namespace");
	else if (find_guest(s, request->name))
		refuse(connection, "job %s has a sandbox %s already; choose another --name", s->k->job, request->name);
	else if (s->n_guests == KEEPER_GUESTS_MAX)
		refuse(connection, "job %s has %d sandboxes, which is as many as it may", s->k->job, KEEPER_GUESTS_MAX);
	else if (!log_watch_look(s->k->log))
		refuse(connection, "the log %s was removed, and can't be opened anew", s->k->log->path);
	else
		add_guest(s, request, dir, connection);
}

static void order(struct kept *s, const char *name, enum keeper_word word)
{
	const uint32_t message = word;

	for (size_t i = 0; i < s->n_guests; i++)
		if (!name[0] || strcmp(s->guests[i].item.name, name) == 0)
			(void)fdpass_send(s->guests[i].fd, &message, sizeof(message), NULL, 0);
}

static void stop(struct kept *s)
{
	s->stopping = true;
	order(s, "", KEEPER_STOP);
}

static void on_guest(struct kept *s, struct guest *guest)
{
	uint32_t word = 0;
	ssize_t n = recv(guest->fd, &word, sizeof(word), MSG_DONTWAIT);

	if (n != sizeof(word) || word != KEEPER_ARMED || guest->armed)
		return;
	guest->armed = s->came = true;
	guest->item.since = (uint64_t)time(NULL);
	guest->item.pid = guest->pid;
	if (!s->k->quiet)
		tell(s->k->tell_fd, "sandbox %s is attached: %s", guest->item.name, guest->item.to);
}

/* Those who wait for the end of gates that are all gone now. */
static void answer_waiting(struct kept *s)
{
	for (size_t i = 0; i < s->n_callers; i++) {
		struct caller *c = &s->callers[i];

		if (c->state != CALLER_WAITS || (c->name[0] ? find_guest(s, c->name) != NULL : s->n_guests > 0))
			continue;
		done(c->fd);
		close(c->fd);
		*c = s->callers[--s->n_callers];
		i--;
	}
}

static void guest_ended(struct kept *s, struct guest *guest, int status)
{
	const bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;

	/* It may have been attached in its last moment. */
	on_guest(s, guest);
	if (guest->armed) {
		s->status = failed ? EXIT_NETGATE : 0;
		if (!s->k->quiet && !failed)
			tell(s->k->tell_fd, "sandbox %s: its gate is closed", guest->item.name);
	}
	close(guest->fd);
	close(guest->dir);
	*guest = s->guests[--s->n_guests];
	answer_waiting(s);
}

/* ---- connections ---- */

/* The first of those that are attached and came after this number, or NULL. */
static const struct guest *next_attached(const struct kept *s, uint64_t number)
{
	const struct guest *next = NULL;

	for (size_t i = 0; i < s->n_guests; i++) {
		const struct guest *g = &s->guests[i];

		if (g->armed && g->number > number && (!next || g->number < next->number))
			next = g;
	}
	return next;
}

/* Tells of as many as there is room for. Returns true when more are to follow. */
static bool list(const struct kept *s, struct caller *c)
{
	const struct guest *next;

	c->state = CALLER_LISTS;
	do {
		struct attach_msg msg = { 0 };
		int r;

		next = next_attached(s, c->listed);
		if (next)
			msg = next->item;
		r = send_msg(c->fd, &msg, next ? ATTACH_ITEM : ATTACH_DONE, next ? next->dir : -1);
		if (r)
			return r == -EAGAIN;
		c->listed = next ? next->number : c->listed;
	} while (next);
	return false;
}

/* Returns true when the connection waits for the gates' end. */
static bool detach(struct kept *s, struct caller *c, const char *name)
{
	if (name[0] && !find_guest(s, name)) {
		refuse(c->fd, "job %s has no sandbox %s", s->k->job, name);
		return false;
	}
	if (s->n_guests == 0 && s->k->keep) {
		refuse(c->fd, "job %s has no sandbox, and its netgate goes on (--keep): kill %d ends it", s->k->job,
		       (int)getpid());
		return false;
	}
	/* Of all: this netgate has nothing more to wait for, also if no gate was in force yet. */
	if (!name[0] && !s->k->keep)
		s->stopping = true;
	if (s->n_guests == 0) {
		done(c->fd);
		return false;
	}
	c->state = CALLER_WAITS;
	memcpy(c->name, name, sizeof(c->name));
	order(s, name, KEEPER_DETACH);
	return true;
}

/* Takes the one message of a connection, or goes on with its answers. Returns false when the connection is to be closed here. */
static bool on_caller(struct kept *s, struct caller *c)
{
	struct attach_msg msg;
	size_t n_fds = 0;
	bool stays = false;
	int dir = -1;
	ssize_t n;

	if (c->state == CALLER_LISTS)
		return list(s, c);
	n = fdpass_recv(c->fd, &msg, sizeof(msg), &dir, 1, &n_fds);
	if (n == -EAGAIN || n == -EINTR)
		return true;
	if (c->state == CALLER_WAITS || !attach_msg_ok(&msg, n))
		msg.type = 0;
	if (msg.type == ATTACH_REQUEST && n_fds == 1)
		on_request(s, &msg, &dir, c->fd);
	else if (msg.type == ATTACH_LIST)
		stays = list(s, c);
	else if (msg.type == ATTACH_DETACH)
		stays = detach(s, c, msg.name);
	if (dir >= 0)
		close(dir);
	return stays;
}

/* Ours, or root's: nobody else may give a sandbox a gate, or take one away. */
static bool may_speak(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && (cred.uid == geteuid() || cred.uid == 0);
}

static void on_connection(struct kept *s)
{
	int fd = accept4(s->k->socket->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (!may_speak(fd)) {
		close(fd);
		return;
	}
	s->callers[s->n_callers++] = (struct caller){ .fd = fd };
}

/* ---- the loop ---- */

static void reap(struct kept *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (size_t i = 0; i < s->n_guests; i++)
			if (s->guests[i].pid == pid) {
				guest_ended(s, &s->guests[i], status);
				break;
			}
}

static void on_signal(struct kept *s)
{
	struct signalfd_siginfo info;

	if (read(s->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	switch (info.ssi_signo) {
	case SIGCHLD:
		reap(s);
		break;
	case SIGINT:
	case SIGTERM:
	case SIGQUIT:
		stop(s);
		break;
	case SIGHUP:
		(void)log_watch_look(s->k->log);
		for (size_t i = 0; i < s->n_guests; i++)
			kill(s->guests[i].pid, SIGHUP);
		break;
	default:
		break;
	}
}

/* Milliseconds for poll() until nobody came in time; -1: for ever. */
static int time_left(const struct kept *s)
{
	uint64_t now = clock_mono_us();

	if (!s->deadline_us || s->came || s->n_guests > 0)
		return -1;
	return now >= s->deadline_us ? 0 : (int)((s->deadline_us - now) / 1000) + 1;
}

static bool is_over(struct kept *s)
{
	if (s->n_guests > 0)
		return false;
	if (s->stopping || (s->came && !s->k->keep))
		return true;
	if (time_left(s) != 0)
		return false;
	tell(s->k->tell_fd, "no sandbox was attached to job %s in time", s->k->job);
	s->status = EXIT_NETGATE;
	return true;
}

static void turn(struct kept *s)
{
	static struct pollfd fds[2 + KEEPER_GUESTS_MAX + KEEPER_CALLERS_MAX];
	struct pollfd *guests = fds + 2, *callers = guests + s->n_guests;
	const size_t n_guests = s->n_guests, n_callers = s->n_callers;

	fds[0] = (struct pollfd){ .fd = s->signal_fd, .events = POLLIN };
	/* With all places taken, the next connection waits. */
	fds[1] = (struct pollfd){ .fd = n_callers < KEEPER_CALLERS_MAX ? s->k->socket->listen_fd : -1,
				  .events = POLLIN };
	for (size_t i = 0; i < n_guests; i++)
		guests[i] = (struct pollfd){ .fd = s->guests[i].armed ? -1 : s->guests[i].fd, .events = POLLIN };
	for (size_t i = 0; i < n_callers; i++)
		callers[i] = (struct pollfd){ .fd = s->callers[i].fd,
					      .events = s->callers[i].state == CALLER_LISTS ? POLLOUT : POLLIN };
	if (poll(fds, 2 + n_guests + n_callers, time_left(s)) <= 0)
		return;
	for (size_t i = 0; i < n_guests; i++)
		if (guests[i].revents)
			on_guest(s, &s->guests[i]);
	/* From the last to the first, for one that is closed is replaced by the last. */
	for (size_t i = n_callers; i-- > 0;)
		if (callers[i].revents && !on_caller(s, &s->callers[i])) {
			close(s->callers[i].fd);
			s->callers[i] = s->callers[--s->n_callers];
		}
	if (fds[1].revents)
		on_connection(s);
	if (fds[0].revents)
		on_signal(s);
}

int keeper_run(struct keeper *k)
{
	static struct kept s;
	sigset_t set;

	s = (struct kept){ .k = k, .deadline_us = k->wait_us ? clock_mono_us() + k->wait_us : 0 };
	monitor_signals(&set);
	s.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s.signal_fd < 0) {
		tell(k->tell_fd, "signalfd: %s", strerror(errno));
		return EXIT_NETGATE;
	}
	while (!is_over(&s))
		turn(&s);
	for (size_t i = 0; i < s.n_callers; i++)
		close(s.callers[i].fd);
	close(s.signal_fd);
	return s.status;
}
