/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the clocks. clock_gettime() is wrapped by a definition of the
 * test's own, so that the calendar can be tried at any instant.
 * links: base/clock.c
 */
#include "base/clock.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const struct timespec *pretended; /* NULL: the real time */

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's names are reserved ones. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	if (!pretended)
		return (int)syscall(SYS_clock_gettime, id, ts);
	*ts = *pretended;
	return 0;
}

static void wall_is_rfc3339(void **state)
{
	static const struct {
		time_t sec;
		long nsec;
		const char *want;
	} cases[] = {
		{ 0, 0, "1970-01-01T00:00:00.000000Z" },
		{ 951782399, 999999999, "2000-02-28T23:59:59.999999Z" },
		{ 951782400, 1000, "2000-02-29T00:00:00.000001Z" },
		{ 951868800, 999, "2000-03-01T00:00:00.000000Z" },
		{ 1777889472, 123456789, "2026-05-04T10:11:12.123456Z" },
		{ 4107542400, 0, "2100-03-01T00:00:00.000000Z" }, /* 2100 is no leap year */
	};
	char buf[CLOCK_WALL_STRLEN];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct timespec ts = { .tv_sec = cases[i].sec, .tv_nsec = cases[i].nsec };

		pretended = &ts;
		assert_ptr_equal(clock_wall(buf), buf);
		pretended = NULL;
		assert_string_equal(buf, cases[i].want);
	}
}

/* Each day from 1970 to 2399, against the C library. */
static void every_day(void **state)
{
	char buf[CLOCK_WALL_STRLEN], want[CLOCK_WALL_STRLEN + 8];

	(void)state;
	for (time_t day = 0; day < 157000; day++) {
		struct timespec ts = { .tv_sec = day * 86400 + day % 86400 };
		struct tm tm;

		gmtime_r(&ts.tv_sec, &tm);
		strftime(want, sizeof(want), "%Y-%m-%dT%H:%M:%S.000000Z", &tm);
		pretended = &ts;
		clock_wall(buf);
		pretended = NULL;
		assert_string_equal(buf, want);
	}
}

static void mono_counts_microseconds(void **state)
{
	struct timespec ts = { .tv_sec = 5000000000, .tv_nsec = 1999 };
	uint64_t before, after;

	(void)state;
	pretended = &ts;
	assert_true(clock_mono_us() == UINT64_C(5000000000000001));
	pretended = NULL;
	before = clock_mono_us();
	after = clock_mono_us();
	assert_true(before > 0 && after >= before && after - before < 60000000);
}

/* It is never ahead, so that a deadline by it is not late, and it goes on. */
static void tick_follows_mono(void **state)
{
	uint64_t tick = clock_tick_us();
	uint64_t mono = clock_mono_us();

	(void)state;
	assert_true(tick <= mono);
	while (clock_tick_us() <= mono)
		poll(NULL, 0, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wall_is_rfc3339),
		cmocka_unit_test(every_day),
		cmocka_unit_test(mono_counts_microseconds),
		cmocka_unit_test(tick_follows_mono),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
