/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of records that are held until the end of the loop's turn: all of them get into the file, in the order of
 * the calls, and what can't be written leaves neither a hole in seq nor a break in the chain.
 * links: proxy/audit/audit.c proxy/audit/records.c proxy/audit/flood.c proxy/audit/process.c proxy/audit/chain.c proxy/audit/log_file.c
 * links: proxy/audit/summary.c proxy/audit/summary_merge.c proxy/audit/summary_rows.c proxy/audit/tally.c proxy/audit/show.c proxy/audit/verbose.c
 * links: base/err.c base/json.c base/addr.c base/bucket.c base/clock.c base/tell.c base/name.c rules/reason.c rules/hint.c base/prefix.c rules/special.c
 * links: rules/limits.c rules/entry.c rules/pattern.c tests/unit/audit_bench.c rules/limit_met.c tests/unit/rules_stub.c
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/audit_bench.h"

static struct event_base *base;
static struct audit_bench b;

static int set_up(void **state)
{
	(void)state;
	base = event_base_new();
	audit_bench_open_loop(&b, base);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	audit_bench_close(&b);
	event_base_free(base);
	return 0;
}

static int deny(uint64_t conn)
{
	return audit_bench_decide(&b, conn, PROTO_TLS, "b.test", NAME_FROM_SNI, "192.0.2.1:443", REASON_NOT_ALLOWED);
}

static int closed(uint64_t conn)
{
	const struct audit_close c = { .conn = conn, .end = CLOSE_CLIENT };

	return audit_close(b.audit, &c);
}

/* One turn of the loop with nothing else in it. */
static void turn(void)
{
	assert_true(event_base_loop(base, EVLOOP_NONBLOCK) >= 0);
}

/* "decision 1, close 2": what the file has, each with its number of connection; fails unless seq goes from 1 by ones. */
static const char *kinds(void)
{
	static char out[4096];
	const char *line = audit_bench_text(b.fd);
	unsigned long seq = 0;

	out[0] = '\0';
	for (; *line; line = strchr(line, '\n') + 1) {
		const char *type = strstr(line, "\"type\":\"") + 8, *conn = strstr(line, "\"conn\":");
		const char *end = strchr(line, '\n');
		size_t at = strlen(out);

		assert_int_equal(strtoul(line + strlen("{\"v\":1,\"seq\":"), NULL, 10), ++seq);
		snprintf(out + at, sizeof(out) - at, "%s%.*s", at ? ", " : "", (int)strcspn(type, "\""), type);
		at = strlen(out);
		if (conn && conn < end)
			snprintf(out + at, sizeof(out) - at, " %lu", strtoul(conn + 7, NULL, 10));
	}
	return out;
}

static off_t size_now(void)
{
	struct stat st;

	assert_int_equal(fstat(b.fd, &st), 0);
	return st.st_size;
}

/* Files may not grow beyond `size` bytes, until it is -1. */
static void limit_files(off_t at)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = at < 0 ? limit.rlim_max : (rlim_t)at;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void until_the_turn_ends(void **state)
{
	(void)state;
	assert_int_equal(closed(1), 0);
	assert_int_equal(closed(2), 0);
	assert_string_equal(kinds(), "");
	turn();
	assert_string_equal(kinds(), "close 1, close 2");
	turn();
	assert_string_equal(kinds(), "close 1, close 2");
	audit_bench_assert_chain(&b);
}

/* What must be in the file takes along what was held before it. */
static void with_the_next(void **state)
{
	(void)state;
	assert_int_equal(closed(1), 0);
	assert_int_equal(deny(2), 0);
	assert_string_equal(kinds(), "close 1, decision 2");
	assert_int_equal(closed(3), 0);
	turn();
	assert_string_equal(kinds(), "close 1, decision 2, close 3");
	audit_bench_assert_chain(&b);
}

/* More than can be held. */
static void many(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(closed(i), 0);
	turn();
	audit_bench_assert_chain(&b);
	assert_non_null(strstr(audit_bench_text(b.fd), "\"seq\":1000,"));
}

/* A file that is removed is noticed in the next turn. */
static void removed(void **state)
{
	char path[] = "/tmp/netgate-test-XXXXXX";
	int fd = mkostemp(path, O_APPEND | O_CLOEXEC);

	(void)state;
	assert_int_equal(audit_move(b.audit, fd), 0);
	close(b.fd);
	b.fd = fd;
	assert_int_equal(deny(1), 0);
	unlink(path);
	turn();
	assert_int_equal(deny(2), -ENOENT);
	assert_int_equal(deny(3), -ENOENT);
	turn();
	assert_int_equal(closed(4), -ENOENT);
	assert_string_equal(kinds(), "decision 1");
}

static void at_the_end(void **state)
{
	const struct audit_end end = { .wait_status = 0 };

	(void)state;
	assert_int_equal(closed(1), 0);
	assert_int_equal(audit_end(b.audit, &end), 0);
	assert_string_equal(kinds(), "close 1, end");
	assert_int_equal(closed(2), 0);
	audit_free(b.audit);
	assert_string_equal(kinds(), "close 1, end, close 2");
	audit_bench_close(&(struct audit_bench){ .fd = b.fd, .verbose = { -1, -1 } });
	audit_bench_open_loop(&b, base);
}

/* What done() was told, in order: "1: 0, 2: -28". */
static char told[256];

static void note(void *arg, int error)
{
	size_t at = strlen(told);

	snprintf(told + at, sizeof(told) - at, "%s%u: %d", at ? ", " : "", *(const unsigned *)arg, error);
}

static const unsigned first = 1, second = 2, third = 3;

static struct audit_waiter waiter(const unsigned *number)
{
	told[0] = '\0';
	return (struct audit_waiter){ .done = note, .arg = (void *)(uintptr_t)number };
}

static int allow(uint64_t conn, struct audit_waiter *w)
{
	return audit_bench_decide_later(&b, conn, REASON_RULE, w);
}

/* Allows whose effect waits: one write for all, and each is told, in order, when its record is in the file. */
static void waited_for(void **state)
{
	struct audit_waiter w1 = waiter(&first), w2 = waiter(&second), w3 = waiter(&third);

	(void)state;
	assert_int_equal(allow(1, &w1), 0);
	assert_int_equal(allow(2, &w2), 0);
	assert_true(w1.waits && w2.waits);
	assert_string_equal(kinds(), "");
	/* A record that is written at once takes them along; what becomes of them is told at the end of the turn all the same. */
	assert_int_equal(deny(3), 0);
	assert_string_equal(kinds(), "decision 1, decision 2, decision 3");
	assert_int_equal(allow(4, &w3), 0);
	assert_string_equal(told, "");
	turn();
	assert_string_equal(kinds(), "decision 1, decision 2, decision 3, decision 4");
	assert_string_equal(told, "1: 0, 2: 0, 3: 0");
	assert_false(w1.waits || w2.waits || w3.waits);
	turn();
	assert_string_equal(told, "1: 0, 2: 0, 3: 0");
	audit_bench_assert_chain(&b);
}

/* A denial waits for nothing. */
static void waited_for_denial(void **state)
{
	struct audit_waiter w = waiter(&first);

	(void)state;
	assert_int_equal(audit_bench_decide_later(&b, 1, REASON_NOT_ALLOWED, &w), 0);
	assert_false(w.waits);
	assert_string_equal(kinds(), "decision 1");
	turn();
	assert_string_equal(told, "");
}

static void not_waited_for(void **state)
{
	struct audit_waiter w1 = waiter(&first), w2 = waiter(&second), w3 = waiter(&third);

	(void)state;
	assert_int_equal(allow(1, &w1), 0);
	assert_int_equal(allow(2, &w2), 0);
	assert_int_equal(allow(3, &w3), 0);
	audit_forget(b.audit, &w2);
	assert_int_equal(audit_await(b.audit, &w1), 0);
	assert_string_equal(kinds(), "decision 1, decision 2, decision 3");
	assert_false(w1.waits || w2.waits);
	assert_int_equal(audit_await(b.audit, &w1), 0);
	turn();
	assert_string_equal(told, "3: 0");
}

/* The disk is full: what waited is told so, and what was written before is not taken back. */
static void waited_in_vain(void **state)
{
	struct audit_waiter w1 = waiter(&first), w2 = waiter(&second), w3 = waiter(&third);
	const struct audit_end end = { .wait_status = 0 };

	(void)state;
	assert_int_equal(allow(1, &w1), 0);
	assert_int_equal(deny(2), 0);
	limit_files(size_now() + 8);
	assert_int_equal(allow(3, &w2), 0);
	assert_int_equal(allow(4, &w3), 0);
	assert_int_equal(audit_await(b.audit, &w3), -ENOSPC);
	turn();
	assert_string_equal(told, "1: 0, 2: -28");
	assert_int_equal(allow(5, &w3), -ENOSPC); /* known at once: the gap record doesn't fit */
	assert_false(w3.waits);
	limit_files(-1);
	assert_int_equal(allow(6, &w3), 0);
	turn();
	assert_string_equal(told, "1: 0, 2: -28, 3: 0");
	assert_string_equal(kinds(), "decision 1, decision 2, gap, decision 6");
	assert_non_null(strstr(audit_bench_text(b.fd), "\"lost\":3}"));
	/* What could not be recorded was not allowed. */
	assert_int_equal(audit_end(b.audit, &end), 0);
	assert_non_null(strstr(audit_bench_text(b.fd), "\"allowed\":2,"));
	audit_bench_assert_chain(&b);
}

/* With a line for a person, which says what is so, and without a loop nothing can wait. */
static void at_once(void **state)
{
	struct audit_waiter w = waiter(&first);
	struct audit_bench other;

	(void)state;
	audit_bench_open(&other, "j", false);
	assert_int_equal(audit_bench_decide_later(&other, 1, REASON_RULE, &w), 0);
	assert_false(w.waits);
	assert_non_null(strstr(audit_bench_text(other.fd), "\"conn\":1,"));
	audit_bench_close(&other);
}

/* The disk is full: what was held is lost as well, and counted. */
static void lost(void **state)
{
	off_t before;

	(void)state;
	assert_int_equal(deny(1), 0);
	before = size_now();
	limit_files(before + 8);
	assert_int_equal(closed(2), 0);
	assert_int_equal(closed(3), 0);
	assert_int_equal(deny(4), -ENOSPC);
	assert_int_equal(closed(5), -ENOSPC); /* known at once: the gap record doesn't fit */
	assert_int_equal(size_now(), before);
	limit_files(-1);
	assert_int_equal(closed(6), 0);
	turn();
	assert_string_equal(kinds(), "decision 1, gap, close 6");
	assert_non_null(strstr(audit_bench_text(b.fd), "\"lost\":4}"));
	audit_bench_assert_chain(&b);
}

/* Another run appends to the file, so that nothing is cut off: lines that are there in whole are not lost. */
static void lost_in_part(void **state)
{
	char path[64];
	off_t before;
	size_t line;
	int other;

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", b.fd);
	other = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(flock(other, LOCK_SH | LOCK_NB), 0);
	assert_int_equal(closed(1), 0);
	turn();
	before = size_now();
	line = (size_t)before;
	limit_files(before + (off_t)(2 * line + 8));
	assert_int_equal(closed(2), 0);
	assert_int_equal(closed(3), 0);
	assert_int_equal(closed(4), 0);
	turn();
	limit_files(-1);
	assert_int_equal(closed(5), 0);
	turn();
	assert_non_null(strstr(audit_bench_text(b.fd), "\"conn\":3,"));
	assert_non_null(strstr(audit_bench_text(b.fd), "\n{\"v\":1,\"\n{\"v\":1,\"seq\":4,"));
	assert_non_null(strstr(audit_bench_text(b.fd), "\"type\":\"gap\",\"lost\":1}\n{\"v\":1,\"seq\":5,"));
	close(other);
}

/* All of a line but its line feed is there: that comes before anything else, so the record is one. */
static void lost_but_the_end(void **state)
{
	char path[64];
	off_t before;
	int other;

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", b.fd);
	other = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(flock(other, LOCK_SH | LOCK_NB), 0);
	assert_int_equal(closed(1), 0);
	turn();
	before = size_now();
	limit_files(2 * before - 1);
	assert_int_equal(closed(2), 0);
	turn();
	assert_int_equal(size_now(), 2 * before - 1);
	limit_files(-1);
	assert_int_equal(closed(3), 0);
	turn();
	assert_string_equal(kinds(), "close 1, close 2, close 3");
	audit_bench_assert_chain(&b);
	close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(until_the_turn_ends, set_up, tear_down),
		cmocka_unit_test_setup_teardown(with_the_next, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(removed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(at_the_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(waited_in_vain, set_up, tear_down),
		cmocka_unit_test_setup_teardown(not_waited_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(waited_for_denial, set_up, tear_down),
		cmocka_unit_test_setup_teardown(waited_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lost, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lost_in_part, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lost_but_the_end, set_up, tear_down),
	};

	signal(SIGXFSZ, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
