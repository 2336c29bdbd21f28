/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How descriptors are shared out.
 *
 * links: proxy/process/descriptors.c
 */
#include "proxy/process/descriptors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proxy/conn/cut.h"
#include "proxy/conn/pipe_pool.h"
#include "proxy/dns/dns_server.h"
#include "proxy/process/attribution.h"
#include "proxy/upstream/resolver.h"

#define OWN 40 /* what the proxy has open without a connection, and some more */

static const uint64_t others =
	OWN + 2 * PIPE_POOL_MAX + DNS_TCP_CLIENTS_MAX + RESOLVER_SOCKETS_MAX + ATTRIBUTION_MAX + CUTS_MAX;

/* Every use at its bound at once, and there are descriptors still. */
static void test_all_fit(void **state)
{
	(void)state;
	for (uint64_t limit = 512; limit < 100000; limit++) {
		const struct descriptors d = descriptors_share(limit);

		assert_in_range(d.connections, DESCRIPTORS_CONNS_LEAST, limit);
		assert_true(2 * d.connections + d.races + others <= limit);
	}
}

/* What is kept back is little: two descriptors a connection. */
static void test_most_are_connections(void **state)
{
	(void)state;
	assert_in_range(descriptors_share(1024).connections, 300, 512);
	assert_in_range(descriptors_share(20000).connections, 9500, 10000);
	assert_in_range(descriptors_share(1048576).connections, 523500, 524288);
	assert_in_range(descriptors_share(20000).races, 100, 1000);
}

static void test_grows_with_the_limit(void **state)
{
	(void)state;
	for (uint64_t limit = 0; limit < 30000; limit++) {
		assert_true(descriptors_share(limit).connections <= descriptors_share(limit + 1).connections);
		assert_true(descriptors_share(limit).races <= descriptors_share(limit + 1).races);
	}
}

static void test_ends(void **state)
{
	(void)state;
	assert_int_equal(descriptors_share(0).connections, DESCRIPTORS_CONNS_LEAST);
	assert_int_equal(descriptors_share(0).races, 0);
	assert_true(descriptors_share(UINT64_MAX).connections > UINT64_MAX / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_fit),
		cmocka_unit_test(test_most_are_connections),
		cmocka_unit_test(test_grows_with_the_limit),
		cmocka_unit_test(test_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
