/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "proxy/process/job_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/attach.h"
#include "base/err.h"

#define LOCK_TRIES 16 /* the file may be removed by its former owner between open and lock */

/* Whether the path still leads to the file that is open. */
static bool is_at(int fd, const char *path)
{
	struct stat mine, there;

	return fstat(fd, &mine) == 0 && stat(path, &there) == 0 && mine.st_ino == there.st_ino &&
	       mine.st_dev == there.st_dev;
}

static int take_lock(struct job_socket *s, const char *job, struct err *err)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		s->lock_fd = open(s->lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (s->lock_fd < 0)
			return err_set_errno(err, errno, "cannot open %s", s->lock);
		if (flock(s->lock_fd, LOCK_EX | LOCK_NB) == 0 && is_at(s->lock_fd, s->lock))
			return 0;
		close(s->lock_fd);
		s->lock_fd = -1;
		if (errno == EWOULDBLOCK)
			break;
	}
	return err_set(
		err,
		"a netgate waits for job %s already; choose another --job, or attach to that one by --job alone, "
		"without options of netgate's",
		job);
}

static int start_listening(struct job_socket *s, struct err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	memcpy(addr.sun_path, s->path, strlen(s->path)); /* attach_path() made sure that it fits */
	s->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->listen_fd < 0)
		return err_set_errno(err, errno, "socket");
	/* The lock is ours, so whoever left this is gone. */
	if (unlink(s->path) < 0 && errno != ENOENT)
		return err_set_errno(err, errno, "cannot replace %s", s->path);
	/* The directory is closed to others; the mode says so once more. */
	if (bind(s->listen_fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || chmod(s->path, 0600) < 0 ||
	    listen(s->listen_fd, SOMAXCONN) < 0)
		return err_set_errno(err, errno, "cannot listen on %s", s->path);
	return 0;
}

int job_socket_open(struct job_socket *s, const char *job, struct err *err)
{
	char dir[PATH_MAX];

	*s = (struct job_socket){ .listen_fd = -1, .lock_fd = -1 };
	if (attach_directory(dir, true, err) || attach_path(s->path, dir, job, "sock", err) ||
	    attach_path(s->lock, dir, job, "lock", err) || take_lock(s, job, err))
		return -1;
	if (start_listening(s, err)) {
		job_socket_close(s);
		return -1;
	}
	return 0;
}

void job_socket_close(struct job_socket *s)
{
	if (s->listen_fd >= 0) {
		(void)unlink(s->path);
		close(s->listen_fd);
	}
	/* Removed while it is still locked: whoever waits for it sees that it is not at its path any more. */
	if (s->lock_fd >= 0) {
		(void)unlink(s->lock);
		close(s->lock_fd);
	}
	s->listen_fd = s->lock_fd = -1;
}
