/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the launcher and init. */
#include "sandbox-net/run/channel.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/err.h"

int channel_open(int ends[2], struct err *err)
{
	int one = 1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return err_set_errno(err, errno, "socketpair");
	if (setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one))) {
		err_set_errno(err, errno, "SO_PASSCRED");
		close(ends[0]);
		close(ends[1]);
		return -1;
	}
	return 0;
}

int channel_send(int end, enum channel_type type, int32_t value, const char *text)
{
	struct channel_msg msg = { .type = type, .value = value };
	ssize_t n;

	snprintf(msg.text, sizeof(msg.text), "%s", text ? text : "");
	do
		n = send(end, &msg, offsetof(struct channel_msg, text) + strlen(msg.text) + 1, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int channel_recv(int end, struct channel_msg *msg, pid_t *pid)
{
	union {
		char buf[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = msg, .iov_len = sizeof(*msg) };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	struct ucred cred = { 0 };
	ssize_t n;

	memset(msg, 0, sizeof(*msg));
	do
		n = recvmsg(end, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	if ((size_t)n <= offsetof(struct channel_msg, text))
		return -EPROTO;
	msg->text[sizeof(msg->text) - 1] = '\0';
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
	if (pid)
		*pid = cred.pid;
	return 1;
}
