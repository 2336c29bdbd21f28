/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter as tables: what is refused, on which argument, and with which
 * errno. It holds for the native architecture and its 32-bit companion; other
 * ways in (x32) get ENOSYS for everything.
 *
 * Arguments that the kernel reads as 32 bits are compared as such (the upper
 * half would otherwise hide them), and families and protocols by ranges that
 * take in any upper half.
 *
 * links: base/seccomp/filter.gen.c
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <linux/netlink.h>

#include "base/seccomp/filter.h"

#define LOW_32 0xffffffffu

struct refused_call {
	const char *name;
	int errnum;
};

/* Whatever the arguments. ENOSYS where programs then do without. */
static const struct refused_call refused_calls[] = {
	/* sockets past this filter: io_uring, and i386's multiplexer, whose arguments lie in memory */
	{ "io_uring_setup", ENOSYS },
	{ "io_uring_enter", ENOSYS },
	{ "io_uring_register", ENOSYS },
	{ "socketcall", ENOSYS },
	/* flags in memory: programs fall back to clone(), whose flags can be judged */
	{ "clone3", ENOSYS },
	/* the key service: request_key() runs a program in the host */
	{ "add_key", ENOSYS },
	{ "request_key", ENOSYS },
	{ "keyctl", ENOSYS },
	/* the kernel itself and the whole machine */
	{ "bpf", EPERM },
	{ "perf_event_open", EPERM },
	{ "userfaultfd", EPERM },
	{ "kexec_load", EPERM },
	{ "kexec_file_load", EPERM },
	{ "init_module", EPERM },
	{ "finit_module", EPERM },
	{ "delete_module", EPERM },
	{ "create_module", EPERM },
	{ "open_by_handle_at", EPERM },
	{ "acct", EPERM },
	{ "swapon", EPERM },
	{ "swapoff", EPERM },
	{ "syslog", EPERM },
	{ "reboot", EPERM },
	{ "settimeofday", EPERM },
	{ "clock_settime", EPERM },
	{ "clock_settime64", EPERM },
	{ "adjtimex", EPERM },
	{ "clock_adjtime", EPERM },
	{ "clock_adjtime64", EPERM },
	{ "stime", EPERM },
	{ "quotactl", EPERM },
	{ "quotactl_fd", EPERM },
	{ "vhangup", EPERM },
	{ "iopl", EPERM },
	{ "ioperm", EPERM },
	{ "lookup_dcookie", ENOSYS },
	{ "nfsservctl", ENOSYS },
	{ "_sysctl", ENOSYS },
	{ "uselib", ENOSYS },
};

/*
 * Input injection, console selection, console redirection, line disciplines
 * (each a kernel module to load), the terminal for oneself alone.
 */
static const unsigned refused_ioctls[] = { TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD, TIOCEXCL };

static const int allowed_families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };

/* Protocols of AF_INET and AF_INET6 that load a kernel module or hide a transport of their own. */
static const unsigned refused_protocols[] = { 33 /* DCCP */, 132 /* SCTP */, 256 /* SMC */ };
#define PROTOCOL_LAST 262 /* MPTCP; nothing above it */

static struct scmp_arg_cmp compare(unsigned arg, enum scmp_compare op, scmp_datum_t value)
{
	return (struct scmp_arg_cmp){ .arg = arg, .op = op, .datum_a = value, .datum_b = 0 };
}

/* The bits of `mask` in argument `arg` are those of `value`. */
static struct scmp_arg_cmp compare_bits(unsigned arg, scmp_datum_t mask, scmp_datum_t value)
{
	return (struct scmp_arg_cmp){ .arg = arg, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value };
}

static int refuse(struct filter *f, const char *name, int errnum, unsigned n, const struct scmp_arg_cmp *args)
{
	int nr = seccomp_syscall_resolve_name(name);

	if (nr == __NR_SCMP_ERROR)
		return 0; /* a call that this libseccomp does not know, such as an old one */
	return filter_rule(f, SCMP_ACT_ERRNO((uint16_t)errnum), nr, n, args);
}

static int refuse_calls(struct filter *f)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(refused_calls) / sizeof(*refused_calls); i++)
		rc = refuse(f, refused_calls[i].name, refused_calls[i].errnum, 0, NULL);
	return rc;
}

static bool is_allowed_family(int family, bool refuse_unix)
{
	if (refuse_unix && family == AF_UNIX)
		return false;
	for (size_t i = 0; i < sizeof(allowed_families) / sizeof(*allowed_families); i++)
		if (family == allowed_families[i])
			return true;
	return false;
}

static int refuse_families(struct filter *f, const char *call, bool refuse_unix)
{
	struct scmp_arg_cmp above = compare(0, SCMP_CMP_GT, AF_NETLINK);
	int rc = refuse(f, call, EAFNOSUPPORT, 1, &above);

	for (int family = 0; !rc && family <= AF_NETLINK; family++) {
		struct scmp_arg_cmp is = compare(0, SCMP_CMP_EQ, (scmp_datum_t)family);

		if (!is_allowed_family(family, refuse_unix))
			rc = refuse(f, call, EAFNOSUPPORT, 1, &is);
	}
	return rc;
}

static int refuse_protocols(struct filter *f)
{
	const struct scmp_arg_cmp netlink[] = { compare(0, SCMP_CMP_EQ, AF_NETLINK),
						compare(2, SCMP_CMP_NE, NETLINK_ROUTE) };
	static const int inet[] = { AF_INET, AF_INET6 };
	int rc = refuse(f, "socket", EPROTONOSUPPORT, 2, netlink);

	for (size_t at = 0; !rc && at < 2; at++) {
		const scmp_datum_t family = (scmp_datum_t)inet[at];
		const struct scmp_arg_cmp above[] = { compare(0, SCMP_CMP_EQ, family),
						      compare(2, SCMP_CMP_GT, PROTOCOL_LAST) };

		rc = refuse(f, "socket", EPROTONOSUPPORT, 2, above);
		for (size_t i = 0; !rc && i < sizeof(refused_protocols) / sizeof(*refused_protocols); i++) {
			const struct scmp_arg_cmp is[] = { compare(0, SCMP_CMP_EQ, family),
							   compare(2, SCMP_CMP_EQ, refused_protocols[i]) };

			rc = refuse(f, "socket", EPROTONOSUPPORT, 2, is);
		}
	}
	return rc;
}

static int refuse_ioctls(struct filter *f)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(refused_ioctls) / sizeof(*refused_ioctls); i++) {
		struct scmp_arg_cmp is = compare_bits(1, LOW_32, refused_ioctls[i]);

		rc = refuse(f, "ioctl", EPERM, 1, &is);
	}
	return rc;
}

/*
 * Files that are left in the workspace must not lend their owner's rights to
 * whoever runs them on the host: no set-user-ID bit, on a new file or an old one.
 */
static int refuse_set_uid(struct filter *f)
{
	static const struct {
		const char *call;
		unsigned mode, flags; /* arguments; flags 0: the mode always counts */
	} calls[] = {
		{ "chmod", 1, 0 }, { "fchmod", 1, 0 },	{ "fchmodat", 2, 0 }, { "fchmodat2", 2, 0 }, { "creat", 1, 0 },
		{ "mknod", 1, 0 }, { "mknodat", 2, 0 }, { "open", 2, 1 },     { "openat", 3, 2 },
	};
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(calls) / sizeof(*calls); i++) {
		const struct scmp_arg_cmp args[] = { compare_bits(calls[i].mode, S_ISUID, S_ISUID),
						     compare_bits(calls[i].flags, O_CREAT, O_CREAT) };

		rc = refuse(f, calls[i].call, EPERM, calls[i].flags ? 2 : 1, args);
		if (!rc && calls[i].flags) {
			const struct scmp_arg_cmp unnamed[] = { args[0],
								compare_bits(calls[i].flags, O_TMPFILE, O_TMPFILE) };

			rc = refuse(f, calls[i].call, EPERM, 2, unnamed);
		}
	}
	/* Its mode lies in memory, where a filter cannot look; programs fall back to openat(2). */
	return rc ? rc : refuse(f, "openat2", ENOSYS, 0, NULL);
}

/* A cgroup namespace of one's own is what it takes to mount the cgroup file system, where root's files could be written. */
static int refuse_cgroup_namespaces(struct filter *f)
{
	const struct scmp_arg_cmp flag = compare_bits(0, CLONE_NEWCGROUP, CLONE_NEWCGROUP);
	int rc;

	rc = refuse(f, "clone", EPERM, 1, &flag);
	return rc ? rc : refuse(f, "unshare", EPERM, 1, &flag);
}

/*
 * RLIMIT_CORE stays 1, the one value with which the kernel starts no core
 * handler in the host. Programs that ask for none have what they want, and are told so.
 */
static int keep_core_limit(struct filter *f)
{
	const struct scmp_arg_cmp set = compare_bits(0, LOW_32, RLIMIT_CORE);
	const struct scmp_arg_cmp pr[] = { compare_bits(1, LOW_32, RLIMIT_CORE), compare(2, SCMP_CMP_NE, 0) };
	int rc;

	rc = refuse(f, "setrlimit", 0, 1, &set);
	return rc ? rc : refuse(f, "prlimit64", 0, 2, pr);
}

static int rules(struct filter *f, const void *arg)
{
	const bool *refuse_unix = arg;
	int rc = refuse_calls(f);

	rc = rc ? rc : refuse_families(f, "socket", *refuse_unix);
	rc = rc ? rc : refuse_families(f, "socketpair", false);
	rc = rc ? rc : refuse_protocols(f);
	rc = rc ? rc : refuse_ioctls(f);
	rc = rc ? rc : refuse_set_uid(f);
	rc = rc ? rc : refuse_cgroup_namespaces(f);
	return rc ? rc : keep_core_limit(f);
}

int main(void)
{
	struct sock_fprog programs[2];

	for (int refuse_unix = 0; refuse_unix < 2; refuse_unix++) {
		const bool arg = refuse_unix;
		int rc = filter_make(&programs[refuse_unix], SCMP_ACT_ALLOW, SCMP_ACT_ERRNO(ENOSYS), true, rules, &arg);

		if (rc) {
			fprintf(stderr, "the command's filter: %s\n", strerror(-rc));
			return 1;
		}
	}
	filter_print("seccomp_filters", programs, 2);
	return fflush(stdout) ? 1 : 0;
}
