/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/attach/client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fdpass.h"

static int check_peer(int sock, const char *job, struct err *err)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return err_set_errno(err, errno, "SO_PEERCRED");
	if (cred.uid != geteuid() && cred.uid != 0)
		return err_set(err, "the gate of job %s is user %u's", job, cred.uid);
	return 0;
}

int client_connect(const char *job, int wait_ms, struct err *err)
{
	const struct timeval wait = { .tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000L };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char dir[PATH_MAX], path[PATH_MAX];
	int sock, rc = -1;

	if (attach_directory(dir, false, err) || attach_path(path, dir, job, "sock", err))
		return CLIENT_ABSENT;
	memcpy(addr.sun_path, path, strlen(path));
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return err_set_errno(err, errno, "socket");
	if (setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) ||
	    connect(sock, (struct sockaddr *)&addr, sizeof(addr))) {
		if (errno == ENOENT || errno == ECONNREFUSED) {
			err_set(err,
				"no netgate waits for job %s; sandbox-net ls lists those that do, and netgate --job %s "
				"--allow HOST starts one",
				job, job);
			rc = CLIENT_ABSENT;
		} else {
			err_set_errno(err, errno, "%s", path);
		}
		close(sock);
		return rc;
	}
	if (check_peer(sock, job, err)) {
		close(sock);
		return -1;
	}
	return sock;
}

pid_t client_peer(int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) ? 0 : cred.pid;
}

int client_send(int sock, struct attach_msg *msg, enum attach_type type, int fd, struct err *err)
{
	int r;

	msg->magic = ATTACH_MAGIC;
	msg->type = type;
	r = fdpass_send(sock, msg, sizeof(*msg), &fd, fd >= 0);
	return r ? err_set_errno(err, -r, "netgate has ended") : 0;
}

/* Receives one message in order. A refusal is an error. */
static int receive(int sock, int wait_ms, struct attach_msg *msg, int *fd, struct err *err)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	size_t n_fds = 0;
	int got = -1, rc;
	ssize_t n;

	do
		rc = poll(&p, 1, wait_ms);
	while (rc < 0 && errno == EINTR);
	if (rc <= 0)
		return err_set(err, "netgate does not answer");
	n = fdpass_recv(sock, msg, sizeof(*msg), &got, 1, &n_fds);
	if (fd)
		*fd = got;
	else if (n_fds)
		close(got);
	if (n <= 0)
		return err_set(err, "netgate has ended, or given the attempt up");
	if (!attach_msg_ok(msg, n))
		return err_set(err, "netgate is of another version: it gave an answer that can't be read");
	if (msg->type == ATTACH_REFUSED)
		return err_set(err, "%s", msg->text);
	return 0;
}

int client_wait(int sock, struct attach_msg *msg, enum attach_type want, int *fd, struct err *err)
{
	if (receive(sock, CLIENT_WAIT_MS, msg, fd, err))
		return -1;
	if (msg->type != want || (fd && *fd < 0))
		return err_set(err, "netgate gave an answer that was not asked for");
	return 0;
}

int client_wait_item(int sock, int wait_ms, struct attach_msg *msg, int *dir, struct err *err)
{
	if (receive(sock, wait_ms, msg, dir, err))
		return -1;
	if (msg->type == ATTACH_ITEM)
		return 1;
	if (*dir >= 0)
		close(*dir);
	return msg->type == ATTACH_DONE ? 0 : err_set(err, "netgate gave an answer that was not asked for");
}
