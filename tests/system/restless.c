/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox that hides: its process has no capability and can gain none, but beside it is another one with all of them, which ends all the
 * time and goes on as its own child.
 *
 *   restless threads|processes [ignored]...
 *
 * Prints "ready" and waits.
 */
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK 65536

static void *restless_thread(void *attributes)
{
	pthread_t next;

	while (pthread_create(&next, attributes, restless_thread, attributes) != 0)
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

static int start(const char *kind)
{
	static pthread_attr_t attributes;
	pthread_t first;
	int ends[2];

	if (strcmp(kind, "threads") == 0)
		return pthread_attr_init(&attributes) || pthread_attr_setstacksize(&attributes, STACK) ||
		       pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) ||
		       pthread_create(&first, &attributes, restless_thread, &attributes);
	signal(SIGCHLD, SIG_IGN);
	if (pipe(ends))
		return 1;
	if (fork() == 0) {
		close(ends[1]);
		restless_process(ends[0]);
	}
	return 0;
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
	if (argc < 2 || start(argv[1]) || give_up())
		return 1;
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
