/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of prefixes and of the map, the latter also against a plain list.
 * links: base/prefix.c base/addr.c tests/unit/guard_page.c
 */
#include "base/prefix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/guard_page.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int parse(const char *text, struct prefix *out)
{
	size_t len = strlen(text);
	int r = prefix_parse((const char *)guard_page_copy(text, len), len, out);

	guard_page_free();
	return r;
}

static struct prefix must_parse(const char *text)
{
	struct prefix p = { 0 };

	if (parse(text, &p))
		fail_msg("does not parse: %s", text);
	return p;
}

static struct addr an_addr(const char *text)
{
	struct addr a = { 0 };

	assert_int_equal(addr_parse(text, strlen(text), &a), 0);
	return a;
}

static void parses(void **state)
{
	static const struct {
		const char *in;
		const char *want; /* NULL: refused */
	} cases[] = {
		{ "192.0.2.0/24", "192.0.2.0/24" },
		{ "192.0.2.7", "192.0.2.7/32" },
		{ "192.0.2.7/32", "192.0.2.7/32" },
		{ "0.0.0.0/0", "0.0.0.0/0" },
		{ "128.0.0.0/1", "128.0.0.0/1" },
		{ "::/0", "::/0" },
		{ "2001:DB8::/32", "2001:db8::/32" },
		{ "2001:db8::1", "2001:db8::1/128" },
		{ "fe80::/10", "fe80::/10" },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127" },
		/* Host bits that are set. */
		{ "10.0.0.1/8", NULL },
		{ "192.0.2.128/24", NULL },
		{ "192.0.2.1/31", NULL },
		{ "128.0.0.0/0", NULL },
		{ "2001:db8::1/64", NULL },
		{ "fec0::/9", NULL },
		/* Malformed. */
		{ "", NULL },
		{ "/8", NULL },
		{ "10.0.0.0/", NULL },
		{ "10.0.0.0/33", NULL },
		{ "::/129", NULL },
		{ "10.0.0.0/08", NULL },
		{ "10.0.0.0/-1", NULL },
		{ "10.0.0.0/+8", NULL },
		{ "10.0.0.0/8 ", NULL },
		{ "10.0.0.0/8/8", NULL },
		{ "10.0.0.0/255.0.0.0", NULL },
		{ "10/8", NULL },
		{ "10.0.0.0/4294967304", NULL },
	};
	char buf[PREFIX_STRLEN];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct prefix p = { .len = 77 };

		if (parse(cases[i].in, &p) != (cases[i].want ? 0 : -1))
			fail_msg("wrong: \"%s\"", cases[i].in);
		if (cases[i].want)
			assert_string_equal(prefix_format(&p, buf), cases[i].want);
		else
			assert_int_equal(p.len, 77);
	}
}

static void contains(void **state)
{
	static const struct {
		const char *prefix;
		const char *addr;
		bool want;
	} cases[] = {
		{ "10.0.0.0/8", "10.255.255.255", true },
		{ "10.0.0.0/8", "11.0.0.0", false },
		{ "10.0.0.0/8", "9.255.255.255", false },
		{ "192.0.2.64/26", "192.0.2.127", true },
		{ "192.0.2.64/26", "192.0.2.128", false },
		{ "192.0.2.7", "192.0.2.7", true },
		{ "192.0.2.7", "192.0.2.6", false },
		{ "0.0.0.0/0", "255.1.2.3", true },
		{ "0.0.0.0/0", "::1", false },
		{ "::/0", "1.2.3.4", false },
		{ "::/0", "ffff::1", true },
		{ "::ffff:0:0/96", "::ffff:1.2.3.4", true },
		{ "::ffff:0:0/96", "1.2.3.4", false },
		{ "fe80::/10", "febf:ffff::1", true },
		{ "fe80::/10", "fec0::", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct prefix p = must_parse(cases[i].prefix);
		struct addr a = an_addr(cases[i].addr);

		if (prefix_contains(&p, &a) != cases[i].want)
			fail_msg("%s contains %s: wrong", cases[i].prefix, cases[i].addr);
	}
}

static void flip(struct addr *a, size_t bit)
{
	a->b[bit / 8] = (uint8_t)(a->b[bit / 8] ^ 0x80 >> bit % 8);
}

/* Of each length: the first bit behind the prefix does not matter, and the last one in it does. */
static void contains_to_the_bit(void **state)
{
	static const char *const addrs[] = { "165.90.195.60", "a55a:c33c:96:9669:ff00:ff:1234:8001" };

	(void)state;
	for (size_t i = 0; i < COUNT(addrs); i++) {
		struct addr a = an_addr(addrs[i]);
		size_t bits = addr_size(&a) * 8;
		struct prefix p = { .addr = { .family = a.family } };

		for (; p.len <= bits; p.len++) {
			struct addr other = a;

			if (p.len > 0 && a.b[(p.len - 1) / 8] & 0x80 >> (p.len - 1) % 8)
				flip(&p.addr, p.len - 1u);
			assert_true(prefix_contains(&p, &a));
			if (p.len < bits)
				flip(&other, p.len);
			assert_true(prefix_contains(&p, &other));
			if (p.len > 0)
				flip(&other, p.len - 1u);
			assert_int_equal(prefix_contains(&p, &other), p.len == 0);
		}
	}
}

struct seen {
	uint32_t values[256];
	size_t n;
	size_t stop_after;
};

static bool note(void *arg, uint32_t value)
{
	struct seen *seen = arg;

	assert_true(seen->n < COUNT(seen->values));
	seen->values[seen->n++] = value;
	return seen->n == seen->stop_after;
}

static void visits_longest_first(void **state)
{
	static const char *const prefixes[] = { "10.0.0.0/8",  "0.0.0.0/0",	"10.1.2.3", "10.1.0.0/16",
						"10.2.0.0/16", "2001:db8::/32", "::/0" };
	static const uint32_t want4[] = { 2, 3, 0, 1 }, want6[] = { 5, 6 };
	struct prefix_map *map = prefix_map_new();
	struct addr v4 = an_addr("10.1.2.3"), v6 = an_addr("2001:db8::1"), mapped = an_addr("::ffff:10.1.2.3");
	struct addr none = { 0 };
	struct seen seen = { 0 };

	(void)state;
	assert_non_null(map);
	assert_false(prefix_map_visit(map, &v4, note, &seen));
	assert_int_equal(seen.n, 0);
	for (uint32_t i = 0; i < COUNT(prefixes); i++) {
		struct prefix p = must_parse(prefixes[i]);

		assert_int_equal(prefix_map_add(map, &p, i, NULL), 0);
	}
	assert_false(prefix_map_visit(map, &v4, note, &seen));
	assert_int_equal(seen.n, 4);
	assert_memory_equal(seen.values, want4, sizeof(want4));
	seen = (struct seen){ .stop_after = 2 };
	assert_true(prefix_map_visit(map, &v4, note, &seen));
	assert_int_equal(seen.n, 2);
	seen = (struct seen){ 0 };
	assert_false(prefix_map_visit(map, &v6, note, &seen));
	assert_int_equal(seen.n, 2);
	assert_memory_equal(seen.values, want6, sizeof(want6));
	seen = (struct seen){ 0 };
	prefix_map_visit(map, &mapped, note, &seen);
	assert_int_equal(seen.n, 1); /* ::/0 alone: never the IPv4 prefixes */
	assert_int_equal(seen.values[0], 6);
	assert_false(prefix_map_visit(map, &none, note, &seen));
	prefix_map_free(map);
}

static void same_prefix_stays(void **state)
{
	struct prefix p = must_parse("10.0.0.0/8"), zero4 = must_parse("0.0.0.0/0"), zero6 = must_parse("::/0");
	struct prefix_map *map = prefix_map_new();
	struct addr a = an_addr("10.0.0.1");
	struct seen seen = { 0 };
	uint32_t old = 99;

	(void)state;
	assert_non_null(map);
	assert_int_equal(prefix_map_add(map, &p, 1, &old), 0);
	assert_int_equal(old, 99);
	assert_int_equal(prefix_map_add(map, &p, 2, &old), 1);
	assert_int_equal(old, 1);
	assert_int_equal(prefix_map_add(map, &p, 3, NULL), 1);
	/* All bytes zero in both, but not the same prefix. */
	assert_int_equal(prefix_map_add(map, &zero4, 4, NULL), 0);
	assert_int_equal(prefix_map_add(map, &zero6, 6, NULL), 0);
	prefix_map_visit(map, &a, note, &seen);
	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.values[0], 1);
	assert_int_equal(seen.values[1], 4);
	prefix_map_free(map);
	prefix_map_free(NULL);
}

/* All 129 lengths at once. */
static void every_length(void **state)
{
	struct prefix_map *map = prefix_map_new();
	struct prefix p = { .addr = { .family = ADDR_V6 } };
	struct seen seen = { 0 };

	(void)state;
	assert_non_null(map);
	for (uint32_t len = 0; len <= 128; len++) {
		p.len = (uint8_t)(len * 50 % 129); /* out of order */
		assert_int_equal(prefix_map_add(map, &p, p.len, NULL), 0);
	}
	assert_false(prefix_map_visit(map, &p.addr, note, &seen));
	assert_int_equal(seen.n, 129);
	for (uint32_t i = 0; i < 129; i++)
		assert_int_equal(seen.values[i], 128 - i);
	prefix_map_free(map);
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* Thousands of prefixes of a small space, so that they nest and the table grows, against a plain list. */
static void agrees_with_a_list(void **state)
{
	static struct prefix list[4000];
	struct prefix_map *map = prefix_map_new();
	uint64_t x = 88172645463325252u;
	uint32_t n = 0;

	(void)state;
	assert_non_null(map);
	for (size_t i = 0; i < COUNT(list); i++) {
		struct prefix p;
		uint32_t old = UINT32_MAX;
		uint32_t twin = UINT32_MAX;
		char text[PREFIX_STRLEN];

		p.len = (uint8_t)(20 + next_random(&x) % 13);
		p.addr = addr_v4((uint32_t)(next_random(&x) & 0xfff) >> (32 - p.len) << (32 - p.len));
		assert_int_equal(parse(prefix_format(&p, text), &p), 0);
		for (uint32_t k = 0; k < n; k++) {
			if (list[k].len == p.len && addr_equal(&list[k].addr, &p.addr))
				twin = k;
		}
		assert_int_equal(prefix_map_add(map, &p, n, &old), twin == UINT32_MAX ? 0 : 1);
		assert_int_equal(old, twin);
		if (twin == UINT32_MAX)
			list[n++] = p;
	}
	assert_true(n > 1000);
	for (uint32_t host = 0; host < 0x1100; host += 7) {
		struct addr a = addr_v4(host);
		struct seen seen = { 0 };
		size_t want = 0;
		uint8_t last = 33;

		for (uint32_t k = 0; k < n; k++)
			want += prefix_contains(&list[k], &a);
		assert_false(prefix_map_visit(map, &a, note, &seen));
		assert_int_equal(seen.n, want);
		for (size_t i = 0; i < seen.n; i++) {
			assert_true(prefix_contains(&list[seen.values[i]], &a));
			assert_true(list[seen.values[i]].len < last);
			last = list[seen.values[i]].len;
		}
	}
	prefix_map_free(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses),
		cmocka_unit_test(contains),
		cmocka_unit_test(contains_to_the_bit),
		cmocka_unit_test(visits_longest_first),
		cmocka_unit_test(same_prefix_stays),
		cmocka_unit_test(every_length),
		cmocka_unit_test(agrees_with_a_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
