/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sandbox-net and a netgate that waits say to each other, and the command lines of attach, detach and ls.
 * links: base/attach.c base/err.c sandbox-net/attach/options.c sandbox-net/gate/tap.c
 */
#include "base/attach.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "sandbox-net/attach/options.h"

static struct attach_options o;
static struct err err;

static void names(void **state)
{
	static const char *const good[] = { "a", "web", "build-17", "A_b.c", "-x", "x..y", "0" };
	static const char *const bad[] = { "",	  ".",	 "..",	     ".x",    "a/b", "/",
					   "a b", "a\n", "\303\244", "x\033", "a:b", "*" };
	char longest[ATTACH_NAME_MAX + 2];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_true(attach_name_ok(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(attach_name_ok(bad[i]));
	memset(longest, 'x', sizeof(longest));
	longest[ATTACH_NAME_MAX] = '\0';
	assert_true(attach_name_ok(longest));
	longest[ATTACH_NAME_MAX] = 'x';
	longest[ATTACH_NAME_MAX + 1] = '\0';
	assert_false(attach_name_ok(longest));
}

static void paths(void **state)
{
	char path[PATH_MAX], dir[200];

	(void)state;
	assert_int_equal(attach_path(path, "/run/netgate", "ci", "sock", &err), 0);
	assert_string_equal(path, "/run/netgate/ci.sock");
	assert_int_equal(attach_path(path, "/run/netgate", "../ci", "sock", &err), -1);
	memset(dir, 'x', sizeof(dir) - 1);
	dir[0] = '/';
	dir[sizeof(dir) - 1] = '\0';
	assert_int_equal(attach_path(path, dir, "ci", "sock", &err), -1);
	/* The longest that fits into sun_path, 108 bytes with the NUL. */
	dir[100] = '\0';
	assert_int_equal(attach_path(path, dir, "x", "sock", &err), 0);
	assert_int_equal(attach_path(path, dir, "xx", "sock", &err), -1);
}

static void messages(void **state)
{
	struct attach_msg msg = { .magic = ATTACH_MAGIC, .type = ATTACH_LIST };

	(void)state;
	assert_true(attach_msg_ok(&msg, sizeof(msg)));
	assert_false(attach_msg_ok(&msg, sizeof(msg) - 1));
	assert_false(attach_msg_ok(&msg, 0));
	assert_false(attach_msg_ok(&msg, -1));
	msg.magic++;
	assert_false(attach_msg_ok(&msg, sizeof(msg)));
	msg.magic--;
	memset(msg.name, 'x', sizeof(msg.name));
	assert_false(attach_msg_ok(&msg, sizeof(msg)));
	msg.name[0] = '\0';
	memset(msg.to, 'x', sizeof(msg.to));
	assert_false(attach_msg_ok(&msg, sizeof(msg)));
	msg.to[0] = '\0';
	memset(msg.file, 'x', sizeof(msg.file));
	assert_false(attach_msg_ok(&msg, sizeof(msg)));
	msg.file[0] = '\0';
	memset(msg.text, 'x', sizeof(msg.text));
	assert_false(attach_msg_ok(&msg, sizeof(msg)));
	msg.text[sizeof(msg.text) - 1] = '\0';
	assert_true(attach_msg_ok(&msg, sizeof(msg)));
}

typedef int (*parser)(int argc, char **argv, struct attach_options *o, struct err *err);

static int parse(parser p, const char *const *words)
{
	static char *argv[ATTACH_GATE_OPTIONS_MAX + 16];
	int n = 0;

	memset(&err, 0, sizeof(err));
	for (; words[n]; n++)
		argv[n] = (char *)(uintptr_t)words[n];
	argv[n] = NULL;
	return p(n, argv, &o, &err);
}

#define PARSE(p, ...) parse(p, (const char *[]){ "sub", __VA_ARGS__, NULL })

/* netgate's words pass in their order, also between ours. */
static void words_of_netgate(void **state)
{
	static const char *const want[] = { "--allow", "a.test", "--log=/l", "-v", "--policy", "p" };

	(void)state;
	assert_int_equal(PARSE(attach_options_parse, "--allow", "a.test", "--pid", "17", "--log=/l", "-v", "--name=box",
			       "--policy", "p", "--accept-risk", "net-admin"),
			 0);
	assert_int_equal(o.kind, TARGET_PID);
	assert_string_equal(o.what, "17");
	assert_string_equal(o.name, "box");
	assert_null(o.job);
	assert_int_equal(o.risks, 1u << ATTACH_RISK_NET_ADMIN);
	assert_int_equal(o.n_gate, 6);
	for (size_t i = 0; i < o.n_gate; i++)
		assert_string_equal(o.gate[i], want[i]);
	assert_null(o.gate[6]);
}

static void kinds(void **state)
{
	static const char *const flags[] = { "--pid", "--netns", "--docker", "--podman" };

	(void)state;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(PARSE(attach_options_parse, flags[i], "x", "--job", "j"), 0);
		assert_int_equal(o.kind, (int)TARGET_PID + i);
		assert_int_equal(o.n_gate, 0);
	}
}

static void refused(void **state)
{
	(void)state;
	assert_int_equal(PARSE(attach_options_parse, "--job", "j"), -1);
	assert_int_equal(PARSE(attach_options_parse, "--pid", "1"), -1);
	assert_int_equal(PARSE(attach_options_parse, "--job", "j", "--pid"), -1);
	assert_int_equal(PARSE(attach_options_parse, "--job", "j", "--pid", "1", "--docker", "web"), -1);
	assert_int_equal(PARSE(attach_options_parse, "--job", ".j", "--pid", "1"), -1);
	assert_int_equal(PARSE(attach_options_parse, "--job", "j", "--pid", "1", "--name", "a/b"), -1);
	assert_int_equal(PARSE(attach_options_parse, "--job", "j", "--pid", "1", "--accept-risk", "net"), -1);
	assert_int_equal(PARSE(detach_options_parse, "--job", "j", "--allow", "x"), -1);
	assert_int_equal(PARSE(detach_options_parse, "--name", "x"), -1);
	assert_int_equal(PARSE(list_options_parse, "--job", "x"), -1);
	assert_int_equal(PARSE(list_options_parse, "--json"), 0);
	assert_true(o.json);
	assert_int_equal(PARSE(detach_options_parse, "--job", "j", "--name", "x"), 0);
	assert_int_equal(PARSE(attach_options_parse, "--help"), 0);
	assert_true(o.help);
}

/* Only tap knows the device; attach passes these words on. */
static void device(void **state)
{
	(void)state;
	assert_int_equal(PARSE(tap_options_parse, "--netns", "/n", "--job", "j"), 0);
	assert_string_equal(o.tap.name, "tap0");
	assert_int_equal(o.tap.owner, 0);
	assert_int_equal(PARSE(tap_options_parse, "--netns", "/n", "--job", "j", "--tap=vm_1", "--owner", "1234"), 0);
	assert_string_equal(o.tap.name, "vm_1");
	assert_int_equal(o.tap.owner, 1234);
	assert_int_equal(PARSE(tap_options_parse, "--netns", "/n", "--job", "j", "--owner", "root"), 0);
	assert_int_equal(o.tap.owner, 0);
	assert_int_equal(PARSE(tap_options_parse, "--netns", "/n", "--job", "j", "--owner", "4294967295"), -1);
	assert_int_equal(PARSE(tap_options_parse, "--netns", "/n", "--job", "j", "--tap", "eth0"), -1);
	assert_int_equal(PARSE(tap_options_parse, "--netns", "/n", "--job", "j", "--tap", "a b"), -1);
	assert_int_equal(PARSE(attach_options_parse, "--netns", "/n", "--job", "j", "--tap", "tap0"), 0);
	assert_null(o.tap.name);
	assert_int_equal(o.n_gate, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),    cmocka_unit_test(paths),
		cmocka_unit_test(messages), cmocka_unit_test(words_of_netgate),
		cmocka_unit_test(kinds),    cmocka_unit_test(refused),
		cmocka_unit_test(device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
