/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and synthetic addresses: one to one, stable, up to the limit.
 *
 * links: proxy/dns/dns_map.c base/addr.c base/name.c base/prefix.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/handoff.h"
#include "base/prefix.h"
#include "proxy/dns/dns_map.h"

static struct name name(const char *text)
{
	struct name n;

	assert_int_equal(name_canonical(text, strlen(text), &n), 0);
	return n;
}

static struct addr addr(const char *text)
{
	struct addr a;

	assert_int_equal(addr_parse(text, strlen(text), &a), 0);
	return a;
}

static void gives(struct dns_map *m, const char *host, enum addr_family family, const char *expected)
{
	struct name n = name(host);
	char text[ADDR_STRLEN];
	struct addr a;

	assert_int_equal(dns_map_addr(m, &n, -1, family, &a), 0);
	assert_string_equal(addr_format(&a, text), expected);
	assert_true(dns_map_covers(&a));
	assert_non_null(dns_map_name(m, &a));
	assert_string_equal(dns_map_name(m, &a)->s, host);
}

static void test_both_families(void **state)
{
	struct dns_map *m = dns_map_new();

	(void)state;
	gives(m, "a.test", ADDR_V4, "198.18.0.1");
	gives(m, "b.test", ADDR_V6, "fd6e:6574:6761:5000::c612:2");
	gives(m, "a.test", ADDR_V6, "fd6e:6574:6761:5000::c612:1");
	gives(m, "b.test", ADDR_V4, "198.18.0.2");
	gives(m, "a.test", ADDR_V4, "198.18.0.1");
	/* A name and one that it is the beginning of. */
	gives(m, "b.test.a", ADDR_V4, "198.18.0.3");
	dns_map_free(m);
}

static void test_unknown_addresses(void **state)
{
	static const char *const unknown[] = { "198.18.0.0",
					       "198.18.0.2",
					       "198.18.0.255",
					       "198.18.1.0",
					       "198.19.0.1",
					       "198.17.0.1",
					       "198.20.0.1",
					       "10.0.0.1",
					       "fd6e:6574:6761:5000::1",
					       "fd6e:6574:6761:5000::c612:2",
					       "fd6e:6574:6761:5001::c612:1",
					       "::c612:1",
					       "::ffff:198.18.0.1" };
	struct dns_map *m = dns_map_new();
	struct addr none = { 0 };

	(void)state;
	gives(m, "a.test", ADDR_V4, "198.18.0.1");
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		struct addr a = addr(unknown[i]);

		if (dns_map_name(m, &a))
			fail_msg("%s has a name", unknown[i]);
	}
	assert_null(dns_map_name(m, &none));
	assert_false(dns_map_covers(&none));
	dns_map_free(m);
}

/* The pools are those that the rest of the gate is built for. */
static void test_pools(void **state)
{
	static const char *const pools[] = { GATE_POOL4, GATE_POOL6 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct prefix p;
		struct addr a;

		assert_int_equal(prefix_parse(pools[i], strlen(pools[i]), &p), 0);
		a = p.addr;
		assert_true(dns_map_covers(&a));
		for (size_t bit = p.len; bit < 8 * addr_size(&a); bit++)
			a.b[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
		assert_true(dns_map_covers(&a));
		/* The neighbours just outside. */
		a = p.addr;
		a.b[(p.len - 1) / 8] ^= (uint8_t)(0x80 >> (p.len - 1) % 8);
		assert_false(dns_map_covers(&a));
	}
}

/* A rule's limit: names count for each rule by themselves, once, and a full rule takes nothing from the job. */
static void test_limit_of_a_rule(void **state)
{
	const struct name names[] = { name("a.test"), name("b.test"), name("c.test"), name("d.test") };
	struct dns_map *m = dns_map_new();
	struct addr a;

	(void)state;
	assert_int_equal(dns_map_limit_rule(m, 3, 2), 0);
	assert_int_equal(dns_map_limit_rule(m, 1, 1), 0);
	dns_map_limit(m, 3);
	assert_int_equal(dns_map_addr(m, &names[0], 3, ADDR_V4, &a), 0);
	assert_int_equal(dns_map_addr(m, &names[0], 3, ADDR_V6, &a), 0);
	assert_int_equal(dns_map_addr(m, &names[1], 3, ADDR_V4, &a), 0);
	assert_int_equal(dns_map_addr(m, &names[2], 3, ADDR_V4, &a), -EDQUOT);
	assert_int_equal(dns_map_addr(m, &names[1], 3, ADDR_V4, &a), 0);
	/* Known to the map, new to this rule. */
	assert_int_equal(dns_map_addr(m, &names[1], 1, ADDR_V4, &a), 0);
	assert_int_equal(dns_map_addr(m, &names[0], 1, ADDR_V4, &a), -EDQUOT);
	/* Rules without a limit, and none: the third name that the job may have is still there. */
	assert_int_equal(dns_map_addr(m, &names[2], 0, ADDR_V4, &a), 0);
	assert_int_equal(dns_map_addr(m, &names[2], 99, ADDR_V4, &a), 0);
	assert_int_equal(dns_map_addr(m, &names[3], -1, ADDR_V4, &a), -ENOSPC);
	assert_int_equal(dns_map_addr(m, &names[3], 0, ADDR_V4, &a), -ENOSPC);
	dns_map_free(m);
}

static void test_limit_of_a_rule_with_many(void **state)
{
	struct dns_map *m = dns_map_new();
	struct addr a;
	char text[32];

	(void)state;
	assert_int_equal(dns_map_limit_rule(m, 0, 1000), 0);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 2000; i++) {
			struct name n;

			/* Every other name is another rule's. */
			snprintf(text, sizeof(text), "n%d.test", i);
			n = name(text);
			assert_int_equal(dns_map_addr(m, &n, i % 2 ? 0 : -1, ADDR_V4, &a), 0);
		}
	}
	assert_int_equal(dns_map_addr(m, &(struct name){ 7, "n0.test" }, 0, ADDR_V4, &a), -EDQUOT);
	dns_map_free(m);
}

/* A smaller number of names: those that are there stay, and the limit never grows again. */
static void test_limit(void **state)
{
	const struct name names[] = { name("a.test"), name("b.test"), name("c.test") };
	struct dns_map *m = dns_map_new();
	struct addr a;

	(void)state;
	dns_map_limit(m, 2);
	dns_map_limit(m, 3);
	assert_int_equal(dns_map_addr(m, &names[0], -1, ADDR_V4, &a), 0);
	assert_int_equal(dns_map_addr(m, &names[1], -1, ADDR_V4, &a), 0);
	assert_int_equal(dns_map_addr(m, &names[2], -1, ADDR_V4, &a), -ENOSPC);
	gives(m, "a.test", ADDR_V4, "198.18.0.1");
	gives(m, "b.test", ADDR_V6, "fd6e:6574:6761:5000::c612:2");
	dns_map_free(m);
}

static void test_full(void **state)
{
	static uint8_t seen[1 << 17];
	struct dns_map *m = dns_map_new();
	const struct name *kept = NULL;
	struct addr a;
	char text[64];

	(void)state;
	memset(seen, 0, sizeof(seen));
	for (unsigned i = 0; i < DNS_MAP_MAX; i++) {
		uint32_t offset;
		struct name n;

		snprintf(text, sizeof(text), "n%u.wild.test", i);
		n = name(text);
		assert_int_equal(dns_map_addr(m, &n, -1, ADDR_V4, &a), 0);
		assert_true(a.b[0] == 198 && (a.b[1] == 18 || a.b[1] == 19));
		assert_true(a.b[3] != 0 && a.b[3] != 255);
		offset = (uint32_t)(a.b[1] & 1) << 16 | (uint32_t)a.b[2] << 8 | a.b[3];
		assert_int_equal(seen[offset]++, 0);
		assert_true(name_equal(dns_map_name(m, &a), &n));
		if (i == 0)
			kept = dns_map_name(m, &a);
	}
	assert_string_equal(kept->s, "n0.wild.test");
	assert_int_equal(dns_map_addr(m, &(struct name){ 6, "a.test" }, -1, ADDR_V4, &a), -ENOSPC);
	gives(m, "n0.wild.test", ADDR_V4, "198.18.0.1");
	gives(m, "n254.wild.test", ADDR_V4, "198.18.1.1");
	gives(m, "n65535.wild.test", ADDR_V4, "198.19.2.4");
	dns_map_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_families),
		cmocka_unit_test(test_unknown_addresses),
		cmocka_unit_test(test_pools),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_limit_of_a_rule),
		cmocka_unit_test(test_limit_of_a_rule_with_many),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
