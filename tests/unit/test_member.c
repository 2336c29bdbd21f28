/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is in a network namespace, in the real /proc.
 * links: sandbox-net/attach/member.c
 */
#include "sandbox-net/attach/member.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void its_own(void **state)
{
	const int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char pid[16];
	struct stat st;

	(void)state;
	assert_int_equal(stat("/proc/self/ns/net", &st), 0);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	assert_int_equal(member_network(proc, pid), st.st_ino);
	close(proc);
}

static void no_process(void **state)
{
	const int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(member_network(proc, "4194305"), 0); /* above any number that the kernel gives */
	assert_int_equal(errno, ENOENT);
	assert_int_equal(member_network(proc, "sysrq-trigger"), 0);
	assert_int_equal(member_network(proc, "99999999999999999999999999999999"), 0); /* too long */
	close(proc);
	assert_int_equal(member_network(-1, "1"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_own),
		cmocka_unit_test(no_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
