/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of filters that are known to be what was asked for. Those of netgate are tested where they are used.
 * links: base/seccomp/filter.gen.c
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "base/seccomp/filter.h"

#ifdef __x86_64__
#define NATIVE AUDIT_ARCH_X86_64
#else
#define NATIVE AUDIT_ARCH_AARCH64
#endif
#define OTHER_ARCH 0x1234

static int64_t action(const struct sock_fprog *prog, int call, uint64_t first, uint64_t second)
{
	const struct seccomp_data data = { .nr = call, .arch = NATIVE, .args = { first, second } };

	return filter_run(prog, &data);
}

static int two_rules(struct filter *f, const void *arg)
{
	const struct scmp_arg_cmp inet = SCMP_A0(SCMP_CMP_EQ, AF_INET, 0);
	int rc = filter_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(read), 0, NULL);

	(void)arg;
	return rc ? rc : filter_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, &inet);
}

static void test_small(void **state)
{
	struct sock_fprog prog;

	(void)state;
	assert_int_equal(filter_make(&prog, SCMP_ACT_KILL_PROCESS, SCMP_ACT_ERRNO(ENOSYS), false, two_rules, NULL), 0);
	assert_int_equal(action(&prog, SYS_read, 0, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(action(&prog, SYS_write, 0, 0), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(action(&prog, SYS_socket, AF_INET, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(action(&prog, SYS_socket, AF_UNIX, 0), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(action(&prog, SYS_socket, AF_INET + (UINT64_C(1) << 32), 0), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(filter_run(&prog, &(struct seccomp_data){ .nr = SYS_read, .arch = OTHER_ARCH }),
			 SECCOMP_RET_ERRNO | ENOSYS);
	free(prog.filter);
}

/* A rule that is checked and was never added; or one that another contradicts. */
static int changing_rules(struct filter *f, const void *arg)
{
	const struct scmp_arg_cmp inet = SCMP_A0(SCMP_CMP_EQ, AF_INET, 0);
	const int which = *(const int *)arg;
	int rc = filter_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(read), 0, NULL);

	if (!rc && (which == 0) == !f->ctx)
		rc = filter_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(write), 0, NULL);
	if (!rc && which == 2)
		rc = filter_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(socket), f->ctx ? 0 : 1, f->ctx ? NULL : &inet);
	return rc;
}

static void test_other_than_the_rules(void **state)
{
	struct sock_fprog prog;

	(void)state;
	/* 0: one is missing; 1: there is one too many; 2: one lacks its condition. */
	for (int which = 0; which < 3; which++) {
		assert_int_equal(
			filter_make(&prog, SCMP_ACT_KILL_PROCESS, SCMP_ACT_KILL_PROCESS, false, changing_rules, &which),
			-ENOMEM);
		assert_null(prog.filter);
	}
}

static void test_programs_that_are_none(void **state)
{
	struct sock_filter bad[][2] = {
		{ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, sizeof(struct seccomp_data) - 3), BPF_STMT(BPF_RET | BPF_K, 0) },
		{ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff) },
		{ BPF_STMT(BPF_RET | BPF_A, 0), BPF_STMT(BPF_RET | BPF_A, 0) },
		{ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 255, 255) },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_true(filter_run(&(struct sock_fprog){ 2, bad[i] }, &(struct seccomp_data){ 0 }) == -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_other_than_the_rules),
		cmocka_unit_test(test_programs_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
