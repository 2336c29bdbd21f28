/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Happy Eyeballs: order and timing of attempts, on a clock of the test's own.
 *
 * links: proxy/upstream/happy_eyeballs.c base/addr.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "proxy/upstream/happy_eyeballs.h"

#define MS 1000u

static struct addr v4(unsigned n)
{
	return addr_v4(0x01000000u + n);
}

static struct addr v6(unsigned n)
{
	return (struct addr){ ADDR_V6, { [0] = 0x20, [15] = (uint8_t)n } };
}

static void answer(struct happy *h, enum addr_family family, unsigned n, uint64_t now)
{
	struct addr addrs[HAPPY_ADDRS_MAX + 8] = { 0 };

	for (unsigned i = 0; i < n; i++)
		addrs[i] = family == ADDR_V4 ? v4(i) : v6(i);
	happy_answer(h, family, addrs, n, now);
}

static void starts(struct happy *h, uint64_t now, struct addr expected)
{
	struct addr out = { 0 };
	uint64_t wait = 0;

	assert_int_equal(happy_next(h, now, &out, &wait), HAPPY_START);
	assert_memory_equal(&out, &expected, sizeof(out));
}

static void waits(struct happy *h, uint64_t now, uint64_t expected)
{
	struct addr out = { 0 };
	uint64_t wait = 0;

	assert_int_equal(happy_next(h, now, &out, &wait), HAPPY_WAIT);
	assert_int_equal(wait, expected);
}

static void is_done(struct happy *h, uint64_t now)
{
	struct addr out;
	uint64_t wait;

	assert_int_equal(happy_next(h, now, &out, &wait), HAPPY_DONE);
}

static void fails(struct happy *h, struct addr a)
{
	happy_failed(h, &a);
}

static void test_ipv6_starts_at_once(void **state)
{
	struct happy h = { 0 };

	(void)state;
	waits(&h, 0, HAPPY_FOREVER);
	answer(&h, ADDR_V6, 2, 10 * MS);
	starts(&h, 10 * MS, v6(0));
	waits(&h, 10 * MS, 250 * MS);
	/* IPv4 comes while the first attempt runs: it has the next turn. */
	answer(&h, ADDR_V4, 1, 100 * MS);
	waits(&h, 100 * MS, 160 * MS);
	starts(&h, 260 * MS, v4(0));
	starts(&h, 510 * MS, v6(1));
	waits(&h, 510 * MS, HAPPY_FOREVER);
}

static void test_resolution_delay(void **state)
{
	struct happy late = { 0 }, in_time = { 0 }, none = { 0 };

	(void)state;
	answer(&late, ADDR_V4, 2, 5 * MS);
	waits(&late, 5 * MS, 50 * MS);
	waits(&late, 54 * MS, 1 * MS);
	starts(&late, 55 * MS, v4(0));
	answer(&late, ADDR_V6, 1, 60 * MS);
	waits(&late, 60 * MS, 245 * MS);
	starts(&late, 305 * MS, v6(0));

	answer(&in_time, ADDR_V4, 2, 5 * MS);
	answer(&in_time, ADDR_V6, 1, 30 * MS);
	starts(&in_time, 30 * MS, v6(0));
	starts(&in_time, 280 * MS, v4(0));

	answer(&none, ADDR_V4, 1, 5 * MS);
	answer(&none, ADDR_V6, 0, 6 * MS);
	starts(&none, 6 * MS, v4(0));
}

static void test_failure_goes_on_at_once(void **state)
{
	struct happy h = { 0 };

	(void)state;
	answer(&h, ADDR_V6, 1, 0);
	answer(&h, ADDR_V4, 3, 0);
	starts(&h, 0, v6(0));
	fails(&h, v6(0));
	starts(&h, 1 * MS, v4(0));
	starts(&h, 251 * MS, v4(1));
	/* An older attempt fails: the delay counts from the last start, as before. */
	fails(&h, v4(0));
	waits(&h, 252 * MS, 249 * MS);
	fails(&h, v4(1));
	starts(&h, 253 * MS, v4(2));
	waits(&h, 253 * MS, HAPPY_FOREVER);
	fails(&h, v4(2));
	is_done(&h, 254 * MS);
}

static void test_done_needs_both_answers(void **state)
{
	struct happy h = { 0 };

	(void)state;
	answer(&h, ADDR_V6, 0, 0);
	waits(&h, 0, HAPPY_FOREVER);
	answer(&h, ADDR_V4, 0, 1);
	is_done(&h, 1);
}

static void test_duplicates_and_bounds(void **state)
{
	struct happy h = { 0 };
	struct addr twice[3] = { v4(7), v4(7), v4(8) };
	struct addr out;
	uint64_t wait;
	unsigned n = 0;

	(void)state;
	answer(&h, ADDR_V6, 0, 0);
	happy_answer(&h, ADDR_V4, twice, 3, 0);
	starts(&h, 0, v4(7));
	starts(&h, 250 * MS, v4(8));
	waits(&h, 500 * MS, HAPPY_FOREVER);

	h = (struct happy){ 0 };
	answer(&h, ADDR_V6, HAPPY_ADDRS_MAX + 8, 0);
	answer(&h, ADDR_V4, HAPPY_ADDRS_MAX + 8, 0);
	for (uint64_t now = 0; now < 100; now++)
		if (happy_next(&h, now * 1000 * MS, &out, &wait) == HAPPY_START)
			n++;
	assert_int_equal(n, HAPPY_IN_FLIGHT_MAX);
	waits(&h, 100000 * MS, HAPPY_FOREVER);
	for (uint64_t now = 200; now < 300; now++) {
		happy_failed(&h, &out);
		if (happy_next(&h, now * 1000 * MS, &out, &wait) == HAPPY_START)
			n++;
	}
	assert_int_equal(n, 2 * HAPPY_ADDRS_MAX);
	is_done(&h, 400000 * MS);
}

/* The first three of four addresses lead nowhere: the fourth is tried within a second. */
static void test_three_dead(void **state)
{
	struct happy h = { 0 };

	(void)state;
	answer(&h, ADDR_V4, 4, 0);
	answer(&h, ADDR_V6, 0, 0);
	starts(&h, 0, v4(0));
	starts(&h, 250 * MS, v4(1));
	starts(&h, 500 * MS, v4(2));
	starts(&h, 750 * MS, v4(3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ipv6_starts_at_once),	cmocka_unit_test(test_resolution_delay),
		cmocka_unit_test(test_failure_goes_on_at_once), cmocka_unit_test(test_done_needs_both_answers),
		cmocka_unit_test(test_duplicates_and_bounds),	cmocka_unit_test(test_three_dead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
