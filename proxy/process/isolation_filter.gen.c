/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy's system calls: those of a relay. What isolation.h says of stage 2 is meant by it.
 *
 * links: base/seccomp/filter.gen.c
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/seccomp/filter.h"

/* Allowed whatever the arguments are. */
static const int plain_calls[] = {
	/* relay */
	SCMP_SYS(read),
	SCMP_SYS(write),
	SCMP_SYS(readv),
	SCMP_SYS(writev),
	SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),
	SCMP_SYS(recvmmsg),
	SCMP_SYS(sendto),
	SCMP_SYS(sendmsg),
	SCMP_SYS(sendmmsg),
	SCMP_SYS(splice),
	SCMP_SYS(pipe2),
	SCMP_SYS(connect),
	SCMP_SYS(accept4),
	SCMP_SYS(shutdown),
	SCMP_SYS(close),
	SCMP_SYS(getsockname),
	SCMP_SYS(getpeername),
	SCMP_SYS(setsockopt),
	SCMP_SYS(getsockopt),
	SCMP_SYS(fcntl),
	/* event loop, clocks */
	SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_pwait2),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(restart_syscall),
	/* the log */
	SCMP_SYS(fstat),
	SCMP_SYS(lseek),
	SCMP_SYS(ftruncate),
	SCMP_SYS(flock),
	SCMP_SYS(fallocate),
	SCMP_SYS(pread64),
	/* memory, end of the process */
	SCMP_SYS(brk),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(futex),
	SCMP_SYS(getrandom),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(tgkill),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
};

/* Looking for a file is refused rather than fatal: a library may do so and go on without. */
static const int path_calls[] = { SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(openat2),
				  SCMP_SYS(stat), SCMP_SYS(access), SCMP_SYS(readlink) };

static int allow_plain(struct filter *f)
{
	int r = 0;

	for (size_t i = 0; i < sizeof(plain_calls) / sizeof(*plain_calls) && r == 0; i++)
		r = filter_rule(f, SCMP_ACT_ALLOW, plain_calls[i], 0, NULL);
	for (size_t i = 0; i < sizeof(path_calls) / sizeof(*path_calls) && r == 0; i++)
		r = filter_rule(f, SCMP_ACT_ERRNO(EACCES), path_calls[i], 0, NULL);
	return r;
}

/* socket() for IPv4 and IPv6, stream and datagram; the type's flag bits are free. */
static int allow_sockets(struct filter *f)
{
	static const uint64_t families[] = { AF_INET, AF_INET6 }, types[] = { SOCK_STREAM, SOCK_DGRAM };
	int r = 0;

	for (size_t i = 0; i < 2; i++)
		for (size_t j = 0; j < 2 && r == 0; j++) {
			const struct scmp_arg_cmp args[] = { SCMP_A0(SCMP_CMP_EQ, families[i], 0),
							     SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, types[j]) };

			r = filter_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, args);
		}
	return r;
}

static int rules(struct filter *f, const void *arg)
{
	/* Memory that can be written is never executable. */
	const struct scmp_arg_cmp no_exec = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
	/* What fstat() is on this libc: a descriptor and an empty path. */
	const struct scmp_arg_cmp no_path = SCMP_A3(SCMP_CMP_EQ, AT_EMPTY_PATH, 0);
	static const uint64_t ioctls[] = { FIONREAD, FIONBIO, SIOCOUTQ };
	int r = allow_plain(f);

	(void)arg;
	if (r == 0)
		r = allow_sockets(f);
	for (size_t i = 0; i < sizeof(ioctls) / sizeof(*ioctls) && r == 0; i++) {
		const struct scmp_arg_cmp is = SCMP_A1(SCMP_CMP_EQ, ioctls[i], 0);

		r = filter_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, &is);
	}
	if (r == 0)
		r = filter_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, &no_exec);
	if (r == 0)
		r = filter_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, &no_exec);
	if (r == 0)
		r = filter_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 1, &no_path);
	return r;
}

int main(void)
{
	struct sock_fprog program;
	int rc = filter_make(&program, SCMP_ACT_KILL_PROCESS, SCMP_ACT_KILL_PROCESS, false, rules, NULL);

	if (rc) {
		fprintf(stderr, "the proxy's filter: %s\n", strerror(-rc));
		return 1;
	}
	filter_print("isolation_filter", &program, 1);
	return fflush(stdout) ? 1 : 0;
}
