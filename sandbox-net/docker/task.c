/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/docker/task.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fds.h"

static _Noreturn void child(int fd, int (*work)(void *arg, int fd, struct err *err), void *arg)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGCHLD, SIGPIPE };
	char answer[TASK_ANSWER_MAX];
	struct err err = { "" };
	sigset_t none;

	/* What ends the driver by its terminal or its process group is not meant for a container that is being made. */
	(void)setsid();
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	fds_keep_only(&fd, 1);
	if (work(arg, fd, &err) == 0)
		_exit(0);
	fprintf(stderr, "sandbox-net: %s\n", err.text);
	/* If it has answered already, nobody reads this one. */
	snprintf(answer, sizeof(answer), "-%s", err.text);
	(void)send(fd, answer, strlen(answer), MSG_NOSIGNAL);
	_exit(1);
}

int task_start(int (*work)(void *arg, int fd, struct err *err), void *arg, struct err *err)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return err_set_errno(err, errno, "socketpair");
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		child(ends[1], work, arg);
	}
	close(ends[1]);
	if (pid < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK)) {
		err_set_errno(err, errno, "fork");
		close(ends[0]);
		return -1;
	}
	return ends[0];
}

void task_answer(int fd)
{
	(void)send(fd, "+", 1, MSG_NOSIGNAL);
}

int task_read(int fd, struct err *err)
{
	char answer[TASK_ANSWER_MAX];
	ssize_t n = recv(fd, answer, sizeof(answer) - 1, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return err_set(err, "the process that was to do it has ended early");
	answer[n] = '\0';
	return answer[0] == '+' ? 1 : err_set(err, "%s", answer + 1);
}
