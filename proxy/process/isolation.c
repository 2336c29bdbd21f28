/* SPDX-License-Identifier: Apache-2.0 */
/* Self-isolation of the proxy; the stages are described in the header. */
#include "proxy/process/isolation.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sockios.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/capability.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/seccomp/filter.h"

#define NOBODY 65534u

/* Only with privilege, so it comes first; without any there is nothing that the set bounds. */
static void empty_bounding_set(void)
{
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

/* A line is a range: the first id inside, the first outside, how many (user_namespaces(7)). */
static bool is_mapped(const char *path)
{
	unsigned inside, outside, count;
	FILE *f = fopen(path, "re");
	bool mapped = false;

	if (!f)
		return true;
	while (!mapped && fscanf(f, "%u %u %u", &inside, &outside, &count) == 3)
		mapped = NOBODY >= inside && NOBODY - inside < count;
	fclose(f);
	return mapped;
}

bool isolation_can_be_nobody(void)
{
	return is_mapped("/proc/self/uid_map") && is_mapped("/proc/self/gid_map");
}

static int become_nobody(struct err *err)
{
	if (geteuid() != 0 || !isolation_can_be_nobody())
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
		return err_set_errno(err, errno, "proxy: cannot become uid %u", NOBODY);
	return 0;
}

static int drop_capabilities(struct err *err)
{
	cap_t none = cap_init();
	int failed;

	if (!none)
		return err_set_errno(err, errno, "proxy: cap_init");
	failed = cap_set_proc(none);
	cap_free(none);
	if (failed)
		return err_set_errno(err, errno, "proxy: cannot drop capabilities");
	return 0;
}

int isolation_drop_privileges(struct err *err)
{
	const struct rlimit no_core = { 0, 0 };

	empty_bounding_set();
	if (become_nobody(err) < 0 || drop_capabilities(err) < 0)
		return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    setrlimit(RLIMIT_CORE, &no_core) < 0)
		return err_set_errno(err, errno, "proxy: no_new_privs");
	return 0;
}

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

int isolation_seccomp(struct err *err)
{
	struct sock_fprog prog;
	int r = filter_make(&prog, SCMP_ACT_KILL_PROCESS, SCMP_ACT_KILL_PROCESS, false, rules, NULL);

	if (r == 0)
		r = filter_apply(&prog);
	free(prog.filter);
	if (r < 0)
		return err_set_errno(err, -r, "proxy: cannot install the seccomp filter");
	return 0;
}
