/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls of fake_net.h: ld --wrap=NAME lets every call of NAME in the program end here. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/scenario/fail.h"
#include "tests/scenario/fake_loop.h"
#include "tests/scenario/fake_net_impl.h"
#include "tests/scenario/ledger.h"

#define PIPE_BYTES 65536 /* what pipe2() makes */

int __wrap_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags);
int __wrap_socket(int family, int type, int protocol);
int __wrap_connect(int fd, const struct sockaddr *sa, socklen_t len);
int __wrap_getsockname(int fd, struct sockaddr *sa, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
ssize_t __wrap_recv(int fd, void *p, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *p, size_t n, int flags);
ssize_t __wrap_splice(int in, off_t *in_at, int out, off_t *out_at, size_t n, unsigned flags);
ssize_t __wrap_write(int fd, const void *p, size_t n);
int __wrap_shutdown(int fd, int how);
int __wrap_ioctl(int fd, unsigned long what, ...);
int __wrap_fcntl(int fd, int what, ...);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_pipe2(int fds[2], int flags);
int __wrap_close(int fd);

static struct tube *tube_of(int fd)
{
	struct file *f = net_file(fd);

	if (f->kind != FILE_SOCKET || !f->tube)
		fail("descriptor %d is not connected", fd);
	return f->tube;
}

int __wrap_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
	struct sockaddr_storage ss;
	struct tube *t = net.tubes;
	int accepted;

	if (net_file(fd)->kind != FILE_LISTEN || flags != (SOCK_NONBLOCK | SOCK_CLOEXEC))
		fail("accept4() of no listener, or without its flags");
	while (t && (t->upstream || t->accepted))
		t = t->next;
	if (!t) {
		errno = EAGAIN;
		return -1;
	}
	accepted = net_file_new(FILE_SOCKET);
	if (accepted < 0)
		return -1;
	t->accepted = true;
	t->fd = accepted;
	t->linger_reset = net_file(fd)->linger_reset; /* as Linux has it, an accepted socket inherits the listener's */
	net_file(accepted)->tube = t;
	*len = endpoint_to_sockaddr(&t->remote, &ss);
	memcpy(sa, &ss, *len);
	return accepted;
}

int __wrap_socket(int family, int type, int protocol)
{
	if ((family != AF_INET && family != AF_INET6) || type != (SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC) ||
	    protocol != 0)
		fail("socket() of another kind");
	return net_file_new(FILE_SOCKET);
}

int __wrap_connect(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct file *f = net_file(fd);
	struct endpoint peer;
	struct tube *t;

	(void)len;
	if (f->kind != FILE_SOCKET || f->tube || endpoint_from_sockaddr(sa, &peer) < 0)
		fail("connect() of what is no fresh socket, or to no address");
	ledger_connect(&peer);
	t = tube_new();
	t->upstream = true;
	t->fd = fd;
	t->remote = peer;
	f->tube = t;
	tube_connect(t);
	errno = EINPROGRESS;
	return -1;
}

int __wrap_getsockname(int fd, struct sockaddr *sa, socklen_t *len)
{
	struct sockaddr_storage ss;

	*len = endpoint_to_sockaddr(&tube_of(fd)->local, &ss);
	memcpy(sa, &ss, *len);
	return 0;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (level != SOL_SOCKET || name != SO_ERROR || *len != sizeof(int))
		fail("getsockopt() of what is not known");
	net.checked = tube_of(fd);
	*(int *)value = tube_error(net.checked);
	return 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct file *f = net_file(fd);

	if (f->kind != FILE_SOCKET && f->kind != FILE_LISTEN)
		fail("setsockopt() of descriptor %d", fd);
	if (level == SOL_SOCKET && name == SO_LINGER) {
		const struct linger *l = value;

		if (len != sizeof(*l))
			fail("SO_LINGER with a wrong length");
		if (f->kind == FILE_LISTEN)
			f->linger_reset = l->l_onoff && l->l_linger == 0;
		else if (f->tube)
			f->tube->linger_reset = l->l_onoff && l->l_linger == 0;
	}
	return 0;
}

ssize_t __wrap_recv(int fd, void *p, size_t n, int flags)
{
	if (flags & ~(MSG_DONTWAIT | MSG_PEEK))
		fail("recv() with other flags");
	return tube_recv(tube_of(fd), p, n, flags & MSG_PEEK);
}

ssize_t __wrap_send(int fd, const void *p, size_t n, int flags)
{
	if (!(flags & MSG_NOSIGNAL))
		fail("send() that may raise SIGPIPE");
	return tube_put(tube_of(fd), p, n);
}

static ssize_t into_pipe(struct tube *t, struct fake_pipe *pipe, size_t n)
{
	size_t have = bytes_len(&t->rx);
	uint8_t none;
	ssize_t got;

	if (have == 0)
		return tube_recv(t, &none, 1, false);
	n = n < have ? n : have;
	if (n > pipe->size - bytes_len(&pipe->held))
		n = pipe->size - bytes_len(&pipe->held);
	if (n == 0) {
		errno = EAGAIN;
		return -1;
	}
	if (bytes_append(&pipe->held, bytes_data(&t->rx), n, pipe->size) < 0)
		abort();
	got = (ssize_t)n;
	bytes_consume(&t->rx, n);
	t->taken += n;
	loop_progress();
	return got;
}

static ssize_t out_of_pipe(struct fake_pipe *pipe, struct tube *t, size_t n)
{
	size_t have = bytes_len(&pipe->held);
	ssize_t put;

	n = n < have ? n : have;
	if (n == 0) {
		errno = EAGAIN;
		return -1;
	}
	put = tube_put(t, bytes_data(&pipe->held), n);
	if (put > 0)
		bytes_consume(&pipe->held, (size_t)put);
	return put;
}

ssize_t __wrap_splice(int in, off_t *in_at, int out, off_t *out_at, size_t n, unsigned flags)
{
	struct file *from = net_file(in), *to = net_file(out);

	if (in_at || out_at || !(flags & SPLICE_F_NONBLOCK) || n == 0)
		fail("splice() with other arguments");
	if (from->kind == FILE_SOCKET && to->kind == FILE_PIPE_WR)
		return into_pipe(tube_of(in), to->pipe, n);
	if (from->kind == FILE_PIPE_RD && to->kind == FILE_SOCKET)
		return out_of_pipe(from->pipe, tube_of(out), n);
	fail("splice() between what is no socket and pipe");
}

ssize_t __wrap_write(int fd, const void *p, size_t n)
{
	void (*each)(const void *line, size_t len) = net.log_error ? ledger_lost : ledger_record;
	const char *line = p, *end;

	if (net_file(fd)->kind != FILE_LOG)
		fail("write() to what is not the log");
	for (; (end = memchr(line, '\n', n - (size_t)(line - (const char *)p))); line = end + 1)
		each(line, (size_t)(end + 1 - line));
	if (line != (const char *)p + n)
		fail("a record without its line feed");
	errno = net.log_error;
	return net.log_error ? -1 : (ssize_t)n;
}

int __wrap_shutdown(int fd, int how)
{
	if (how != SHUT_WR)
		fail("shutdown() of another side");
	return tube_finish(tube_of(fd));
}

int __wrap_ioctl(int fd, unsigned long what, ...)
{
	const struct tube *t = tube_of(fd);
	va_list args;

	if (what != SIOCOUTQ)
		fail("ioctl() of another kind");
	va_start(args, what);
	*va_arg(args, int *) = (int)bytes_len(&t->tx) + (t->tx_fin && bytes_len(&t->tx) > 0);
	va_end(args);
	return 0;
}

int __wrap_fcntl(int fd, int what, ...)
{
	struct file *f = net_file(fd);
	va_list args;

	if (f->kind != FILE_PIPE_RD || (what != F_SETPIPE_SZ && what != F_GETPIPE_SZ))
		fail("fcntl() of another kind");
	if (what == F_SETPIPE_SZ) {
		va_start(args, what);
		f->pipe->size = (size_t)va_arg(args, int);
		va_end(args);
	}
	return (int)f->pipe->size;
}

int __wrap_fstat(int fd, struct stat *st)
{
	if (net_file(fd)->kind != FILE_LOG)
		fail("fstat() of what is not the log");
	*st = (struct stat){ .st_mode = S_IFIFO };
	return 0;
}

int __wrap_pipe2(int fds[2], int flags)
{
	struct fake_pipe *pipe = calloc(1, sizeof(*pipe));

	if (!pipe || flags != (O_CLOEXEC | O_NONBLOCK))
		fail("pipe2() with other flags");
	fds[0] = net_file_new(FILE_PIPE_RD);
	fds[1] = fds[0] < 0 ? -1 : net_file_new(FILE_PIPE_WR);
	if (fds[1] < 0) {
		if (fds[0] >= 0)
			net_close(fds[0]);
		free(pipe);
		return -1;
	}
	*pipe = (struct fake_pipe){ .size = PIPE_BYTES, .ends = 2 };
	net_file(fds[0])->pipe = net_file(fds[1])->pipe = pipe;
	return 0;
}

int __wrap_close(int fd)
{
	struct file *f = net_file(fd);

	if (loop_watches(fd))
		fail("descriptor %d is closed while an event waits for it", fd);
	if (f->kind == FILE_SOCKET && f->tube)
		tube_drop(f->tube);
	if (f->pipe && --f->pipe->ends == 0) {
		bytes_free(&f->pipe->held);
		free(f->pipe);
	}
	*f = (struct file){ .kind = FILE_CLOSED };
	net.n_open--;
	loop_progress();
	return 0;
}
