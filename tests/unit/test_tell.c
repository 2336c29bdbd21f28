/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/tell: a line arrives whole, and nothing that the other holder of the
 * descriptor does can make the writer wait for ever.
 *
 * links: base/tell.c
 */
#include "base/tell.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* Makes `fd` standard error, opens the teller, and puts things back. */
static int open_on(int fd)
{
	int saved = dup(STDERR_FILENO), teller;

	assert_true(dup2(fd, STDERR_FILENO) >= 0);
	teller = tell_open();
	dup2(saved, STDERR_FILENO);
	close(saved);
	return teller;
}

static void test_line(void **state)
{
	char buf[256];
	int p[2], fd;

	(void)state;
	assert_int_equal(pipe(p), 0);
	fd = open_on(p[1]);
	tell(fd, "%s %d", "words", 7);
	assert_int_equal(read(p[0], buf, sizeof(buf)), 17);
	assert_memory_equal(buf, "netgate: words 7\n", 17);
	close(fd);
	close(p[0]);
	close(p[1]);
}

static void test_long_line_is_cut(void **state)
{
	char text[TELL_LINE_MAX * 2], buf[TELL_LINE_MAX * 2];
	int p[2], fd;
	ssize_t n;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(pipe(p), 0);
	fd = open_on(p[1]);
	tell(fd, "%s", text);
	n = read(p[0], buf, sizeof(buf));
	assert_true(n > 1000 && n <= TELL_LINE_MAX);
	assert_int_equal(buf[n - 1], '\n');
	close(fd);
	close(p[0]);
	close(p[1]);
}

/* Fills it through another description, as a sandbox would; the flags of that one stay what they were. */
static void fill(int fd)
{
	char block[4096] = { 0 };
	int flags = fcntl(fd, F_GETFL);

	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	while (write(fd, block, sizeof(block)) > 0 || write(fd, block, 1) > 0)
		;
	assert_int_equal(errno, EAGAIN);
	fcntl(fd, F_SETFL, flags);
}

static void full(int a, int b)
{
	int fd = open_on(b);
	char buf[4096];
	size_t before = 0, after = 0;
	ssize_t n;

	fill(b);
	tell(fd, "nobody reads this"); /* returns: the test would hang otherwise */
	fcntl(a, F_SETFL, O_NONBLOCK);
	while ((n = read(a, buf, sizeof(buf))) > 0)
		before += (size_t)n;
	assert_true(before > 0);
	tell(fd, "but this");
	while ((n = read(a, buf, sizeof(buf))) > 0)
		after += (size_t)n;
	assert_int_equal(after, 18);
	close(fd);
	close(a);
	close(b);
}

static void test_full_pipe(void **state)
{
	int p[2];

	(void)state;
	assert_int_equal(pipe(p), 0);
	full(p[0], p[1]);
}

static void test_full_socket(void **state)
{
	int p[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p), 0);
	full(p[0], p[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_long_line_is_cut),
		cmocka_unit_test(test_full_pipe),
		cmocka_unit_test(test_full_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
