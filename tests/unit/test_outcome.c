/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The summary as data: what the proxy writes, and what its reader believes.
 * links: proxy/audit/audit.c proxy/audit/records.c proxy/audit/flood.c proxy/audit/process.c proxy/audit/chain.c proxy/audit/log_file.c proxy/audit/outcome.c
 * links: proxy/audit/summary.c proxy/audit/summary_merge.c proxy/audit/summary_rows.c proxy/audit/tally.c proxy/audit/show.c
 * links: proxy/audit/verbose.c base/json.c base/addr.c base/bucket.c base/clock.c base/tell.c base/name.c rules/reason.c rules/hint.c base/prefix.c
 * links: rules/special.c rules/limits.c rules/entry.c rules/pattern.c base/err.c tests/unit/audit_bench.c rules/limit_met.c tests/unit/rules_stub.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "proxy/audit/outcome.h"
#include "tests/unit/audit_bench.h"

#define ROWS_MAX 256

static struct outcome rows[ROWS_MAX];

/* The rows of a job; returns how many there are before the last one, OUTCOME_MORE. */
static size_t read_rows(const struct audit_bench *b)
{
	int fd = memfd_create("rows", MFD_CLOEXEC);
	ssize_t n;

	audit_outcomes(b->audit, fd);
	n = pread(fd, rows, sizeof(rows), 0);
	close(fd);
	assert_true(n > 0 && (size_t)n % sizeof(*rows) == 0);
	for (size_t i = 0; i < (size_t)n / sizeof(*rows); i++)
		assert_true(outcome_ok(&rows[i]));
	assert_int_equal(rows[(size_t)n / sizeof(*rows) - 1].kind, OUTCOME_MORE);
	return (size_t)n / sizeof(*rows) - 1;
}

static void written(void **state)
{
	struct audit_close c = { .conn = 1, .up = 10, .down = 20, .end = CLOSE_CLIENT };
	struct audit_drop d = { .proto = "udp", .port = 9, .reason = REASON_UDP, .count = 3, .bytes = 90 };
	struct audit_bench b;

	(void)state;
	audit_bench_open(&b, "j", false);
	assert_int_equal(read_rows(&b), 0);
	c.host = audit_bench_name("ok.test");
	c.dst = audit_bench_endpoint("198.18.0.1:443");
	assert_int_equal(audit_close(b.audit, &c), 0);
	audit_bench_decide(&b, 2, PROTO_DNS, "bad.test", NAME_FROM_DNS, "10.200.0.1:53", REASON_NOT_ALLOWED);
	audit_bench_decide(&b, 3, PROTO_TLS, "bad.test", NAME_FROM_SNI, "192.0.2.1:443", REASON_NOT_ALLOWED);
	d.dst = audit_bench_endpoint("192.0.2.7:9").addr;
	assert_int_equal(audit_drop(b.audit, &d), 0);
	assert_int_equal(read_rows(&b), 3);
	assert_int_equal(rows[0].kind, OUTCOME_ALLOWED);
	assert_string_equal(rows[0].what, "ok.test");
	assert_int_equal(rows[0].connections, 1);
	assert_int_equal(rows[0].up, 10);
	assert_int_equal(rows[0].down, 20);
	/* The look-up and the connection are one row, as in the text. */
	assert_int_equal(rows[1].kind, OUTCOME_DENIED);
	assert_int_equal(rows[1].reason, REASON_NOT_ALLOWED);
	assert_int_equal(rows[1].port, 443);
	assert_int_equal(rows[1].attempts, 1);
	assert_int_equal(rows[1].lookups, 1);
	assert_int_equal(rows[2].kind, OUTCOME_DROPPED);
	assert_string_equal(rows[2].what, "192.0.2.7");
	assert_string_equal(rows[2].proto, "udp");
	assert_int_equal(rows[2].packets, 3);
	audit_bench_close(&b);
}

static void bounded(void **state)
{
	struct audit_bench b;
	char dst[32];

	(void)state;
	audit_bench_open(&b, "j", false);
	for (int i = 0; i < OUTCOME_ROWS_MAX + 7; i++) {
		snprintf(dst, sizeof(dst), "192.0.2.%d:443", i);
		audit_bench_decide(&b, 1, PROTO_ANY, NULL, NAME_FROM_SNI, dst, REASON_NO_NAME);
	}
	assert_int_equal(read_rows(&b), OUTCOME_ROWS_MAX);
	assert_int_equal(rows[OUTCOME_ROWS_MAX].attempts, 7);
	assert_int_equal(rows[OUTCOME_ROWS_MAX].connections, 0);
	audit_bench_close(&b);
}

static void not_believed(void **state)
{
	struct outcome good = { .kind = OUTCOME_DENIED, .what = "a.test" }, bad;

	(void)state;
	assert_true(outcome_ok(&good));
	bad = good;
	bad.kind = OUTCOME_KIND_COUNT;
	assert_false(outcome_ok(&bad));
	bad = good;
	bad.reason = 1000;
	assert_false(outcome_ok(&bad));
	bad = good;
	bad.port = 65536;
	assert_false(outcome_ok(&bad));
	bad = good;
	memset(bad.what, 'x', sizeof(bad.what));
	assert_false(outcome_ok(&bad));
	bad = good;
	bad.text[0] = '\x1b';
	assert_false(outcome_ok(&bad));
	bad = good;
	bad.allow[0] = '\x80';
	assert_false(outcome_ok(&bad));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written),
		cmocka_unit_test(bounded),
		cmocka_unit_test(not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
