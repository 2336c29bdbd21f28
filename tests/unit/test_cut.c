/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that are cut at the upload limit: when each is reset, with peers that acknowledge what they like.
 * links: proxy/conn/cut.c
 * wraps: ioctl
 */
#include "proxy/conn/cut.h"

#include <event2/event.h>
#include <linux/sockios.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "proxy/conn/env.h"

#define FDS_MAX 1024

static struct {
	struct conn_env env;
	uint64_t now;
	bool delivered[FDS_MAX]; /* by descriptor: its peer has everything */
	int peers[CUTS_MAX + 1], fds[CUTS_MAX + 1];
} t;

uint64_t clock_mono_us(void)
{
	return t.now;
}

int __wrap_ioctl(int fd, unsigned long what, ...);
int __wrap_ioctl(int fd, unsigned long what, ...)
{
	va_list args;

	assert_int_equal(what, SIOCOUTQ);
	assert_in_range(fd, 0, FDS_MAX - 1);
	va_start(args, what);
	*va_arg(args, int *) = t.delivered[fd] ? 0 : 1;
	va_end(args);
	return 0;
}

static int begin(void **state)
{
	(void)state;
	t.now = 1;
	t.env = (struct conn_env){ .base = event_base_new() };
	LIST_INIT(&t.env.cuts);
	for (int i = 0; i <= CUTS_MAX; i++) {
		int ends[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
			return -1;
		t.fds[i] = ends[0];
		t.peers[i] = ends[1];
		t.delivered[ends[0]] = false;
	}
	return t.env.base ? 0 : -1;
}

/* Whatever was cut is closed by then. */
static int end(void **state)
{
	(void)state;
	for (int i = 0; i <= CUTS_MAX; i++)
		close(t.peers[i]);
	event_base_free(t.env.base);
	return 0;
}

static bool is_closed(int i)
{
	char c;

	return recv(t.peers[i], &c, 1, 0) == 0;
}

/* The next look at those that wait. */
static void look(void)
{
	event_base_loop(t.env.base, EVLOOP_ONCE);
}

static void cut_up_to(int last)
{
	for (int i = 0; i <= last; i++)
		cut_delivered(&t.env, t.fds[i]);
}

static void closed_when_delivered(void **state)
{
	(void)state;
	t.delivered[t.fds[0]] = true;
	cut_up_to(2);
	assert_true(is_closed(0));
	assert_int_equal(t.env.n_cuts, 2);
	t.delivered[t.fds[2]] = true;
	while (t.env.n_cuts == 2)
		look();
	assert_false(is_closed(1));
	assert_true(is_closed(2));
	t.delivered[t.fds[1]] = true;
	while (t.env.n_cuts == 1)
		look();
	assert_true(is_closed(1));
	assert_true(LIST_EMPTY(&t.env.cuts));
	for (int i = 3; i <= CUTS_MAX; i++)
		close(t.fds[i]);
}

/* One more than may wait is reset at once; when a place is free, the next one may wait again. */
static void as_many_as_may_wait(void **state)
{
	int one[2];

	(void)state;
	cut_up_to(CUTS_MAX);
	assert_int_equal(t.env.n_cuts, CUTS_MAX);
	for (int i = 0; i < CUTS_MAX; i++)
		assert_false(is_closed(i));
	assert_true(is_closed(CUTS_MAX));
	t.delivered[t.fds[0]] = true;
	while (t.env.n_cuts == CUTS_MAX)
		look();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, one), 0);
	t.delivered[one[0]] = false;
	cut_delivered(&t.env, one[0]);
	assert_int_equal(t.env.n_cuts, CUTS_MAX);
	close(one[1]);
	cut_all(&t.env);
	assert_int_equal(t.env.n_cuts, 0);
	for (int i = 0; i <= CUTS_MAX; i++)
		assert_true(is_closed(i));
}

/* The time begins with the cut of each. */
static void no_longer_than_that(void **state)
{
	const uint64_t wait_us = CUT_WAIT_S * US_PER_S;

	(void)state;
	cut_delivered(&t.env, t.fds[0]);
	t.now += wait_us / 2;
	cut_delivered(&t.env, t.fds[1]);
	t.now += wait_us / 2 - 1;
	for (int i = 0; i < 8; i++)
		look();
	assert_int_equal(t.env.n_cuts, 2);
	t.now++;
	while (t.env.n_cuts == 2)
		look();
	assert_true(is_closed(0));
	assert_false(is_closed(1));
	t.now += wait_us / 2;
	while (t.env.n_cuts == 1)
		look();
	assert_true(is_closed(1));
	for (int i = 2; i <= CUTS_MAX; i++)
		close(t.fds[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(closed_when_delivered, begin, end),
		cmocka_unit_test_setup_teardown(as_many_as_may_wait, begin, end),
		cmocka_unit_test_setup_teardown(no_longer_than_that, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
