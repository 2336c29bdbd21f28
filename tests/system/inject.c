/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one system call in the name of another process, as an attacker would who has taken it over:
 *
 *   inject PID NUMBER [ARG|@HEX]...
 *
 * The instruction of a system call that the process waits in is used again; when it is at work, that is awaited. The bytes that HEX
 * stands for, with a NUL behind them, are put on its stack.
 * Prints "result N" (negative: -errno), or "signal N" when the process died of it, and lets it go on where it was.
 */
#include <elf.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#define ARGS_MAX  6
#define BYTES_MAX 512
#define BELOW	  8192 /* the stack: below what the process itself uses */

#if defined(__x86_64__)
#define CALL_LEN   2
#define CALL_CODE  0x050fu
#define PC(r)	   (r)->rip
#define SP(r)	   (r)->rsp
#define RESULT(r)  (r)->rax
#define CODE(word) ((word)&0xffff)
#elif defined(__aarch64__)
#define CALL_LEN   4
#define CALL_CODE  0xd4000001u
#define PC(r)	   (r)->pc
#define SP(r)	   (r)->sp
#define RESULT(r)  (r)->regs[0]
#define CODE(word) ((word)&0xffffffff)
#endif

static void set_call(struct user_regs_struct *r, unsigned long number, const unsigned long args[static ARGS_MAX])
{
#if defined(__x86_64__)
	r->rax = number;
	r->orig_rax = (unsigned long)-1; /* nothing is to be restarted */
	r->rdi = args[0];
	r->rsi = args[1];
	r->rdx = args[2];
	r->r10 = args[3];
	r->r8 = args[4];
	r->r9 = args[5];
#elif defined(__aarch64__)
	r->regs[8] = number;
	for (int i = 0; i < ARGS_MAX; i++)
		r->regs[i] = args[i];
#endif
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void put_bytes(pid_t pid, unsigned long at, const char *hex)
{
	unsigned char bytes[BYTES_MAX] = { 0 };
	unsigned long word;

	for (size_t i = 0; i < BYTES_MAX - 1 && hex[2 * i] && hex[2 * i + 1]; i++) {
		const char digits[] = { hex[2 * i], hex[2 * i + 1], '\0' };

		bytes[i] = (unsigned char)strtoul(digits, NULL, 16);
	}
	for (size_t i = 0; i < sizeof(bytes); i += sizeof(word)) {
		memcpy(&word, bytes + i, sizeof(word));
		if (ptrace(PTRACE_POKEDATA, pid, at + i, word) < 0)
			die("ptrace, stack");
	}
}

/* Waits for the process to stop; when it ends instead, says of what, and that is all. */
static void wait_for_stop(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, __WALL) != pid)
		die("waitpid");
	if (WIFSTOPPED(status))
		return;
	printf("%s %d\n", WIFSIGNALED(status) ? "signal" : "exit",
	       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	exit(0);
}

static void registers(pid_t pid, enum __ptrace_request request, struct user_regs_struct *r)
{
	struct iovec iov = { r, sizeof(*r) };

	if (ptrace(request, pid, NT_PRSTATUS, &iov) == 0)
		return;
	if (errno == ESRCH)
		wait_for_stop(pid); /* somebody has killed it meanwhile */
	die("ptrace, registers");
}

/* Stops the process in a system call, and leaves the registers that it has there in `r`. */
static void stop_in_call(pid_t pid, struct user_regs_struct *r)
{
	for (;;) {
		if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) < 0)
			die("ptrace, attach");
		wait_for_stop(pid);
		registers(pid, PTRACE_GETREGSET, r);
		errno = 0;
		if (CODE((unsigned long)ptrace(PTRACE_PEEKTEXT, pid, PC(r) - CALL_LEN, NULL)) == CALL_CODE && !errno)
			return;
		if (ptrace(PTRACE_DETACH, pid, NULL, NULL) < 0)
			die("ptrace, detach");
		poll(NULL, 0, 1);
	}
}

int main(int argc, char **argv)
{
	struct user_regs_struct saved, regs;
	unsigned long args[ARGS_MAX] = { 0 };
	pid_t pid;

	if (argc < 3 || argc > 3 + ARGS_MAX)
		return 2;
	pid = (pid_t)strtol(argv[1], NULL, 10);
	stop_in_call(pid, &saved);
	regs = saved;
	PC(&regs) -= CALL_LEN;
	for (int i = 3; i < argc; i++) {
		args[i - 3] = strtoul(argv[i], NULL, 0);
		if (argv[i][0] == '@') {
			args[i - 3] = ((SP(&saved) - BELOW) & ~15ul) - (unsigned long)i * BYTES_MAX;
			put_bytes(pid, args[i - 3], argv[i] + 1);
		}
	}
	set_call(&regs, strtoul(argv[2], NULL, 0), args);
	registers(pid, PTRACE_SETREGSET, &regs);
	if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) < 0)
		die("ptrace, step");
	wait_for_stop(pid);
	registers(pid, PTRACE_GETREGSET, &regs);
	printf("result %ld\n", (long)RESULT(&regs));
	registers(pid, PTRACE_SETREGSET, &saved);
	/* What it said may have been its end already. */
	if (ptrace(PTRACE_DETACH, pid, NULL, NULL) < 0 && errno != ESRCH)
		die("ptrace, detach");
	return 0;
}
