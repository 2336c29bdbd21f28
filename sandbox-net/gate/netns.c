/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work in another network namespace, by a child process that hands back
 * descriptors and an error text over a socketpair. As a rule the child has the
 * caller's memory, as after vfork(2): to copy it, and to copy again each page
 * that is written, took a tenth of a sandbox's start.
 */
#include "sandbox-net/gate/netns.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fdpass.h"

struct netns_result {
	int failed;
	struct err err;
};

/* The child's whole life: it never returns. */
static _Noreturn void child(int sock, int (*work)(void *arg, int *fds, struct err *err), void *arg, int *fds,
			    size_t n_fds)
{
	struct netns_result result = { 0 };

	/* A parent that is gone already leaves a socket without a peer, and nobody to keep the descriptors. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	result.failed = work(arg, fds, &result.err) != 0;
	_exit(fdpass_send(sock, &result, sizeof(result), fds, result.failed ? 0 : n_fds) ? 1 : 0);
}

/* Reads the child's result; err says what is wrong with it. */
static int collect(int sock, int *fds, size_t n_fds, struct err *err)
{
	struct netns_result result;
	int got[FDPASS_MAX];
	size_t n;
	ssize_t r = fdpass_recv(sock, &result, sizeof(result), got, FDPASS_MAX, &n);

	if (r < 0)
		return err_set_errno(err, (int)-r, "descriptors from the helper process");
	if (r == sizeof(result) && !result.failed && n == n_fds) {
		for (size_t i = 0; i < n; i++)
			fds[i] = got[i];
		return 0;
	}
	while (n)
		close(got[--n]);
	if (r != sizeof(result) || !result.failed)
		return err_set(err, "the helper process ended early");
	*err = result.err;
	return -1;
}

/* The caller of vfork() does not stop while it waits: a stop would hold the child alone, and nobody would be told. */
static void block_stops(sigset_t *old)
{
	sigset_t stops;

	sigemptyset(&stops);
	sigaddset(&stops, SIGTSTP);
	sigaddset(&stops, SIGTTIN);
	sigaddset(&stops, SIGTTOU);
	sigprocmask(SIG_BLOCK, &stops, old);
}

static int run(bool apart, int (*work)(void *arg, int *fds, struct err *err), void *arg, int *fds, size_t n_fds,
	       struct err *err)
{
	int sock[2], r, status;
	sigset_t old;
	pid_t pid;

	for (size_t i = 0; i < n_fds; i++)
		fds[i] = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock))
		return err_set_errno(err, errno, "socketpair");
	block_stops(&old);
	/* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): what shares the memory is code of ours that waits for nobody. */
	pid = apart ? fork() : vfork();
	if (pid == 0) {
		close(sock[0]);
		child(sock[1], work, arg, fds, n_fds);
	}
	r = pid < 0 ? err_set_errno(err, errno, "fork") : 0;
	sigprocmask(SIG_SETMASK, &old, NULL);
	close(sock[1]);
	r = r ? r : collect(sock[0], fds, n_fds, err);
	close(sock[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return r;
}

int netns_run(int (*work)(void *arg, int *fds, struct err *err), void *arg, int *fds, size_t n_fds, struct err *err)
{
	return run(false, work, arg, fds, n_fds, err);
}

int netns_run_apart(int (*work)(void *arg, int *fds, struct err *err), void *arg, int *fds, size_t n_fds,
		    struct err *err)
{
	return run(true, work, arg, fds, n_fds, err);
}

int netns_enter(int netns, struct err *err)
{
	if (setns(netns, CLONE_NEWNET))
		return err_set_errno(err, errno, "enter the sandbox's network namespace");
	return 0;
}

int netns_new(struct err *err)
{
	if (unshare(CLONE_NEWNET))
		return err_set_errno(err, errno, "make a network namespace");
	return 0;
}
