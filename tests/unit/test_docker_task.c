/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that goes on when whoever started it is ended with all of its process group, as by a terminal.
 * links: sandbox-net/docker/task.c base/err.c base/fds.c
 */
#include "sandbox-net/docker/task.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"

static int answer_and_go_on(void *arg, int fd, struct err *err)
{
	char byte;

	(void)arg;
	task_answer(fd);
	return recv(fd, &byte, 1, 0) == 1 ? err_set(err, "still there") : 0;
}

static int wait_and_read(int fd, struct err *err)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, -1), 1);
	return task_read(fd, err);
}

static void signal_of_the_terminal(void **state)
{
	struct err err = { "" };
	int fd;

	(void)state;
	/* Only we and the task are in the group. A task has the default for this one. */
	assert_int_equal(setpgid(0, 0), 0);
	signal(SIGINT, SIG_IGN);
	fd = task_start(answer_and_go_on, NULL, &err);
	assert_true(fd >= 0);
	assert_int_equal(wait_and_read(fd, &err), 1);
	assert_int_equal(kill(0, SIGINT), 0);
	(void)send(fd, "x", 1, MSG_NOSIGNAL);
	assert_int_equal(wait_and_read(fd, &err), -1);
	assert_string_equal(err.text, "still there");
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signal_of_the_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
