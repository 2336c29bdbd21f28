/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of descriptor passing. Each counts the open descriptors before and
 * after: one that stays behind would keep a gate alive.
 * links: base/fdpass.c
 */
#include "base/fdpass.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int sv[2];
static size_t open_before;

static size_t count_open(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int setup(void **state)
{
	(void)state;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv))
		return -1;
	open_before = count_open();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close(sv[0]);
	close(sv[1]);
	return 0;
}

/* `n` descriptors of /dev/null sent with `len` bytes; the sender's are closed again. */
static void send_fds(size_t n, size_t len)
{
	char msg[64] = "message";
	int fds[FDPASS_MAX] = { 0 };

	for (size_t i = 0; i < n; i++) {
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		assert_true(fds[i] >= 0);
	}
	assert_int_equal(fdpass_send(sv[0], msg, len, fds, n), 0);
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}

static void message_and_descriptors(void **state)
{
	char msg[64] = "";
	int fds[FDPASS_MAX];
	size_t n = 99;

	(void)state;
	send_fds(FDPASS_MAX, 8);
	assert_int_equal(fdpass_recv(sv[1], msg, sizeof(msg), fds, FDPASS_MAX, &n), 8);
	assert_string_equal(msg, "message");
	assert_int_equal(n, FDPASS_MAX);
	assert_int_equal(count_open(), open_before + FDPASS_MAX);
	for (size_t i = 0; i < n; i++) {
		struct stat st;

		assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
		assert_int_equal(fstat(fds[i], &st), 0);
		assert_true(S_ISCHR(st.st_mode));
		close(fds[i]);
	}
	assert_int_equal(count_open(), open_before);
}

static void order_is_kept(void **state)
{
	struct stat sent[2], got[2];
	size_t n = 0;
	char msg[8];
	int pipe_fds[2];
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	fds[0] = pipe_fds[1];
	fds[1] = sv[0];
	assert_int_equal(fstat(fds[0], &sent[0]), 0);
	assert_int_equal(fstat(fds[1], &sent[1]), 0);
	assert_int_equal(fdpass_send(sv[0], "x", 1, fds, 2), 0);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	assert_int_equal(fdpass_recv(sv[1], msg, sizeof(msg), fds, 2, &n), 1);
	assert_int_equal(n, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(fstat(fds[i], &got[i]), 0);
		assert_true(sent[i].st_ino == got[i].st_ino && sent[i].st_dev == got[i].st_dev);
		close(fds[i]);
	}
}

static void without_descriptors(void **state)
{
	char msg[64];
	size_t n = 99;

	(void)state;
	send_fds(0, 5);
	assert_int_equal(fdpass_recv(sv[1], msg, 5, NULL, 0, &n), 5);
	assert_int_equal(n, 0);
	n = 99;
	assert_int_equal(fdpass_recv(sv[1], msg, 5, NULL, 0, &n), -EAGAIN);
	assert_int_equal(n, 0);
}

static void too_many_descriptors(void **state)
{
	int fds[FDPASS_MAX];
	char msg[64];
	size_t n = 99;

	(void)state;
	send_fds(3, 8);
	assert_int_equal(fdpass_recv(sv[1], msg, sizeof(msg), fds, 2, &n), -EPROTO);
	assert_int_equal(n, 0);
	send_fds(1, 8);
	assert_int_equal(fdpass_recv(sv[1], msg, sizeof(msg), NULL, 0, &n), -EPROTO);
	assert_int_equal(count_open(), open_before);
	/* The next message is not harmed. */
	send_fds(1, 8);
	assert_int_equal(fdpass_recv(sv[1], msg, sizeof(msg), fds, 1, &n), 8);
	assert_int_equal(n, 1);
	close(fds[0]);
}

/* A hostile sender, who does not use fdpass_send(): more descriptors than the control buffer holds. */
static void far_too_many_descriptors(void **state)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int) * 100)];
	} control = { 0 };
	struct iovec iov = { .iov_base = (char[]){ "x" }, .iov_len = 1 };
	struct msghdr mh = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf, .msg_controllen = sizeof(control.buf)
	};
	struct cmsghdr *cm = CMSG_FIRSTHDR(&mh);
	int fds[FDPASS_MAX];
	size_t n = 99;
	char msg[8];

	(void)state;
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof(int) * 100);
	for (size_t i = 0; i < 100; i++)
		memcpy(CMSG_DATA(cm) + i * sizeof(int), &sv[0], sizeof(int));
	assert_int_equal(sendmsg(sv[0], &mh, 0), 1);
	assert_int_equal(fdpass_recv(sv[1], msg, sizeof(msg), fds, FDPASS_MAX, &n), -EPROTO);
	assert_int_equal(n, 0);
	assert_int_equal(count_open(), open_before);
}

/* The receiver's table is full: some descriptors can't be installed, so none may stay. */
static void no_room_for_descriptors(void **state)
{
	struct rlimit old, low;
	int fds[FDPASS_MAX];
	size_t n = 99;
	char msg[64];
	int top;

	(void)state;
	send_fds(4, 8);
	top = dup(0);
	assert_true(top >= 0);
	close(top);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = (struct rlimit){ .rlim_cur = (rlim_t)top + 2, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	assert_int_equal(fdpass_recv(sv[1], msg, sizeof(msg), fds, FDPASS_MAX, &n), -EPROTO);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(n, 0);
	assert_int_equal(count_open(), open_before);
}

static void too_long_message(void **state)
{
	int fds[FDPASS_MAX];
	char msg[8];
	size_t n = 99;

	(void)state;
	send_fds(2, 9);
	assert_int_equal(fdpass_recv(sv[1], msg, 8, fds, FDPASS_MAX, &n), -EMSGSIZE);
	assert_int_equal(n, 0);
	assert_int_equal(count_open(), open_before);
}

static void other_control_messages(void **state)
{
	int on = 1;
	int fds[FDPASS_MAX];
	char msg[64];
	size_t n = 99;

	(void)state;
	/* The kernel adds SCM_CREDENTIALS, which nobody asked for here. */
	assert_int_equal(setsockopt(sv[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
	send_fds(1, 8);
	assert_int_equal(fdpass_recv(sv[1], msg, sizeof(msg), fds, FDPASS_MAX, &n), -EPROTO);
	assert_int_equal(n, 0);
	assert_int_equal(count_open(), open_before);
}

static void ends_and_errors(void **state)
{
	int fds[FDPASS_MAX + 1] = { 0 };
	size_t n = 99;
	char msg[8];

	(void)state;
	assert_int_equal(fdpass_send(sv[0], "x", 1, fds, FDPASS_MAX + 1), -EINVAL);
	assert_int_equal(fdpass_send(sv[0], "x", 0, NULL, 0), -EINVAL);
	fds[0] = 999999;
	assert_int_equal(fdpass_send(sv[0], "x", 1, fds, 1), -EBADF);
	shutdown(sv[0], SHUT_WR);
	assert_int_equal(fdpass_recv(sv[1], msg, sizeof(msg), fds, FDPASS_MAX, &n), 0);
	assert_int_equal(n, 0);
	/* EPIPE comes back as an error, not as a signal. */
	assert_int_equal(fdpass_send(sv[0], "x", 1, NULL, 0), -EPIPE);
	assert_int_equal(fdpass_recv(-1, msg, sizeof(msg), fds, FDPASS_MAX, &n), -EBADF);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(message_and_descriptors),  T(order_is_kept),
		T(without_descriptors),	     T(too_many_descriptors),
		T(far_too_many_descriptors), T(no_room_for_descriptors),
		T(too_long_message),	     T(other_control_messages),
		T(ends_and_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
