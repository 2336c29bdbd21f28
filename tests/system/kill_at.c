/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program and kills one of its processes, as kill -9 would, at the N-th step of all of them together:
 *
 *   kill_at N FILE PROGRAM ARG...
 *
 * A step is the beginning or the end of a system call by which processes are made, confined, speak to each other, or write. FILE
 * gets "NAME CALL begin|end" of who was killed ("first" for the program itself), or "none STEPS" when there were fewer. Ends as the program
 * does (128 + n for signal n), once all of its processes have.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPTIONS \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL)

static const struct {
	long number;
	const char *name;
} steps[] = {
	{ SYS_clone, "clone" },	      { SYS_clone3, "clone3" },		{ SYS_execve, "execve" },
	{ SYS_unshare, "unshare" },   { SYS_setns, "setns" },		{ SYS_seccomp, "seccomp" },
	{ SYS_sendmsg, "sendmsg" },   { SYS_sendto, "sendto" },		{ SYS_recvmsg, "recvmsg" },
	{ SYS_write, "write" },	      { SYS_writev, "writev" },		{ SYS_connect, "connect" },
	{ SYS_accept4, "accept4" },   { SYS_socketpair, "socketpair" }, { SYS_setresuid, "setresuid" },
	{ SYS_shutdown, "shutdown" }, { SYS_pivot_root, "pivot_root" }, { SYS_move_mount, "move_mount" },
	{ SYS_wait4, "wait4" },	      { SYS_exit_group, "exit_group" }, { SYS_kill, "kill" },
	{ SYS_bind, "bind" },	      { SYS_ftruncate, "ftruncate" },	{ SYS_umount2, "umount2" },
};

static void die(const char *what)
{
	perror(what);
	exit(99);
}

static const char *step_name(uint64_t number)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		if ((uint64_t)steps[i].number == number)
			return steps[i].name;
	return NULL;
}

/* The step at which the process stands; NULL for a call that is none. The end of a call does not say which one it is. */
static const char *step_of(pid_t pid, bool *ends)
{
	static struct {
		pid_t pid;
		const char *name;
	} inside[256];
	struct __ptrace_syscall_info info;
	const char *name = NULL;
	size_t i = 0, slot = 0;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) < 0)
		return NULL;
	for (; i < 256 && inside[i].pid != pid; i++)
		slot = inside[i].pid == 0 ? i : slot;
	i = i < 256 ? i : slot;
	*ends = info.op == PTRACE_SYSCALL_INFO_EXIT;
	if (*ends)
		name = inside[i].pid == pid ? inside[i].name : NULL;
	inside[i].pid = *ends ? 0 : pid;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
		name = inside[i].name = step_name(info.entry.nr);
	return name;
}

static void say_who(FILE *out, pid_t pid, pid_t first)
{
	char path[64], name[32] = "gone\n";
	FILE *comm;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	comm = fopen(path, "re");
	if (comm) {
		(void)!fgets(name, sizeof(name), comm);
		fclose(comm);
	}
	name[strcspn(name, " \n")] = '\0';
	fputs(pid == first ? "first" : name, out);
}

static void start(char **argv)
{
	raise(SIGSTOP);
	execvp(argv[0], argv);
	die(argv[0]);
}

int main(int argc, char **argv)
{
	long due = argc > 3 ? strtol(argv[1], NULL, 10) : 0, count = 0;
	FILE *out = argc > 3 ? fopen(argv[2], "we") : NULL;
	int status, result = 99;
	bool done = false;
	pid_t first, pid;

	if (!out)
		return 2;
	setvbuf(out, NULL, _IONBF, 0);
	first = fork();
	if (first == 0)
		start(argv + 3);
	if (waitpid(first, &status, WUNTRACED) != first || ptrace(PTRACE_SEIZE, first, NULL, OPTIONS) < 0)
		die("ptrace");
	kill(first, SIGCONT);
	while ((pid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
		int signo = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
		const int event = status >> 16;
		bool ends = false;

		if (!WIFSTOPPED(status)) {
			if (pid == first)
				result = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
			continue;
		}
		if (signo == (SIGTRAP | 0x80)) {
			const char *step = step_of(pid, &ends);

			signo = 0;
			if (step && !done && ++count == due) {
				done = true;
				say_who(out, pid, first);
				fprintf(out, " %s %s\n", step, ends ? "end" : "begin");
				kill(pid, SIGKILL);
				continue;
			}
		} else if (event) {
			signo = 0; /* a new process, or a stop of the group: nobody here stops for good */
		}
		ptrace(done ? PTRACE_CONT : PTRACE_SYSCALL, pid, NULL, (long)signo);
	}
	if (!done)
		fprintf(out, "none %ld\n", count);
	fclose(out);
	return result;
}
