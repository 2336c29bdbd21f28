/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the proxy can still do once it has isolated itself, tried from inside: each attempt in a process of its own that has
 * gone through both stages. What isn't allowed must end the process (SIGSYS), or be refused where the header says so.
 * links: proxy/process/isolation.c base/err.c base/seccomp/apply.c proxy/process/isolation_filter.c
 */
#include "proxy/process/isolation.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <netinet/in.h>

#include <cmocka.h>

#include "base/err.h"

#define REFUSED 40 /* exit status of a child whose attempt failed, errno EACCES */
#define DONE	41 /* … whose attempt worked */
#define OTHER	42 /* … whose attempt failed in another way */
#define NOBODY	65534

/* Before _exit() the sanitizer would make a system call of its own, which is not allowed: every attempt would look deadly. */
static void leave(int status)
{
	syscall(SYS_exit_group, status);
}

static void isolate(void)
{
	struct err err = { "" };

	if (isolation_drop_privileges(&err) || isolation_seccomp(&err)) {
		fprintf(stderr, "%s\n", err.text);
		_exit(99);
	}
}

/* The wait status of a child that is isolated and runs `attempt`. */
static int isolated(void (*attempt)(const void *arg), const void *arg)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		isolate();
		attempt(arg);
		leave(DONE);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* ---- system calls ---- */

struct call {
	const char *what;
	long number;
	long args[6];
};

static void make_call(const void *arg)
{
	const struct call *c = arg;

	if (syscall(c->number, c->args[0], c->args[1], c->args[2], c->args[3], c->args[4], c->args[5]) >= 0)
		leave(DONE);
	leave(errno == EACCES ? REFUSED : OTHER);
}

static char *const argv_true[] = { (char *)"/bin/true", NULL };
static const struct sockaddr_in somewhere = { .sin_family = AF_INET, .sin_port = 0x5000, .sin_addr = { 0x0100007f } };
static const union bpf_attr no_attr;

#define P(pointer) ((long)(uintptr_t)(pointer))

/* Nothing of this may be asked for, whatever would come of it. */
static const struct call deadly[] = {
/* files, by other ways than those that libraries try */
#ifdef SYS_creat
	{ "creat", SYS_creat, { P("/tmp/x"), 0600 } },
	{ "mkdir", SYS_mkdir, { P("/tmp/x"), 0700 } },
	{ "unlink", SYS_unlink, { P("/tmp/x") } },
	{ "rename", SYS_rename, { P("/tmp/x"), P("/tmp/y") } },
	{ "symlink", SYS_symlink, { P("/tmp/x"), P("/tmp/y") } },
	{ "link", SYS_link, { P("/tmp/x"), P("/tmp/y") } },
	{ "fork", SYS_fork, { 0 } },
	{ "vfork", SYS_vfork, { 0 } },
#endif
	{ "unlinkat", SYS_unlinkat, { AT_FDCWD, P("/tmp/x") } },
	{ "renameat2", SYS_renameat2, { AT_FDCWD, P("/tmp/x"), AT_FDCWD, P("/tmp/y") } },
	{ "linkat", SYS_linkat, { AT_FDCWD, P("/etc/passwd"), AT_FDCWD, P("/tmp/y") } },
	{ "mknodat", SYS_mknodat, { AT_FDCWD, P("/tmp/x"), S_IFIFO | 0600 } },
	{ "fchmod", SYS_fchmod, { 0, 0666 } },
	{ "fchown", SYS_fchown, { 0, 0, 0 } },
	{ "getdents64", SYS_getdents64, { 0, P(NULL), 0 } },
	{ "chdir", SYS_chdir, { P("/") } },
	{ "chroot", SYS_chroot, { P("/") } },
	{ "statx of a path", SYS_statx, { AT_FDCWD, P("/etc/passwd"), 0, 0, P(NULL) } },
	{ "name_to_handle_at", SYS_name_to_handle_at, { AT_FDCWD, P("/"), P(NULL), P(NULL), 0 } },
	{ "open_by_handle_at", SYS_open_by_handle_at, { 0, P(NULL), O_RDONLY } },
	{ "memfd_create", SYS_memfd_create, { P("x"), 0 } },
	{ "inotify_init1", SYS_inotify_init1, { 0 } },
	{ "fanotify_init", SYS_fanotify_init, { 0, 0 } },
	/* programs, processes */
	{ "execve", SYS_execve, { P("/bin/true"), P(argv_true), P(NULL) } },
	{ "execveat", SYS_execveat, { AT_FDCWD, P("/bin/true"), P(argv_true), P(NULL), 0 } },
	{ "clone", SYS_clone, { SIGCHLD } },
	{ "clone3", SYS_clone3, { P(NULL), 0 } },
	{ "kill of process 1", SYS_kill, { 1, 0 } },
	{ "kill of all", SYS_kill, { -1, 0 } },
	{ "tkill", SYS_tkill, { 1, 0 } },
	{ "rt_sigqueueinfo", SYS_rt_sigqueueinfo, { 1, SIGUSR1, P(NULL) } },
	{ "pidfd_open", SYS_pidfd_open, { 1, 0 } },
	{ "pidfd_send_signal", SYS_pidfd_send_signal, { 0, SIGKILL, P(NULL), 0 } },
	{ "pidfd_getfd", SYS_pidfd_getfd, { 0, 0, 0 } },
	{ "ptrace", SYS_ptrace, { PTRACE_TRACEME } },
	{ "process_vm_readv", SYS_process_vm_readv, { 1, P(NULL), 0, P(NULL), 0, 0 } },
	{ "process_vm_writev", SYS_process_vm_writev, { 1, P(NULL), 0, P(NULL), 0, 0 } },
	{ "kcmp", SYS_kcmp, { 1, 1, 0, 0, 0 } },
	{ "setpgid", SYS_setpgid, { 0, 0 } },
	{ "setsid", SYS_setsid, { 0 } },
	{ "prlimit64 of another", SYS_prlimit64, { 1, RLIMIT_NOFILE, P(NULL), P(NULL) } },
	{ "sched_setaffinity", SYS_sched_setaffinity, { 0, 0, P(NULL) } },
	/* privilege, the system */
	{ "setuid", SYS_setuid, { 0 } },
	{ "setresuid", SYS_setresuid, { 0, 0, 0 } },
	{ "setgid", SYS_setgid, { 0 } },
	{ "setgroups", SYS_setgroups, { 0, P(NULL) } },
	{ "capset", SYS_capset, { P(NULL), P(NULL) } },
	{ "prctl", SYS_prctl, { PR_SET_DUMPABLE, 1 } },
	{ "seccomp", SYS_seccomp, { 0, 0, P(NULL) } },
	{ "unshare", SYS_unshare, { CLONE_NEWUSER } },
	{ "setns", SYS_setns, { 0, 0 } },
	{ "mount", SYS_mount, { P("none"), P("/mnt"), P("tmpfs"), 0, P(NULL) } },
	{ "umount2", SYS_umount2, { P("/mnt"), 0 } },
	{ "pivot_root", SYS_pivot_root, { P("/"), P("/") } },
	{ "open_tree", SYS_open_tree, { AT_FDCWD, P("/"), 0 } },
	{ "fsopen", SYS_fsopen, { P("tmpfs"), 0 } },
	{ "move_mount", SYS_move_mount, { 0, P(""), 0, P(""), 0 } },
	{ "bpf", SYS_bpf, { BPF_MAP_CREATE, P(&no_attr), sizeof(no_attr) } },
	{ "perf_event_open", SYS_perf_event_open, { P(NULL), 0, -1, -1, 0 } },
	{ "userfaultfd", SYS_userfaultfd, { 0 } },
	{ "io_uring_setup", SYS_io_uring_setup, { 8, P(NULL) } },
	{ "io_uring_enter", SYS_io_uring_enter, { 0, 1, 0, 0, P(NULL) } },
	{ "io_setup", SYS_io_setup, { 1, P(NULL) } },
	{ "keyctl", SYS_keyctl, { 0, 0, 0, 0, 0 } },
	{ "add_key", SYS_add_key, { P("user"), P("x"), P("x"), 1, -1 } },
	{ "init_module", SYS_init_module, { P(NULL), 0, P("") } },
	{ "finit_module", SYS_finit_module, { 0, P(""), 0 } },
	{ "kexec_load", SYS_kexec_load, { 0, 0, P(NULL), 0 } },
	{ "reboot", SYS_reboot, { 0, 0, 0, P(NULL) } },
	{ "syslog", SYS_syslog, { 3, P(NULL), 0 } },
	{ "sethostname", SYS_sethostname, { P("x"), 1 } },
	{ "swapon", SYS_swapon, { P("/x"), 0 } },
	{ "quotactl", SYS_quotactl, { 0, P(NULL), 0, P(NULL) } },
	{ "clock_settime", SYS_clock_settime, { 0, P(NULL) } },
	{ "personality", SYS_personality, { 0xffffffff } },
	/* memory that runs */
	{ "mmap, executable", SYS_mmap, { 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0 } },
	{ "mprotect, executable", SYS_mprotect, { 0, 0, PROT_READ | PROT_EXEC } },
	{ "pkey_mprotect", SYS_pkey_mprotect, { 0, 0, PROT_READ | PROT_EXEC, -1 } },
	/* sockets of other kinds, and what waits for others to connect */
	{ "socket AF_UNIX", SYS_socket, { AF_UNIX, SOCK_STREAM, 0 } },
	{ "socket AF_NETLINK", SYS_socket, { AF_NETLINK, SOCK_RAW, 0 } },
	{ "socket AF_PACKET", SYS_socket, { AF_PACKET, SOCK_RAW, 0 } },
	{ "socket AF_VSOCK", SYS_socket, { AF_VSOCK, SOCK_STREAM, 0 } },
	{ "socket AF_ALG", SYS_socket, { AF_ALG, SOCK_SEQPACKET, 0 } },
	{ "socket AF_XDP", SYS_socket, { AF_XDP, SOCK_RAW, 0 } },
	{ "socket AF_BLUETOOTH", SYS_socket, { AF_BLUETOOTH, SOCK_STREAM, 0 } },
	{ "socket AF_INET, raw", SYS_socket, { AF_INET, SOCK_RAW, IPPROTO_ICMP } },
	{ "socket AF_INET6, raw", SYS_socket, { AF_INET6, SOCK_RAW, IPPROTO_ICMP } },
	{ "socket AF_INET, SCTP", SYS_socket, { AF_INET, SOCK_SEQPACKET, 132 } },
	{ "socketpair", SYS_socketpair, { AF_UNIX, SOCK_STREAM, 0, P(NULL) } },
	{ "bind", SYS_bind, { 0, P(&somewhere), sizeof(somewhere) } },
	{ "listen", SYS_listen, { 0, 1 } },
	{ "ioctl TIOCSTI", SYS_ioctl, { 0, TIOCSTI, P("x") } },
	{ "ioctl SIOCSIFFLAGS", SYS_ioctl, { 0, 0x8914, P(NULL) } },
};

/* A library may look for a file and go on without. */
static const struct call refused[] = {
#ifdef SYS_open
	{ "open", SYS_open, { P("/etc/passwd"), O_RDONLY } },
	{ "stat", SYS_stat, { P("/etc/passwd"), P(NULL) } },
	{ "access", SYS_access, { P("/etc/passwd"), 0 } },
	{ "readlink", SYS_readlink, { P("/proc/self/exe"), P(NULL), 0 } },
#endif
	{ "openat", SYS_openat, { AT_FDCWD, P("/etc/passwd"), O_RDONLY } },
	{ "openat, new file", SYS_openat, { AT_FDCWD, P("/tmp/x"), O_CREAT | O_WRONLY, 0600 } },
	{ "openat2", SYS_openat2, { AT_FDCWD, P("/etc/passwd"), P(NULL), 0 } },
};

static const struct call works[] = {
	{ "socket AF_INET", SYS_socket, { AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0 } },
	{ "socket AF_INET6", SYS_socket, { AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 0 } },
	{ "mmap", SYS_mmap, { 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0 } },
	{ "madvise", SYS_madvise, { 0, 0, 0 } },
	{ "getpid", SYS_getpid, { 0 } },
};

static void name_status(const char *what, int status, char text[static 128])
{
	if (WIFSIGNALED(status))
		snprintf(text, 128, "%s: killed by signal %d", what, WTERMSIG(status));
	else
		snprintf(text, 128, "%s: %s", what,
			 WEXITSTATUS(status) == DONE	  ? "worked"
			 : WEXITSTATUS(status) == REFUSED ? "refused with EACCES"
			 : WEXITSTATUS(status) == OTHER	  ? "failed otherwise, or the kernel does not know it"
							  : "the isolation failed");
}

static void expect(const struct call *calls, size_t n, bool killed, int exit_status)
{
	char text[128];
	int wrong = 0;

	for (size_t i = 0; i < n; i++) {
		int status = isolated(make_call, &calls[i]);

		if (killed ? WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS
			   : WIFEXITED(status) && WEXITSTATUS(status) == exit_status)
			continue;
		name_status(calls[i].what, status, text);
		print_error("%s\n", text);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

static void test_deadly(void **state)
{
	(void)state;
	expect(deadly, sizeof(deadly) / sizeof(*deadly), true, 0);
}

static void test_refused(void **state)
{
	(void)state;
	expect(refused, sizeof(refused) / sizeof(*refused), false, REFUSED);
}

static void test_works(void **state)
{
	(void)state;
	expect(works, sizeof(works) / sizeof(*works), false, DONE);
}

#ifdef __x86_64__
/* The same numbers mean other calls there: socketcall(2) and its like. */
static void as_i386(const void *arg)
{
	long result;

	(void)arg;
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory"); /* getpid */
}

static void as_x32(const void *arg)
{
	(void)arg;
	syscall(0x40000000 | SYS_getpid);
}

static void test_other_architectures(void **state)
{
	void (*const attempts[])(const void *) = { as_i386, as_x32 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		int status = isolated(attempts[i], NULL);

		/* A kernel without i386 calls answers the first with SIGSEGV. */
		assert_true(WIFSIGNALED(status));
		assert_true(WTERMSIG(status) == SIGSYS || (i == 0 && WTERMSIG(status) == SIGSEGV));
	}
}
#endif

/* ---- what the process is ---- */

/* A line of /proc/self/status has this value. */
static bool status_has(const char *key, const char *value)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		found = strncmp(line, key, strlen(key)) == 0 && strcmp(line + strlen(key), value) == 0;
	}
	if (f)
		fclose(f);
	if (!found)
		fprintf(stderr, "%s is not %s\n", key, value);
	return found;
}

static bool is_stripped(bool was_root)
{
	static const char none[] = "\t0000000000000000";
	struct rlimit core;
	bool ok = status_has("CapInh:", none) && status_has("CapPrm:", none) && status_has("CapEff:", none) &&
		  status_has("CapAmb:", none) && status_has("NoNewPrivs:", "\t1");

	if (was_root)
		ok = ok && status_has("CapBnd:", none) && status_has("Groups:", "\t ") &&
		     status_has("Uid:", "\t65534\t65534\t65534\t65534") &&
		     status_has("Gid:", "\t65534\t65534\t65534\t65534");
	return ok && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 && getrlimit(RLIMIT_CORE, &core) == 0 &&
	       core.rlim_max == 0 && setuid(0) == (was_root || getuid() != 0 ? -1 : 0);
}

static void test_stripped(void **state)
{
	const bool becomes_nobody = geteuid() == 0 && isolation_can_be_nobody();
	int status;
	pid_t pid;

	(void)state;
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct err err = { "" };

		/* /proc/self of a process that is not dumpable is root's alone; it may read it all the same. */
		_exit(isolation_drop_privileges(&err) == 0 && is_stripped(becomes_nobody) ? DONE : OTHER);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), DONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deadly),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_works),
#ifdef __x86_64__
		cmocka_unit_test(test_other_architectures),
#endif
		cmocka_unit_test(test_stripped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
