/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits: what a person may write, what it means, how it is written back.
 *
 * links: rules/limits.c rules/entry.c rules/pattern.c tests/unit/guard_page.c base/addr.c base/prefix.c base/name.c base/err.c
 */
#include "rules/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "tests/unit/guard_page.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define SECOND 1000000ull

static int parse(enum limit which, const char *text, uint64_t *value, struct err *err)
{
	size_t len = strlen(text);
	int rc = limits_parse(which, (const char *)guard_page_copy(text, len), len, value, err);

	guard_page_free();
	return rc;
}

static void values(void **state)
{
	static const struct {
		enum limit which;
		const char *text;
		uint64_t value;
		const char *canonical;
	} cases[] = {
		{ LIMIT_UPLOAD, "1B", 1, "1B" },
		{ LIMIT_UPLOAD, "1000B", 1000, "1kB" },
		{ LIMIT_UPLOAD, "1024B", 1024, "1KiB" },
		{ LIMIT_UPLOAD, "1025B", 1025, "1025B" },
		{ LIMIT_UPLOAD, "500kB", 500000, "500kB" },
		{ LIMIT_UPLOAD, "500KB", 500000, "500kB" },
		{ LIMIT_UPLOAD, "20MiB", 20971520, "20MiB" },
		{ LIMIT_UPLOAD, "20MB", 20000000, "20MB" },
		{ LIMIT_UPLOAD, "2048MiB", 2147483648, "2GiB" },
		{ LIMIT_UPLOAD, "3GB", 3000000000, "3GB" },
		{ LIMIT_UPLOAD, "1TB", 1000000000000, "1TB" },
		{ LIMIT_UPLOAD, "1048576TiB", 1ull << 60, "1048576TiB" },
		{ LIMIT_CONNECTIONS, "1", 1, "1" },
		{ LIMIT_CONNECTIONS, "256", 256, "256" },
		{ LIMIT_NAMES, "1000000000", 1000000000, "1000000000" },
		{ LIMIT_RATE, "50/s", 50, "50/s" },
		{ LIMIT_IDLE, "1s", SECOND, "1s" },
		{ LIMIT_IDLE, "90", 90 * SECOND, "1m30s" },
		{ LIMIT_IDLE, "60m", 3600 * SECOND, "1h" },
		{ LIMIT_DURATION, "1h30m", 5400 * SECOND, "1h30m" },
		{ LIMIT_DURATION, "25h", 90000 * SECOND, "1d1h" },
		{ LIMIT_DURATION, "3650d", 3650 * 86400 * SECOND, "3650d" },
		{ LIMIT_MEMORY, "4MiB", 4 << 20, "4MiB" },
		{ LIMIT_MEMORY, "512MB", 512000000, "512MB" },
		{ LIMIT_PIDS, "64", 64, "64" },
		{ LIMIT_CPUS, "1", 1000, "1" },
		{ LIMIT_CPUS, "0.5", 500, "0.5" },
		{ LIMIT_CPUS, "0.010", 10, "0.01" },
		{ LIMIT_CPUS, "12.345", 12345, "12.345" },
		{ LIMIT_CPUS, "10.50", 10500, "10.5" },
		{ LIMIT_CPUS, "1000000", LIMITS_CPUS_MAX, "1000000" },
	};
	char text[LIMITS_TEXT_MAX];
	struct err err = { "" };
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		if (parse(cases[i].which, cases[i].text, &value, &err))
			fail_msg("%s: %s", cases[i].text, err.text);
		assert_int_equal(value, cases[i].value);
		assert_string_equal(limits_format(cases[i].which, value, text), cases[i].canonical);
		assert_int_equal(parse(cases[i].which, text, &value, &err), 0);
		assert_int_equal(value, cases[i].value);
	}
}

static const struct {
	enum limit which;
	const char *text;
} bad[] = {
	{ LIMIT_UPLOAD, "" },
	{ LIMIT_UPLOAD, "20" },
	{ LIMIT_UPLOAD, "20M" },
	{ LIMIT_UPLOAD, "MiB" },
	{ LIMIT_UPLOAD, "0MiB" },
	{ LIMIT_UPLOAD, "-1MiB" },
	{ LIMIT_UPLOAD, "1.5MiB" },
	{ LIMIT_UPLOAD, "20,5MiB" },
	{ LIMIT_UPLOAD, "20mib" },
	{ LIMIT_UPLOAD, "20MiBs" },
	{ LIMIT_UPLOAD, "1048577TiB" },
	{ LIMIT_UPLOAD, "9999999999999999999TiB" },
	{ LIMIT_CONNECTIONS, "" },
	{ LIMIT_CONNECTIONS, "0" },
	{ LIMIT_CONNECTIONS, "0x10" },
	{ LIMIT_CONNECTIONS, "5k" },
	{ LIMIT_CONNECTIONS, "1000000001" },
	{ LIMIT_RATE, "50" },
	{ LIMIT_RATE, "50/m" },
	{ LIMIT_RATE, "/s" },
	{ LIMIT_RATE, "0/s" },
	{ LIMIT_NAMES, "many" },
	{ LIMIT_IDLE, "0" },
	{ LIMIT_IDLE, "soon" },
	{ LIMIT_IDLE, "1w" },
	{ LIMIT_IDLE, "h" },
	{ LIMIT_IDLE, "1h-1m" },
	{ LIMIT_DURATION, "3651d" },
	{ LIMIT_DURATION, "3650d1s" },
	{ LIMIT_DURATION, "999999999999999999d" },
	{ LIMIT_MEMORY, "512" },
	{ LIMIT_MEMORY, "4095KiB" },
	{ LIMIT_PIDS, "0" },
	{ LIMIT_PIDS, "64k" },
	{ LIMIT_CPUS, "0" },
	{ LIMIT_CPUS, "0.009" },
	{ LIMIT_CPUS, ".5" },
	{ LIMIT_CPUS, "1." },
	{ LIMIT_CPUS, "0.5000" },
	{ LIMIT_CPUS, "50%" },
	{ LIMIT_CPUS, "1.5.5" },
	{ LIMIT_CPUS, "1000000.001" },
	{ LIMIT_CPUS, "999999999999999999" },
};

static void refused(void **state)
{
	uint64_t value = 77;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct err err = { "" };
		char quoted[64];

		if (parse(bad[i].which, bad[i].text, &value, &err) != -1)
			fail_msg("accepted: %s %s", limits_key(bad[i].which), bad[i].text);
		snprintf(quoted, sizeof(quoted), "\"%s\": not a ", bad[i].text);
		if (strncmp(err.text, quoted, strlen(quoted)) != 0 || !strstr(err.text, "write "))
			fail_msg("%s", err.text);
	}
	assert_int_equal(value, 77);
}

static void messages(void **state)
{
	struct err err = { "" };
	uint64_t value;

	(void)state;
	assert_int_equal(parse(LIMIT_UPLOAD, "20M", &value, &err), -1);
	assert_string_equal(err.text, "\"20M\": not a size; write bytes with a unit, such as 20MiB or 500kB");
	assert_int_equal(parse(LIMIT_RATE, "50", &value, &err), -1);
	assert_string_equal(err.text, "\"50\": not a rate; write new connections a second, such as 50/s");
}

static void smallest_wins(void **state)
{
	struct limits l = { 0 };

	(void)state;
	limits_add(&l, LIMIT_NAMES, 20);
	assert_int_equal(l.max[LIMIT_NAMES], 20);
	limits_add(&l, LIMIT_NAMES, 30);
	assert_int_equal(l.max[LIMIT_NAMES], 20);
	limits_add(&l, LIMIT_NAMES, 10);
	assert_int_equal(l.max[LIMIT_NAMES], 10);
	assert_int_equal(l.max[LIMIT_UPLOAD], 0);
}

static void all_as_text(void **state)
{
	struct limits l = { 0 };
	char text[LIMITS_ALL_MAX];

	(void)state;
	assert_string_equal(limits_text(&l, text), "");
	l.max[LIMIT_RATE] = 5;
	assert_string_equal(limits_text(&l, text), "rate: 5/s");
	l.max[LIMIT_UPLOAD] = 1024;
	l.max[LIMIT_DURATION] = 90 * SECOND;
	assert_string_equal(limits_text(&l, text), "upload: 1KiB, rate: 5/s, duration: 1m30s");
	for (int i = 0; i < LIMIT_COUNT; i++)
		l.max[i] = UINT64_MAX;
	assert_true(strlen(limits_text(&l, text)) < LIMITS_ALL_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),	 cmocka_unit_test(refused),	cmocka_unit_test(messages),
		cmocka_unit_test(smallest_wins), cmocka_unit_test(all_as_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
