/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The finder's system calls: reading /proc, answering, and where it has no network of its own to ask in, going to the sandbox's.
 *
 * links: base/seccomp/filter.gen.c
 */
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/seccomp/filter.h"

/* The one socket of another network namespace, the way there and back, and what tells that it is the right one. */
static int allow_visits(struct filter *f)
{
	const struct scmp_arg_cmp net = SCMP_A1(SCMP_CMP_EQ, CLONE_NEWNET, 0);
	const struct scmp_arg_cmp diag[] = { SCMP_A0(SCMP_CMP_EQ, AF_NETLINK, 0),
					     SCMP_A2(SCMP_CMP_EQ, NETLINK_SOCK_DIAG, 0) };
	const struct scmp_arg_cmp no_path = SCMP_A3(SCMP_CMP_EQ, AT_EMPTY_PATH, 0);
	int r = filter_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(setns), 1, &net);

	if (r == 0)
		r = filter_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, diag);
	if (r == 0)
		r = filter_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(fstat), 0, NULL);
	if (r == 0)
		r = filter_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 1, &no_path);
	return r;
}

static int rules(struct filter *f, const void *arg)
{
	static const int calls[] = { SCMP_SYS(read),	    SCMP_SYS(readlinkat), SCMP_SYS(getdents64),
				     SCMP_SYS(close),	    SCMP_SYS(sendto),	  SCMP_SYS(sendmsg),
				     SCMP_SYS(recvfrom),    SCMP_SYS(recvmsg),	  SCMP_SYS(exit_group),
				     SCMP_SYS(rt_sigreturn) };
	/* For reading, and nothing that makes or cuts a file. */
	const struct scmp_arg_cmp reading =
		SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY), O_RDONLY);
	const bool *attached = arg;
	int r = 0;

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls) && r == 0; i++)
		r = filter_rule(f, SCMP_ACT_ALLOW, calls[i], 0, NULL);
	if (r == 0)
		r = filter_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1, &reading);
	return r == 0 && *attached ? allow_visits(f) : r;
}

int main(void)
{
	struct sock_fprog programs[2];

	for (int attached = 0; attached < 2; attached++) {
		const bool arg = attached;
		int rc = filter_make(&programs[attached], SCMP_ACT_KILL_PROCESS, SCMP_ACT_KILL_PROCESS, false, rules,
				     &arg);

		if (rc) {
			fprintf(stderr, "the finder's filter: %s\n", strerror(-rc));
			return 1;
		}
	}
	filter_print("finder_filters", programs, 2);
	return fflush(stdout) ? 1 : 0;
}
