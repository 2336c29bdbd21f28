/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a container asks for, as options of netgate.
 * links: base/attach.c base/err.c sandbox-net/oci/choice.c
 */
#include "sandbox-net/oci/choice.h"

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

static struct choice_options options;
static struct choice choice;
static struct err err;

/* Reads annotations from JSON text. */
static int reads(const char *text)
{
	json_t *annotations = json_loads(text, JSON_ALLOW_NUL, NULL);
	int rc;

	assert_non_null(annotations);
	err.text[0] = '\0';
	memset(&choice, 'x', sizeof(choice));
	rc = choice_read(annotations, &choice, &err);
	json_decref(annotations);
	assert_int_equal(rc != 0, err.text[0] != '\0');
	return rc;
}

static int becomes(const char *allow)
{
	memset(&choice, 0, sizeof(choice));
	memset(&options, 0, sizeof(options));
	snprintf(choice.allow, sizeof(choice.allow), "%s", allow);
	return choice_options(&choice, "/p", &options, &err);
}

static void fixed(void **state)
{
	(void)state;
	assert_int_equal(reads("{\"dev.netgate.allow\": \"a\"}"), 0);
	assert_int_equal(choice_fix(&choice, "ci", &err), 0);
	assert_string_equal(choice.policy, "ci");
	assert_string_equal(choice.allow, "a");
	assert_int_equal(choice_fix(&choice, "ci", &err), 0);
	assert_int_equal(choice_fix(&choice, "other", &err), -1);
	assert_string_equal(err.text,
			    "dev.netgate.policy ci: the administrator has chosen the policy other for this container");
	assert_int_equal(reads("{\"dev.netgate.job\": \"j\"}"), 0);
	assert_int_equal(choice_fix(&choice, "ci", &err), -1);
	assert_string_equal(err.text, "dev.netgate.job: the administrator has chosen the policy ci for this container");
}

static void annotations(void **state)
{
	(void)state;
	assert_int_equal(choice_read(NULL, &choice, &err), 0);
	assert_string_equal(choice.policy, "");
	assert_string_equal(choice.job, "");
	assert_string_equal(choice.allow, "");
	assert_int_equal(reads("{\"dev.netgate.policy\": \"p\", \"dev.netgate.allow\": \"a b\", \"other\": 1}"), 0);
	assert_string_equal(choice.policy, "p");
	assert_string_equal(choice.allow, "a b");
	assert_string_equal(choice.job, "");
	assert_int_equal(reads("{\"dev.netgate.job\": \"j\"}"), 0);
	assert_string_equal(choice.job, "j");
}

static void refused_annotations(void **state)
{
	static const char *const bad[] = {
		"{\"dev.netgate.policy\": 1}",
		"{\"dev.netgate.policy\": null}",
		"{\"dev.netgate.policy\": [\"p\"]}",
		"{\"dev.netgate.policy\": \"a\\u0000b\"}",
		"{\"dev.netgate.allow\": \"ok.test\\u0000,evil.test\"}",
		"{\"dev.netgate.policy\": \"../p\"}",
		"{\"dev.netgate.policy\": \".p\"}",
		"{\"dev.netgate.policy\": \"a/b\"}",
		"{\"dev.netgate.policy\": \"a b\"}",
		"{\"dev.netgate.policy\": \"a\\n\"}",
		"{\"dev.netgate.job\": \"/run/x\"}",
		"{\"dev.netgate.job\": \"j\", \"dev.netgate.policy\": \"p\"}",
		"{\"dev.netgate.job\": \"j\", \"dev.netgate.allow\": \"ok.test\"}",
		"{\"dev.netgate.allow\": \"\"}",
		"{\"dev.netgate.policy\": \"p\", \"dev.netgate.allow\": \"\"}",
		"{\"dev.netgate.policy\": \"\"}",
		"{\"dev.netgate.job\": \"\"}",
		"{\"dev.netgate.alow\": \"ok.test\"}",
		"{\"dev.netgate.\": \"\"}",
		"{\"dev.netgate.allow\": \"ok.test\", \"dev.netgate.Policy\": 1}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(reads(bad[i]), -1);
	assert_string_equal(err.text, "dev.netgate.Policy is unknown; there are dev.netgate.allow, dev.netgate.policy "
				      "and dev.netgate.job");
	/* Neither is of ours. */
	assert_int_equal(reads("{\"dev.netgateway.allow\": \"\", \"dev.netgate\": \"\"}"), 0);
}

static void bounds(void **state)
{
	char text[CHOICE_ALLOW_MAX + 64];
	const int room = CHOICE_ALLOW_MAX - 1;

	(void)state;
	snprintf(text, sizeof(text), "{\"dev.netgate.allow\": \"%0*d\"}", room, 0);
	assert_int_equal(reads(text), 0);
	snprintf(text, sizeof(text), "{\"dev.netgate.allow\": \"%0*d\"}", room + 1, 0);
	assert_int_equal(reads(text), -1);
	snprintf(text, sizeof(text), "{\"dev.netgate.policy\": \"%0*d\"}", ATTACH_NAME_MAX, 0);
	assert_int_equal(reads(text), 0);
	snprintf(text, sizeof(text), "{\"dev.netgate.policy\": \"%0*d\"}", ATTACH_NAME_MAX + 1, 0);
	assert_int_equal(reads(text), -1);
}

/* Of one that came over a socket, no text may go on beyond its member. */
static void ends(void **state)
{
	(void)state;
	memset(&choice, 0, sizeof(choice));
	assert_int_equal(choice_check(&choice, &err), 0);
	memset(choice.policy, 'x', sizeof(choice.policy));
	assert_int_equal(choice_check(&choice, &err), -1);
	memset(&choice, 0, sizeof(choice));
	memset(choice.job, 'x', sizeof(choice.job));
	assert_int_equal(choice_check(&choice, &err), -1);
	memset(&choice, 0, sizeof(choice));
	memset(choice.allow, 'x', sizeof(choice.allow));
	assert_int_equal(choice_check(&choice, &err), -1);
}

static void words(void **state)
{
	(void)state;
	assert_int_equal(becomes(""), 0);
	assert_int_equal(options.n, 1);
	assert_string_equal(options.v[0], "--permits=/p");
	assert_int_equal(becomes(" ok.test:80,\t*.wild.test\n--allow=evil.test,-x "), 0);
	assert_int_equal(options.n, 5);
	assert_string_equal(options.v[1], "--narrow=ok.test:80");
	assert_string_equal(options.v[2], "--narrow=*.wild.test");
	/* Whatever an entry is, it stays the value of this option. */
	assert_string_equal(options.v[3], "--narrow=--allow=evil.test");
	assert_string_equal(options.v[4], "--narrow=-x");
	assert_int_equal(becomes(" ,\t\n,"), -1);
	memset(&choice, 0, sizeof(choice));
	memset(&options, 0, sizeof(options));
	snprintf(choice.policy, sizeof(choice.policy), "--audit");
	assert_int_equal(choice_options(&choice, "/p", &options, &err), 0);
	assert_string_equal(options.v[1], "--choose=--audit");
}

static void many_words(void **state)
{
	char text[CHOICE_ALLOW_MAX];

	(void)state;
	for (size_t n = CHOICE_OPTIONS_MAX - 1; n <= CHOICE_OPTIONS_MAX; n++) {
		memset(text, 0, sizeof(text));
		for (size_t i = 0; i < n; i++)
			memcpy(text + 2 * i, "a ", 2);
		assert_int_equal(becomes(text), n == CHOICE_OPTIONS_MAX ? -1 : 0);
	}
	assert_int_equal(options.n, CHOICE_OPTIONS_MAX);
	/* The longest list there can be. */
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(becomes(text), 0);
	assert_int_equal(strlen(options.v[1]), strlen("--narrow=") + sizeof(text) - 1);
}

static void jobs(void **state)
{
	char dir[] = "/tmp/test_choice_XXXXXX", path[64];
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	memset(&choice, 0, sizeof(choice));
	snprintf(choice.job, sizeof(choice.job), "j");
	snprintf(path, sizeof(path), "%s/j.job", dir);
	assert_int_equal(choice_may_join(&choice, dir, &err), -1);
	assert_non_null(strstr(err.text, "there is no"));
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(chmod(path, 0644), 0);
	/* The file and its directory must be root's, as they are when these tests run as root. */
	assert_int_equal(choice_may_join(&choice, dir, &err), geteuid() == 0 ? 0 : -1);
	assert_int_equal(chmod(path, 0664), 0);
	assert_int_equal(choice_may_join(&choice, dir, &err), -1);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(chmod(dir, 0777), 0);
	assert_int_equal(choice_may_join(&choice, dir, &err), -1);
	unlink(path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(annotations), cmocka_unit_test(fixed), cmocka_unit_test(refused_annotations),
		cmocka_unit_test(bounds),      cmocka_unit_test(ends),	cmocka_unit_test(words),
		cmocka_unit_test(many_words),  cmocka_unit_test(jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
