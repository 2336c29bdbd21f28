/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of which addresses a gate can have.
 * links: base/addr.c base/layout.c base/prefix.c
 */
#include "base/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct addr addr(const char *text)
{
	struct addr a;

	assert_int_equal(addr_parse(text, strlen(text), &a), 0);
	return a;
}

static bool ok4(const char *gate, const char *sandbox, unsigned plen)
{
	struct gate_layout l;

	layout_usual(&l);
	l.gate4 = addr(gate);
	l.sandbox4 = addr(sandbox);
	l.plen4 = (uint8_t)plen;
	return layout_ok(&l);
}

static bool ok6(const char *gate, const char *sandbox, unsigned plen)
{
	struct gate_layout l;

	layout_usual(&l);
	l.gate6 = addr(gate);
	l.sandbox6 = addr(sandbox);
	l.plen6 = (uint8_t)plen;
	return layout_ok(&l);
}

static void usual(void **state)
{
	struct gate_layout l;
	char text[ADDR_STRLEN];
	struct addr a;

	(void)state;
	layout_usual(&l);
	assert_true(layout_ok(&l));
	a = layout_network(&l.sandbox4, l.plen4);
	assert_string_equal(addr_format(&a, text), "10.200.0.0");
	a = layout_broadcast(&l.sandbox4, l.plen4);
	assert_string_equal(addr_format(&a, text), "10.200.0.3");
}

static void others(void **state)
{
	struct gate_layout l;
	char text[ADDR_STRLEN];
	struct addr a;

	(void)state;
	assert_true(ok4("172.18.0.1", "172.18.0.2", 16));
	assert_true(ok4("192.168.7.129", "192.168.7.254", 25));
	assert_true(ok6("fd00:1::1", "fd00:1::2", 64));
	assert_true(ok6("2001:db8::1", "2001:db8::2", 126));
	layout_usual(&l);
	l.gate4 = addr("192.168.7.129");
	l.sandbox4 = addr("192.168.7.254");
	l.plen4 = 25;
	a = layout_network(&l.sandbox4, l.plen4);
	assert_string_equal(addr_format(&a, text), "192.168.7.128");
	a = layout_broadcast(&l.sandbox4, l.plen4);
	assert_string_equal(addr_format(&a, text), "192.168.7.255");
}

static void refused(void **state)
{
	struct gate_layout l;

	(void)state;
	assert_false(ok4("172.18.0.1", "172.18.0.1", 16));
	assert_false(ok4("172.18.0.1", "172.19.0.2", 16));
	assert_false(ok4("172.18.0.0", "172.18.0.2", 16));
	assert_false(ok4("172.18.0.1", "172.18.255.255", 16));
	assert_false(ok4("10.0.0.0", "10.0.0.1", 31));
	assert_false(ok4("10.0.0.1", "10.0.0.2", 0));
	assert_false(ok4("127.0.0.1", "127.0.0.2", 8));
	assert_false(ok4("224.0.0.1", "224.0.0.2", 24));
	assert_false(ok4("198.18.0.1", "198.18.0.2", 24));
	assert_false(ok4("0.0.0.1", "0.0.0.2", 8));
	assert_false(ok4("fd00::1", "fd00::2", 24));
	assert_false(ok6("fd00::1", "fd00::1", 64));
	assert_false(ok6("fd00::1", "fd01::2", 64));
	assert_false(ok6("fd00::", "fd00::2", 64));
	assert_false(ok6("fe80::1", "fe80::2", 64));
	assert_false(ok6("::1", "::2", 64));
	assert_false(ok6("fd00::1", "fd00::2", 127));
	assert_false(ok6("fd6e:6574:6761:5000::1", "fd6e:6574:6761:5000::2", 64));
	assert_false(ok6("10.0.0.1", "10.0.0.2", 24));
	memset(&l, 0, sizeof(l));
	assert_false(layout_ok(&l));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usual),
		cmocka_unit_test(others),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
