/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox that hides: its process has no capability and can gain none, but beside it is another one with all of them:
 *
 *   threads              threads, each of which ends at once and goes on as another one
 *   crowd                the same, among others without capabilities that do so too
 *   processes            the same with processes
 *   gone                 a process whose first thread has ended, and another one waits
 *   elsewhere            a process whose first thread has gone to another network namespace, and another one waits
 *   elsewhere-threads    the same, and goes on as another one
 *
 *   restless KIND [ignored]...
 *
 * Prints "ready" and waits.
 */
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK 65536
#define CROWD 16

static pthread_attr_t attributes;

static void *restless_thread(void *wait)
{
	pthread_t next;

	/* Long enough to be looked at. */
	if (wait)
		usleep(100);
	while (pthread_create(&next, &attributes, restless_thread, wait) != 0)
		;
	return NULL;
}

/* Until the other end of `until` is closed, with the end of the process that has it. */
static void restless_process(int until)
{
	struct pollfd pfd = { .fd = until, .events = POLLIN };

	while (poll(&pfd, 1, 0) == 0)
		if (fork() > 0)
			_exit(0);
	_exit(0);
}

static int start_threads(void *wait)
{
	pthread_t first;

	return pthread_attr_init(&attributes) || pthread_attr_setstacksize(&attributes, STACK) ||
	       pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) ||
	       pthread_create(&first, &attributes, restless_thread, wait);
}

static int start_crowd(void)
{
	int failed = 0;

	for (int i = 0; i < CROWD && !failed; i++)
		failed = start_threads(&attributes);
	return failed;
}

/* As long as the process that has the other end. */
static void *waiting_thread(void *until)
{
	struct pollfd pfd = { .fd = *(int *)until };

	while (poll(&pfd, 1, -1) < 0)
		;
	_exit(0);
}

static void split_process(const char *kind, int until)
{
	pthread_t waiting;

	if (pthread_create(&waiting, NULL, waiting_thread, &until) ||
	    (strcmp(kind, "elsewhere-threads") == 0 && start_threads(NULL)) ||
	    (strcmp(kind, "gone") != 0 && unshare(CLONE_NEWNET)))
		_exit(1);
	/* exit(2), of this thread alone. */
	if (strcmp(kind, "gone") == 0)
		syscall(SYS_exit, 0);
	for (;;)
		pause();
}

/* Until the first thread of this process is not in our network any more. */
static void await_split(pid_t pid)
{
	char path[32];
	struct stat own, its;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	while (stat("/proc/self/ns/net", &own) == 0 && stat(path, &its) == 0 && own.st_ino == its.st_ino)
		poll(NULL, 0, 1);
}

static int start(const char *kind)
{
	int ends[2];
	pid_t pid;

	if (strcmp(kind, "threads") == 0 || strcmp(kind, "crowd") == 0)
		return start_threads(NULL);
	signal(SIGCHLD, SIG_IGN);
	if (pipe(ends))
		return 1;
	pid = fork();
	if (pid == 0) {
		close(ends[1]);
		if (strcmp(kind, "processes") == 0)
			restless_process(ends[0]);
		split_process(kind, ends[0]);
	}
	if (strcmp(kind, "processes") != 0)
		await_split(pid);
	return pid < 0;
}

/* Of this thread alone. */
static int give_up(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };

	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0))
			return 1;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_capset, &header, none);
}

int main(int argc, char **argv)
{
	if (argc < 2 || start(argv[1]) || give_up() || (strcmp(argv[1], "crowd") == 0 && start_crowd()))
		return 1;
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
