/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether docker's name server would ask from the host, for files as hosts have them.
 * links: sandbox-net/docker/resolver.c base/addr.c base/err.c
 */
#include "sandbox-net/docker/resolver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"

static char dir[] = "/tmp/netgate-test-XXXXXX";
static char usual[64], systemd[64];

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(usual, sizeof(usual), "%s/usual", dir);
	snprintf(systemd, sizeof(systemd), "%s/systemd", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	(void)unlink(usual);
	(void)unlink(systemd);
	return rmdir(dir);
}

/* NULL: there is no such file. */
static void put(const char *path, const char *text)
{
	FILE *file;

	(void)unlink(path);
	if (!text)
		return;
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int check(const char *first, const char *second, const char *options, struct err *err)
{
	json_t *object = options ? json_loads(options, 0, NULL) : NULL;
	int rc;

	*err = (struct err){ "" };
	put(usual, first);
	put(systemd, second);
	rc = resolver_check(object, usual, systemd, err);
	json_decref(object);
	return rc;
}

static void test_files(void **state)
{
	static const struct {
		const char *usual, *systemd;
		int rc;
	} cases[] = {
		{ NULL, NULL, 0 },
		{ "", NULL, 0 },
		{ "nameserver 192.0.2.1\nnameserver 2001:db8::1\n", NULL, 0 },
		{ "# nameserver 127.0.0.1\nsearch 127.0.0.1\n", NULL, 0 },
		{ "nameserver 128.127.0.1\n", NULL, 0 },
		{ "nameserver 127.0.0.1\n", NULL, -1 },
		{ "nameserver 192.0.2.1\nnameserver 127.0.0.1", NULL, -1 },
		{ " \tnameserver\t127.1.2.3 # here\n", NULL, -1 },
		{ "nameserver127.0.0.1\n", NULL, -1 },
		{ "nameserver 127.000.000.001\n", NULL, -1 },
		{ "nameserver ::1\n", NULL, -1 },
		/* systemd-resolved */
		{ "nameserver 127.0.0.53\n", "nameserver 192.0.2.1\n", 0 },
		{ "nameserver 127.0.0.53\n", "nameserver 127.0.0.1\n", -1 },
		{ "nameserver 127.0.0.53\n", NULL, -1 },
		{ "nameserver 127.0.0.53\n", "# none yet\n", -1 },
		{ "nameserver 127.0.0.53\nnameserver 192.0.2.1\n", "nameserver 192.0.2.1\n", -1 },
		{ "nameserver 127.0.0.54\n", "nameserver 192.0.2.1\n", -1 },
		{ "nameserver 192.0.2.1\n", "nameserver 127.0.0.1\n", -1 },
		{ "nameserver 192.0.2.1\n", "nameserver 192.0.2.2\n", 0 },
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(check(cases[i].usual, cases[i].systemd, NULL, &err), cases[i].rc);
		assert_int_equal(err.text[0] != '\0', cases[i].rc != 0);
		assert_int_equal(check(cases[i].usual, cases[i].systemd,
				       "{\"com.docker.network.endpoint.dnsservers\": [\"127.0.0.1\"]}", &err),
				 0);
	}
}

/* What is not a list with servers says nothing. */
static void test_given(void **state)
{
	static const char *const none[] = { "{}", "{\"com.docker.network.endpoint.dnsservers\": []}",
					    "{\"com.docker.network.endpoint.dnsservers\": null}",
					    "{\"com.docker.network.endpoint.dnsservers\": \"192.0.2.1\"}" };
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
		assert_int_equal(check("nameserver 127.0.0.1\n", NULL, none[i], &err), -1);
		assert_non_null(strstr(err.text, "--dns"));
		assert_non_null(strstr(err.text, usual));
	}
}

/* What can't be read is a reason to refuse. */
static void test_unreadable(void **state)
{
	struct err err;

	(void)state;
	put(usual, NULL);
	assert_int_equal(mkdir(usual, 0700), 0);
	put(systemd, NULL);
	err = (struct err){ "" };
	assert_int_equal(resolver_check(NULL, usual, systemd, &err), -1);
	assert_int_equal(rmdir(usual), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_given),
		cmocka_unit_test(test_unreadable),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
