/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors over Unix sockets. The receiver trusts nothing: what it can't
 * account for is closed, and the message is an error.
 */
#include "base/fdpass.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union fdpass_control {
	struct cmsghdr align;
	char buf[CMSG_SPACE(sizeof(int) * FDPASS_MAX)];
};

int fdpass_send(int sock, const void *msg, size_t len, const int *fds, size_t n)
{
	union fdpass_control control = { 0 };
	struct iovec iov = { .iov_base = (void *)msg, .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t r;

	/* The receiver could not tell an empty message from the end of the stream. */
	if (len == 0 || n > FDPASS_MAX)
		return -EINVAL;
	if (n) {
		struct cmsghdr *cm;

		mh.msg_control = control.buf;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * n);
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int) * n);
		memcpy(CMSG_DATA(cm), fds, sizeof(int) * n);
	}
	do
		r = sendmsg(sock, &mh, MSG_NOSIGNAL);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	return (size_t)r == len ? 0 : -EMSGSIZE;
}

/* Collects the descriptors of a message into `fds` (FDPASS_MAX of them). True when there was nothing else. */
static bool take_fds(struct msghdr *mh, int *fds, size_t *n)
{
	bool clean = !(mh->msg_flags & MSG_CTRUNC);

	*n = 0;
	for (struct cmsghdr *cm = CMSG_FIRSTHDR(mh); cm; cm = CMSG_NXTHDR(mh, cm)) {
		size_t count;

		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS) {
			clean = false;
			continue;
		}
		/* The control buffer holds FDPASS_MAX descriptors, so they always fit. */
		count = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds + *n, CMSG_DATA(cm), count * sizeof(int));
		*n += count;
	}
	return clean;
}

ssize_t fdpass_recv(int sock, void *msg, size_t cap, int *fds, size_t max, size_t *n_fds)
{
	union fdpass_control control = { 0 };
	struct iovec iov = { .iov_base = msg, .iov_len = cap };
	struct msghdr mh = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf, .msg_controllen = sizeof(control.buf)
	};
	int got[FDPASS_MAX];
	size_t n;
	ssize_t r;

	*n_fds = 0;
	do
		r = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	if (!take_fds(&mh, got, &n) || n > max)
		r = -EPROTO;
	else if (mh.msg_flags & MSG_TRUNC)
		r = -EMSGSIZE;
	if (r <= 0) {
		while (n)
			close(got[--n]);
		return r;
	}
	if (n)
		memcpy(fds, got, n * sizeof(int));
	*n_fds = n;
	return r;
}
