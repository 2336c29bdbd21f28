/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper between many sandboxes and those who ask it, with sessions that do nothing but end when they are told.
 * wraps: accept4
 * links: proxy/process/keeper.c base/attach.c base/clock.c base/err.c base/fdpass.c base/tell.c
 */
#include "proxy/process/keeper.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/attach.h"
#include "base/fdpass.h"
#include "proxy/process/job_socket.h"
#include "proxy/process/log_watch.h"
#include "proxy/process/monitor.h"
#include "proxy/process/session.h"

#define GUEST_NAME 24 /* bytes */
#define GUESTS	   40
#define ROOM	   8192 /* bytes that the keeper can send without a reader: of these guests, some */

void monitor_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
}

bool log_watch_look(struct log_watch *w)
{
	(void)w;
	return true;
}

int __real_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
	const int room = ROOM, got = __real_accept4(fd, sa, len, flags);

	if (got >= 0 && setsockopt(got, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)))
		abort();
	return got;
}

/* Is attached at once, and over with the first word of the keeper's. */
static int session(void *arg, struct session *s)
{
	const struct attach_msg done = { .magic = ATTACH_MAGIC, .type = ATTACH_DONE };
	uint32_t word = KEEPER_ARMED;

	(void)arg;
	if (send(s->keeper_fd, &word, sizeof(word), 0) != sizeof(word) ||
	    fdpass_send(s->connection, &done, sizeof(done), NULL, 0) ||
	    recv(s->keeper_fd, &word, sizeof(word), 0) != sizeof(word))
		return 1;
	return 0;
}

static struct sockaddr_un addr = { .sun_family = AF_UNIX };
static pid_t keeper;

static void run_keeper(int listen_fd)
{
	struct job_socket sock = { .listen_fd = listen_fd, .lock_fd = -1 };
	struct keeper k = {
		.socket = &sock, .job = "job", .tell_fd = STDERR_FILENO, .quiet = true, .keep = true, .session = session
	};
	sigset_t set;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	monitor_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	_exit(keeper_run(&k));
}

static int begin(void **state)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)state;
	/* The abstract name is the caller's own, and gone with the socket. */
	snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1, "netgate-test-%d", (int)getpid());
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, SOMAXCONN), 0);
	keeper = fork();
	if (keeper == 0)
		run_keeper(fd);
	close(fd);
	return keeper > 0 ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	kill(keeper, SIGKILL);
	return waitpid(keeper, NULL, 0) == keeper ? 0 : -1;
}

/* Asks on a connection of its own, which it returns. */
static int ask(enum attach_type type, const char *name, int dir)
{
	struct attach_msg msg = { .magic = ATTACH_MAGIC, .type = type, .file = "net" };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(msg.name, sizeof(msg.name), "%s", name);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(fdpass_send(fd, &msg, sizeof(msg), &dir, dir >= 0), 0);
	return fd;
}

/* The next answer; its descriptor is closed. */
static void hear(int fd, struct attach_msg *msg)
{
	size_t n_fds;
	int dir;

	assert_true(attach_msg_ok(msg, fdpass_recv(fd, msg, sizeof(*msg), &dir, 1, &n_fds)));
	assert_int_equal(n_fds, msg->type == ATTACH_ITEM);
	if (n_fds)
		close(dir);
}

static void hear_done(int fd)
{
	struct attach_msg msg;

	hear(fd, &msg);
	assert_int_equal(msg.type, ATTACH_DONE);
	close(fd);
}

static void name_guest(char name[static GUEST_NAME], int i)
{
	snprintf(name, GUEST_NAME, "guest-%d", i);
}

static void attach_all(int n)
{
	int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[GUEST_NAME];

	for (int i = 0; i < n; i++) {
		name_guest(name, i);
		hear_done(ask(ATTACH_REQUEST, name, dir));
	}
	close(dir);
}

/* Reads a list to its end, and checks that it has each guest once, in their order, but for `without` (-1: nobody). */
static void check_list(int fd, int n, int without)
{
	struct attach_msg msg;
	char name[GUEST_NAME];

	for (int i = 0; i < n; i++) {
		if (i == without)
			continue;
		name_guest(name, i);
		hear(fd, &msg);
		assert_int_equal(msg.type, ATTACH_ITEM);
		assert_string_equal(msg.name, name);
		assert_true(msg.pid > 0 && msg.since > 0);
	}
	hear_done(fd);
}

static void detach(const char *name)
{
	hear_done(ask(ATTACH_DETACH, name, -1));
}

/* Others are answered meanwhile, and what changes behind the place where the list is, is in it. */
static void nobody_waits_for_a_reader(void **state)
{
	char name[GUEST_NAME];
	int slow;

	(void)state;
	check_list(ask(ATTACH_LIST, "", -1), 0, -1);
	attach_all(GUESTS);
	slow = ask(ATTACH_LIST, "", -1);
	for (int i = 0; i < 2 * KEEPER_CALLERS_MAX; i++)
		close(ask(ATTACH_LIST, "", -1));
	check_list(ask(ATTACH_LIST, "", -1), GUESTS, -1);
	name_guest(name, GUESTS - 2);
	detach(name);
	check_list(ask(ATTACH_LIST, "", -1), GUESTS, GUESTS - 2);
	check_list(slow, GUESTS, GUESTS - 2);
	detach("");
	check_list(ask(ATTACH_LIST, "", -1), 0, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nobody_waits_for_a_reader, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
