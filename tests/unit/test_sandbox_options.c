/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launcher's command line and the command's environment.
 *
 * links: sandbox-net/caller/options.c sandbox-net/caller/environment.c base/err.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "sandbox-net/caller/options.h"
#include "sandbox-net/caller/user.h"

static struct options o;
static struct err err;

static int parse(int argc, const char *const *args)
{
	static char *argv[OPTIONS_PATHS_MAX * 2 + 16];

	memset(&err, 0, sizeof(err));
	for (int i = 0; i < argc; i++)
		argv[i] = (char *)(uintptr_t)args[i];
	argv[argc] = NULL;
	return options_parse(argc, argv, &o, &err);
}

#define PARSE(...) \
	parse((int)(sizeof((const char *[]){ "run", __VA_ARGS__ }) / sizeof(char *)), \
	      (const char *[]){ "run", __VA_ARGS__ })

static void test_all_options(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--gate-fd", "5", "--report-fd", "6", "--user", "ann", "--workspace", "/w", "--read",
			       "/r1", "--read", "/r2", "--write", "/o", "--hide", "/h", "--fs", "host", "--proxy-env",
			       "--memory", "4194304", "--cpus", "500", "--tap", "tap0", "--", "cmd", "-x", "--"),
			 0);
	assert_int_equal(o.gate_fd, 5);
	assert_int_equal(o.report_fd, 6);
	assert_string_equal(o.user, "ann");
	assert_string_equal(o.workspace, "/w");
	assert_int_equal(o.read.n, 2);
	assert_string_equal(o.read.v[1], "/r2");
	assert_int_equal(o.write.n, 1);
	assert_int_equal(o.hide.n, 1);
	assert_int_equal(o.fs, OPTIONS_FS_HOST);
	assert_true(o.proxy_env);
	assert_int_equal(o.max[RESOURCE_MEMORY], 4194304);
	assert_int_equal(o.max[RESOURCE_PIDS], 0);
	assert_int_equal(o.max[RESOURCE_CPUS], 500);
	assert_string_equal(o.tap, "tap0");
	assert_string_equal(o.command[0], "cmd");
	assert_string_equal(o.command[1], "-x");
	assert_string_equal(o.command[2], "--");
	assert_null(o.command[3]);
}

static void test_defaults(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--gate-fd=7", "ls", "--read", "/x"), 0);
	assert_int_equal(o.gate_fd, 7);
	assert_int_equal(o.report_fd, -1);
	assert_null(o.user);
	assert_null(o.workspace);
	assert_null(o.tap);
	assert_int_equal(o.fs, OPTIONS_FS_SEALED);
	assert_int_equal(o.read.n, 0); /* the command's own option */
	assert_string_equal(o.command[1], "--read");
	assert_int_equal(PARSE("--help"), 0);
	assert_true(o.help);
}

static void test_errors_say_what(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--", "ls"), -1);
	assert_non_null(strstr(err.text, "--gate-fd is missing"));
	assert_int_equal(PARSE("--gate-fd", "5"), -1);
	assert_non_null(strstr(err.text, "no command"));
	assert_int_equal(PARSE("--gate-fd", "2", "ls"), -1);
	assert_non_null(strstr(err.text, "--gate-fd: \"2\": not a"));
	assert_int_equal(PARSE("--gate-fd", "5x", "ls"), -1);
	assert_int_equal(PARSE("--gate-fd", "99999999999", "ls"), -1);
	assert_int_equal(PARSE("--gate-fd", "", "ls"), -1);
	assert_int_equal(PARSE("--gate-fd", "5", "--fs", "open", "ls"), -1);
	assert_string_equal(err.text, "--fs: \"open\": neither sealed nor host");
	assert_int_equal(PARSE("--gate-fd", "5", "--frob", "ls"), -1);
	assert_non_null(strstr(err.text, "--frob: no such option"));
	assert_int_equal(PARSE("--gate-fd", "5", "--read"), -1);
	assert_non_null(strstr(err.text, "--read: a value is missing"));
	assert_int_equal(PARSE("--gate-fd", "5", "--cpus", "0", "ls"), -1);
	assert_string_equal(err.text, "--cpus: \"0\": not a number from 1 on");
	assert_int_equal(PARSE("--gate-fd", "5", "--read", "", "ls"), -1);
	assert_int_equal(PARSE("--gate-fd", "5", "--workspace", "", "ls"), -1);
}

static void test_too_many_paths(void **state)
{
	const char *args[OPTIONS_PATHS_MAX * 2 + 8] = { "run", "--gate-fd", "5" };
	int n = 3;

	(void)state;
	for (int i = 0; i < OPTIONS_PATHS_MAX; i++) {
		args[n++] = "--hide";
		args[n++] = "/x";
	}
	args[n] = "ls";
	assert_int_equal(parse(n + 1, args), 0);
	args[n++] = "--hide";
	args[n++] = "/y";
	args[n] = "ls";
	assert_int_equal(parse(n + 1, args), -1);
	assert_non_null(strstr(err.text, "--hide: \"/y\": more than"));
}

static const char *get(char **env, const char *name)
{
	const char *found = NULL;
	size_t n = strlen(name);

	for (size_t i = 0; env[i]; i++)
		if (strncmp(env[i], name, n) == 0 && env[i][n] == '=') {
			assert_null(found); /* once */
			found = env[i] + n + 1;
		}
	return found;
}

static char *const host_env[] = {
	"PATH=/usr/bin",
	"HOME=/home/caller",
	"USER=caller",
	"LOGNAME=caller",
	"SHELL=/bin/zsh",
	"PWD=/elsewhere",
	"SSH_AUTH_SOCK=/tmp/ag",
	"DBUS_SESSION_BUS_ADDRESS=unix:x",
	"XDG_RUNTIME_DIR=/run/user/1",
	"SUDO_COMMAND=netgate",
	"DOCKER_HOST=tcp://x",
	"http_proxy=http://p",
	"HTTPS_PROXY=http://p",
	"no_proxy=*",
	"MY_http_proxy=kept",
	"EMPTY=",
	"TMPDIR=/scratch",
	"LANG=C.UTF-8",
	NULL,
};

static void test_environment_of_the_caller(void **state)
{
	struct user u = { .is_caller = true, .name = "dbname", .home = "/home/db", .shell = "/bin/sh" };
	char **env = user_environment(host_env, &u, "/w", false);

	(void)state;
	assert_string_equal(get(env, "HOME"), "/home/caller");
	assert_string_equal(get(env, "USER"), "caller");
	assert_string_equal(get(env, "SHELL"), "/bin/zsh");
	assert_string_equal(get(env, "PWD"), "/w");
	assert_string_equal(get(env, "LANG"), "C.UTF-8");
	assert_string_equal(get(env, "EMPTY"), "");
	assert_string_equal(get(env, "MY_http_proxy"), "kept");
	for (size_t i = 6; i < 14; i++) {
		char name[64] = { 0 };

		memcpy(name, host_env[i], strcspn(host_env[i], "="));
		assert_null(get(env, name));
	}
	assert_null(get(env, "TMPDIR"));
	user_environment_free(env);
}

static void test_environment_of_another(void **state)
{
	struct user u = { .name = "ann", .home = "/home/ann", .shell = "" };
	static char *const in_workspace[] = { "TMPDIR=/w/tmp", NULL }, *const beside[] = { "TMPDIR=/w2/tmp", NULL };
	char **env = user_environment(host_env, &u, "/w", false);

	(void)state;
	assert_string_equal(get(env, "HOME"), "/home/ann");
	assert_string_equal(get(env, "USER"), "ann");
	assert_string_equal(get(env, "LOGNAME"), "ann");
	assert_null(get(env, "SHELL"));
	assert_string_equal(get(env, "PATH"), "/usr/bin");
	user_environment_free(env);
	env = user_environment(in_workspace, &u, "/w", false);
	assert_string_equal(get(env, "TMPDIR"), "/w/tmp");
	user_environment_free(env);
	env = user_environment(beside, &u, "/w", false);
	assert_null(get(env, "TMPDIR"));
	user_environment_free(env);
}

/* The host's own are replaced, not doubled; without --proxy-env they are only left out. */
static void test_environment_names_the_proxy(void **state)
{
	static const char *const names[] = { "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY" };
	struct user u = { .is_caller = true, .name = "dbname", .home = "/home/db", .shell = "/bin/sh" };
	char **env = user_environment(host_env, &u, "/w", true);
	size_t proxies = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_string_equal(get(env, names[i]), "http://10.200.0.1:3128");
	assert_string_equal(get(env, "all_proxy"), "socks5h://10.200.0.1:1080");
	assert_string_equal(get(env, "ALL_PROXY"), "socks5h://10.200.0.1:1080");
	assert_string_equal(get(env, "no_proxy"), "localhost,127.0.0.1,::1");
	assert_string_equal(get(env, "NO_PROXY"), "localhost,127.0.0.1,::1");
	for (size_t i = 0; env[i]; i++)
		proxies += strcasestr(env[i], "_proxy=") != NULL;
	assert_int_equal(proxies, 9); /* MY_http_proxy too */
	user_environment_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_options),
		cmocka_unit_test(test_environment_names_the_proxy),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_errors_say_what),
		cmocka_unit_test(test_too_many_paths),
		cmocka_unit_test(test_environment_of_the_caller),
		cmocka_unit_test(test_environment_of_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
