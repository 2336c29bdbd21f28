/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process in a sandbox that can't be looked at is not taken for one that has ended. Who is in the sandbox is made up here; the rest is the
 * real /proc.
 * links: sandbox-net/attach/vet.c sandbox-net/attach/caps.c base/err.c
 * wraps: openat getdents64
 */
#include "sandbox-net/attach/vet.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "sandbox-net/attach/hidden.h"
#include "sandbox-net/attach/member.h"
#include "sandbox-net/attach/target.h"
#include "sandbox-net/gate/gate.h"
#include "sandbox-net/gate/netns.h"

#define SANDBOX 1 /* inodes */
#define OURS	2

static pid_t inside;
static char number[16], second[16]; /* its first thread, and another one */
static bool ending;		    /* the other one has no network any more */
static int passed_over;		    /* times that the other one is not in the list */
static int failure;		    /* an errno for the call below; 0: none */
static const char *path;	    /* to open; NULL: the list of threads is read */
static int tasks = -1;

int __real_openat(int dir, const char *name, int flags);
int __wrap_openat(int dir, const char *name, int flags);
ssize_t __real_getdents64(int dir, void *to, size_t size);
ssize_t __wrap_getdents64(int dir, void *to, size_t size);

int __wrap_openat(int dir, const char *name, int flags)
{
	int fd;

	if (failure && path && strcmp(name, path) == 0) {
		errno = failure;
		return -1;
	}
	fd = __real_openat(dir, name, flags);
	if (strcmp(name, "task") == 0)
		tasks = fd;
	return fd;
}

ssize_t __wrap_getdents64(int dir, void *to, size_t size)
{
	const struct dirent64 *entry = to;
	ssize_t n;

	if (failure && !path && dir == tasks) {
		errno = failure;
		return -1;
	}
	n = __real_getdents64(dir, to, size);
	if (passed_over && n > 0 && dir == tasks && strcmp(entry->d_name, second) == 0) {
		passed_over--;
		n = __real_getdents64(dir, to, size);
	}
	return n;
}

uint64_t member_network(int dir, const char *pid)
{
	(void)dir;
	if (ending && strcmp(pid, second) == 0) {
		errno = ENOENT;
		return 0;
	}
	return strcmp(pid, number) == 0 || strcmp(pid, second) == 0 ? SANDBOX : OURS;
}

int target_join(struct target *t, struct err *err)
{
	(void)t;
	(void)err;
	return 0;
}

int gate_check_empty(int s_netns, const struct gate_tap *tap, struct err *err)
{
	(void)s_netns;
	(void)tap;
	(void)err;
	return 0;
}

int hidden_open(struct hidden *h, int netns, struct err *err)
{
	(void)h;
	(void)netns;
	(void)err;
	return 0;
}

bool hidden_is_in(const struct hidden *h, int dir, const char *name)
{
	(void)h;
	(void)dir;
	(void)name;
	return false;
}

int netns_run_apart(int (*work)(void *arg, int *fds, struct err *err), void *arg, int *fds, size_t n_fds,
		    struct err *err)
{
	(void)n_fds;
	return work(arg, fds, err);
}

static void *second_thread(void *arg)
{
	const int *ready = arg;
	pid_t tid = gettid();

	if (write(ready[1], &tid, sizeof(tid)) == sizeof(tid))
		pause();
	_exit(1);
}

/* A process without capabilities, which can gain none. */
static int start(void **state)
{
	int ready[2];
	pthread_t thread;
	pid_t tid;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	inside = fork();
	if (inside == 0) {
		cap_t none = cap_init();

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && cap_set_proc(none) == 0 &&
		    pthread_create(&thread, NULL, second_thread, ready) == 0)
			pause();
		_exit(1);
	}
	snprintf(number, sizeof(number), "%d", (int)inside);
	assert_int_equal(read(ready[0], &tid, sizeof(tid)), sizeof(tid));
	snprintf(second, sizeof(second), "%d", (int)tid);
	close(ready[0]);
	close(ready[1]);
	return 0;
}

static int end(void **state)
{
	(void)state;
	kill(inside, SIGKILL);
	waitpid(inside, NULL, 0);
	return 0;
}

static int look(int with, const char *at, struct err *err)
{
	struct target t = { .ino = SANDBOX };
	struct vet_found found;
	int rc;

	t.netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	t.dir = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	failure = with;
	path = at;
	rc = vet_sandbox(&t, NULL, 0, NULL, &found, err);
	failure = 0;
	close(t.netns);
	close(t.dir);
	return rc;
}

static void harmless(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(look(0, NULL, &err), 0);
}

/* It is in the list of its process's threads as long as whoever traces it, or a busy machine, lets it be there. */
static void one_that_is_ending(void **state)
{
	struct err err;

	(void)state;
	ending = true;
	assert_int_equal(look(0, NULL, &err), 0);
	ending = false;
}

/* As one is when another that was before it in the list ends meanwhile. */
static void one_that_is_passed_over(void **state)
{
	struct err err;

	(void)state;
	passed_over = 1;
	assert_int_equal(look(0, NULL, &err), 0);
	assert_int_equal(passed_over, 0);
	passed_over = 1000;
	assert_int_equal(look(0, NULL, &err), -1);
	assert_non_null(strstr(err.text, "CAP_NET_ADMIN"));
	passed_over = 0;
}

static void ended(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(look(ENOENT, number, &err), 0);
	assert_int_equal(look(ENOENT, "task", &err), 0);
	assert_int_equal(look(ESRCH, "task", &err), 0);
	assert_int_equal(look(ENOENT, NULL, &err), 0);
}

static void unseen(void **state)
{
	static const int failures[] = { EMFILE, ENFILE, ENOMEM };
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(failures) / sizeof(*failures); i++) {
		assert_int_equal(look(failures[i], number, &err), -1);
		assert_non_null(strstr(err.text, strerror(failures[i])));
		assert_int_equal(look(failures[i], "task", &err), -1);
		assert_non_null(strstr(err.text, "CAP_NET_ADMIN"));
		assert_int_equal(look(failures[i], NULL, &err), -1);
		assert_non_null(strstr(err.text, "CAP_NET_ADMIN"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(harmless),
		cmocka_unit_test(one_that_is_ending),
		cmocka_unit_test(one_that_is_passed_over),
		cmocka_unit_test(ended),
		cmocka_unit_test(unseen),
	};

	return cmocka_run_group_tests(tests, start, end);
}
