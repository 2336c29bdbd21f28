/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of kernel settings, on a folder in the place of /proc.
 * links: sandbox-net/gate/sysctl.c
 */
#include "sandbox-net/gate/sysctl.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MOST 1048576

static int proc = -1;

static int set_up(void **state)
{
	char folder[] = "/tmp/netgate-test-XXXXXX";

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	proc = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return proc < 0 ? -1 : mkdirat(proc, "sys", 0700);
}

static int tear_down(void **state)
{
	char path[64], folder[256];
	ssize_t n;

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", proc);
	n = readlink(path, folder, sizeof(folder) - 1);
	unlinkat(proc, "sys/x", 0);
	unlinkat(proc, "sys", AT_REMOVEDIR);
	close(proc);
	folder[n > 0 ? n : 0] = '\0';
	return rmdir(folder);
}

/* What the setting is after it was `before` and was bound. */
static const char *bound(const char *before, bool done)
{
	static char text[96];
	int fd = openat(proc, "sys/x", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ssize_t n;

	assert_int_equal(write(fd, before, strlen(before)), strlen(before));
	assert_int_equal(sysctl_bound(proc, "x", MOST), done);
	n = pread(fd, text, sizeof(text) - 1, 0);
	assert_true(n >= 0);
	text[n] = '\0';
	close(fd);
	return text;
}

static void test_bound(void **state)
{
	(void)state;
	assert_string_equal(bound("4096 131072 6291456", true), "4096 131072 1048576");
	assert_string_equal(bound("4096 2097152 6291456", true), "4096 1048576 1048576");
	/* Nobody's own smaller bound is made larger. */
	assert_string_equal(bound("4096\t131072\t524288\n", true), "4096\t131072\t524288\n");
	assert_string_equal(bound("4096\t16384\t1048576\n", true), "4096\t16384\t1048576\n");
	assert_string_equal(bound("", false), "");
	assert_string_equal(bound("1 2", false), "1 2");
	assert_false(sysctl_bound(proc, "y", MOST));
	assert_false(sysctl_bound(-1, "x", MOST));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bound, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
