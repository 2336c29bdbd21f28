/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job's budget, with a clock that the test turns.
 *
 * links: proxy/conn/budget.c base/bucket.c
 */
#include "proxy/conn/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SECOND 1000000ull
#define YEAR   (365 * 86400 * SECOND)

static const struct limits none;

static void no_limits(void **state)
{
	struct budget b = budget_of(&none, 3, 5 * SECOND);

	(void)state;
	assert_null(budget_upload(&b));
	assert_true(budget_has_upload(&b, UINT64_MAX - 1));
	assert_int_equal(b.idle_us, 3600 * SECOND);
	for (int i = 0; i < 100000; i++)
		assert_int_equal(budget_admit(&b, false, 5 * SECOND), REASON_NONE);
	/* What the descriptors allow holds all the same. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(budget_admit(&b, true, 5 * SECOND), REASON_NONE);
	assert_int_equal(budget_admit(&b, true, 5 * SECOND), REASON_LIMIT_CONNECTIONS);
	assert_int_equal(budget_admit(&b, false, 5 * SECOND), REASON_NONE);
}

static void open_connections(void **state)
{
	const struct limits two = { .max[LIMIT_CONNECTIONS] = 2 }, many = { .max[LIMIT_CONNECTIONS] = 1000 };
	struct budget b = budget_of(&two, 100, 0), wide = budget_of(&many, 100, 0);

	(void)state;
	assert_int_equal(wide.open_max, 100);
	assert_int_equal(budget_admit(&b, true, 0), REASON_NONE);
	assert_int_equal(budget_admit(&b, true, 0), REASON_NONE);
	assert_int_equal(budget_admit(&b, true, 0), REASON_LIMIT_CONNECTIONS);
	budget_closed(&b);
	assert_int_equal(budget_admit(&b, true, 0), REASON_NONE);
	assert_int_equal(budget_admit(&b, true, 0), REASON_LIMIT_CONNECTIONS);
}

static void rate(void **state)
{
	const struct limits ten = { .max[LIMIT_RATE] = 10 };
	struct budget b = budget_of(&ten, 1000000, SECOND);
	uint64_t now = SECOND;
	int admitted = 0;

	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(budget_admit(&b, true, now), REASON_NONE);
	assert_int_equal(budget_admit(&b, true, now), REASON_LIMIT_RATE);
	assert_int_equal(b.open, 10);
	assert_int_equal(budget_admit(&b, true, now + SECOND / 10 - 1), REASON_LIMIT_RATE);
	assert_int_equal(budget_admit(&b, true, now + SECOND / 10), REASON_NONE);
	assert_int_equal(budget_admit(&b, true, now + SECOND / 10), REASON_LIMIT_RATE);
	/* A flood with odd intervals: exactly ten a second, nothing lost by rounding. */
	now += SECOND / 10;
	for (uint64_t at = now; at <= now + 100 * SECOND; at += 77)
		admitted += budget_admit(&b, true, at) == REASON_NONE;
	assert_in_range(admitted, 999, 1000);
}

static void rate_after_a_pause(void **state)
{
	static const uint64_t rates[] = { 1, 7, 1000000000 };

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		struct bucket b = bucket_full(rates[i], 3, 0);

		for (uint64_t at = 0; at < 100 * YEAR; at += 33 * YEAR) {
			for (int n = 0; n < 3; n++)
				assert_true(bucket_take(&b, at));
			assert_false(bucket_take(&b, at));
		}
	}
}

/* One refused for the other limit costs nothing. */
static void refusals_are_free(void **state)
{
	const struct limits both = { .max[LIMIT_RATE] = 2, .max[LIMIT_CONNECTIONS] = 1 };
	struct budget b = budget_of(&both, 100, 0);

	(void)state;
	assert_int_equal(budget_admit(&b, true, 0), REASON_NONE);
	for (int i = 0; i < 10; i++)
		assert_int_equal(budget_admit(&b, true, 0), REASON_LIMIT_CONNECTIONS);
	budget_closed(&b);
	assert_int_equal(budget_admit(&b, true, 0), REASON_NONE);
	budget_closed(&b);
	for (int i = 0; i < 10; i++)
		assert_int_equal(budget_admit(&b, true, 0), REASON_LIMIT_RATE);
	assert_int_equal(b.open, 0);
}

static void upload(void **state)
{
	const struct limits l = { .max[LIMIT_UPLOAD] = 100, .max[LIMIT_IDLE] = SECOND };
	struct budget b = budget_of(&l, 100, 0);
	uint64_t *left = budget_upload(&b);

	(void)state;
	assert_int_equal(b.idle_us, SECOND);
	assert_int_equal(*left, 100);
	assert_true(budget_has_upload(&b, 100));
	assert_false(budget_has_upload(&b, 101));
	*left -= 99;
	assert_true(budget_has_upload(&b, 0));
	assert_true(budget_has_upload(&b, 1));
	*left -= 1;
	assert_false(budget_has_upload(&b, 0));
}

/* A rule inherits what it does not say, and can't give more than the job has. */
static void of_a_rule(void **state)
{
	const struct limits l = { .max[LIMIT_IDLE] = 100 * SECOND }, quick = { .max[LIMIT_IDLE] = SECOND };
	const struct limits few = { .max[LIMIT_CONNECTIONS] = 2, .max[LIMIT_UPLOAD] = 9 };
	struct budget plain = budget_of(&none, 50, 0), job = budget_of(&l, 50, 0), b;

	(void)state;
	b = budget_of_rule(&quick, &job, 0);
	assert_int_equal(b.idle_us, SECOND);
	assert_int_equal(b.open_max, 50);
	assert_null(budget_upload(&b));
	assert_int_equal(budget_of_rule(&l, &plain, 0).idle_us, 100 * SECOND);
	b = budget_of_rule(&few, &job, 0);
	assert_int_equal(b.idle_us, 100 * SECOND);
	assert_int_equal(b.open_max, 2);
	assert_int_equal(*budget_upload(&b), 9);
	job.idle_us = YEAR;
	assert_int_equal(budget_of_rule(&few, &job, 0).idle_us, YEAR);
	job.idle_us = SECOND / 2;
	assert_int_equal(budget_of_rule(&quick, &job, 0).idle_us, SECOND / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_limits),	      cmocka_unit_test(open_connections),  cmocka_unit_test(rate),
		cmocka_unit_test(rate_after_a_pause), cmocka_unit_test(refusals_are_free), cmocka_unit_test(upload),
		cmocka_unit_test(of_a_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
