/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter as tables: what is refused, on which argument, and with which
 * errno. It holds for the native architecture and its 32-bit companion; other
 * ways in (x32) get ENOSYS for everything.
 *
 * Arguments that the kernel reads as 32 bits are compared as such (the upper
 * half would otherwise hide them), and families and protocols by ranges that
 * take in any upper half.
 */
#include "sandbox-net/run/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <linux/seccomp.h>

#include "base/err.h"

#define FILTER_MAX 4096 /* instructions; the kernel's own limit (BPF_MAXINSNS) */
#define LOW_32	   0xffffffffu

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

static int refuse(scmp_filter_ctx ctx, const char *name, int errnum, unsigned n, const struct scmp_arg_cmp *args)
{
	int nr = seccomp_syscall_resolve_name(name);

	if (nr == __NR_SCMP_ERROR)
		return 0; /* a call that this libseccomp does not know, such as an old one */
	return seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO((uint16_t)errnum), nr, n, args);
}

static int refuse_calls(scmp_filter_ctx ctx)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(refused_calls) / sizeof(*refused_calls); i++)
		rc = refuse(ctx, refused_calls[i].name, refused_calls[i].errnum, 0, NULL);
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

static int refuse_families(scmp_filter_ctx ctx, const char *call, bool refuse_unix)
{
	struct scmp_arg_cmp above = compare(0, SCMP_CMP_GT, AF_NETLINK);
	int rc = refuse(ctx, call, EAFNOSUPPORT, 1, &above);

	for (int family = 0; !rc && family <= AF_NETLINK; family++) {
		struct scmp_arg_cmp is = compare(0, SCMP_CMP_EQ, (scmp_datum_t)family);

		if (!is_allowed_family(family, refuse_unix))
			rc = refuse(ctx, call, EAFNOSUPPORT, 1, &is);
	}
	return rc;
}

static int refuse_protocols(scmp_filter_ctx ctx)
{
	const struct scmp_arg_cmp netlink[] = { compare(0, SCMP_CMP_EQ, AF_NETLINK),
						compare(2, SCMP_CMP_NE, NETLINK_ROUTE) };
	static const int inet[] = { AF_INET, AF_INET6 };
	int rc = refuse(ctx, "socket", EPROTONOSUPPORT, 2, netlink);

	for (size_t f = 0; !rc && f < 2; f++) {
		const scmp_datum_t family = (scmp_datum_t)inet[f];
		const struct scmp_arg_cmp above[] = { compare(0, SCMP_CMP_EQ, family),
						      compare(2, SCMP_CMP_GT, PROTOCOL_LAST) };

		rc = refuse(ctx, "socket", EPROTONOSUPPORT, 2, above);
		for (size_t i = 0; !rc && i < sizeof(refused_protocols) / sizeof(*refused_protocols); i++) {
			const struct scmp_arg_cmp is[] = { compare(0, SCMP_CMP_EQ, family),
							   compare(2, SCMP_CMP_EQ, refused_protocols[i]) };

			rc = refuse(ctx, "socket", EPROTONOSUPPORT, 2, is);
		}
	}
	return rc;
}

static int refuse_ioctls(scmp_filter_ctx ctx)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(refused_ioctls) / sizeof(*refused_ioctls); i++) {
		struct scmp_arg_cmp is = compare_bits(1, LOW_32, refused_ioctls[i]);

		rc = refuse(ctx, "ioctl", EPERM, 1, &is);
	}
	return rc;
}

/*
 * Files that are left in the workspace must not lend their owner's rights to
 * whoever runs them on the host: no set-user-ID bit, on a new file or an old one.
 */
static int refuse_set_uid(scmp_filter_ctx ctx)
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

		rc = refuse(ctx, calls[i].call, EPERM, calls[i].flags ? 2 : 1, args);
		if (!rc && calls[i].flags) {
			const struct scmp_arg_cmp unnamed[] = { args[0],
								compare_bits(calls[i].flags, O_TMPFILE, O_TMPFILE) };

			rc = refuse(ctx, calls[i].call, EPERM, 2, unnamed);
		}
	}
	/* Its mode lies in memory, where a filter cannot look; programs fall back to openat(2). */
	return rc ? rc : refuse(ctx, "openat2", ENOSYS, 0, NULL);
}

/* A cgroup namespace of one's own is what it takes to mount the cgroup file system, where root's files could be written. */
static int refuse_cgroup_namespaces(scmp_filter_ctx ctx)
{
	const struct scmp_arg_cmp flag = compare_bits(0, CLONE_NEWCGROUP, CLONE_NEWCGROUP);
	int rc;

	rc = refuse(ctx, "clone", EPERM, 1, &flag);
	return rc ? rc : refuse(ctx, "unshare", EPERM, 1, &flag);
}

/*
 * RLIMIT_CORE stays 1, the one value with which the kernel starts no core
 * handler in the host. Programs that ask for none have what they want, and are told so.
 */
static int keep_core_limit(scmp_filter_ctx ctx)
{
	const struct scmp_arg_cmp set = compare_bits(0, LOW_32, RLIMIT_CORE);
	const struct scmp_arg_cmp pr[] = { compare_bits(1, LOW_32, RLIMIT_CORE), compare(2, SCMP_CMP_NE, 0) };
	int rc;

	rc = refuse(ctx, "setrlimit", 0, 1, &set);
	return rc ? rc : refuse(ctx, "prlimit64", 0, 2, pr);
}

/* The 32-bit companion of the native architecture, which its kernel runs too. */
static int add_architectures(scmp_filter_ctx ctx)
{
	switch (seccomp_arch_native()) {
	case SCMP_ARCH_X86_64:
		return seccomp_arch_add(ctx, SCMP_ARCH_X86);
	case SCMP_ARCH_AARCH64:
		return seccomp_arch_add(ctx, SCMP_ARCH_ARM);
	default:
		return 0;
	}
}

static int add_rules(scmp_filter_ctx ctx, bool refuse_unix)
{
	int rc;

	rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
	rc = rc ? rc : add_architectures(ctx);
	rc = rc ? rc : refuse_calls(ctx);
	rc = rc ? rc : refuse_families(ctx, "socket", refuse_unix);
	rc = rc ? rc : refuse_families(ctx, "socketpair", false);
	rc = rc ? rc : refuse_protocols(ctx);
	rc = rc ? rc : refuse_ioctls(ctx);
	rc = rc ? rc : refuse_set_uid(ctx);
	rc = rc ? rc : refuse_cgroup_namespaces(ctx);
	return rc ? rc : keep_core_limit(ctx);
}

/* libseccomp writes the program to a descriptor only. */
static int export(scmp_filter_ctx ctx, struct sock_fprog *prog)
{
	const size_t max = FILTER_MAX * sizeof(struct sock_filter);
	ssize_t n;
	int fd, rc;

	fd = memfd_create("seccomp", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = seccomp_export_bpf(ctx, fd);
	prog->filter = rc ? NULL : malloc(max);
	n = prog->filter ? pread(fd, prog->filter, max, 0) : -1;
	close(fd);
	if (n <= 0 || (size_t)n % sizeof(struct sock_filter)) {
		free(prog->filter);
		prog->filter = NULL;
		return rc ? rc : -EIO;
	}
	prog->len = (unsigned short)((size_t)n / sizeof(struct sock_filter));
	return 0;
}

int seccomp_compile(bool refuse_unix, struct sock_fprog *prog, struct err *err)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int rc;

	if (!ctx)
		return err_set(err, "cannot start a seccomp filter");
	rc = add_rules(ctx, refuse_unix);
	rc = rc ? rc : export(ctx, prog);
	seccomp_release(ctx);
	return rc ? err_set_errno(err, -rc, "cannot compile the seccomp filter") : 0;
}

int seccomp_apply(const struct sock_fprog *prog)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, prog) ? -errno : 0;
}
