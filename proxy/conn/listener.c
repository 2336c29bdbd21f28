/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accepts what G's catch-all sockets take: getsockname() of the accepted
 * socket is the address that the sandbox wanted (TPROXY). When descriptors
 * run out, accepting pauses instead of spinning on a readable listener.
 */
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/conn/env.h"

#define LISTENER_BATCH	  64 /* accepts in one turn, so that a connection flood leaves time for the others */
#define LISTENER_PAUSE_MS 100

struct listener {
	struct conn_env *env;
	const uint8_t *nonce;
	struct event *ev[2];
	struct event *resume;
};

static void pause_accepting(struct listener *l)
{
	const struct timeval tv = { .tv_usec = LISTENER_PAUSE_MS * 1000 };

	event_del(l->ev[0]);
	event_del(l->ev[1]);
	event_add(l->resume, &tv);
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
	struct listener *l = arg;

	(void)fd, (void)what;
	event_add(l->ev[0], NULL);
	event_add(l->ev[1], NULL);
}

static void take(struct listener *l, int fd, const struct sockaddr *peer)
{
	struct sockaddr_storage local;
	socklen_t len = sizeof(local);
	struct endpoint src, dst;

	if (l->nonce) {
		const struct linger off = { 0 };

		l->env->probes++;
		(void)!send(fd, l->nonce, HANDOFF_NONCE, MSG_NOSIGNAL | MSG_DONTWAIT);
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
		close(fd);
		return;
	}
	l->env->accepts++;
	if (getsockname(fd, (struct sockaddr *)&local, &len) < 0 || endpoint_from_sockaddr(peer, &src) < 0 ||
	    endpoint_from_sockaddr((struct sockaddr *)&local, &dst) < 0) {
		close(fd);
		return;
	}
	conn_accept(l->env, fd, &src, &dst);
}

static void on_readable(evutil_socket_t listen_fd, short what, void *arg)
{
	struct listener *l = arg;

	(void)what;
	for (int i = 0; i < LISTENER_BATCH; i++) {
		struct sockaddr_storage peer;
		socklen_t len = sizeof(peer);
		int fd = accept4((int)listen_fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			take(l, fd, (struct sockaddr *)&peer);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			pause_accepting(l);
		if (errno != ECONNABORTED && errno != EINTR)
			return;
	}
}

/*
 * What each accepted socket is to have: it inherits this from the one that listens, which saves three system calls
 * a connection. A connection that ends without a word, by close() or because this process died, is reset: cut
 * short must not look complete. An urgent byte stays in its place in the stream: see flow.c. Returns 0 or -1 with errno.
 */
static int set_inherited(int fd)
{
	const struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	const int on = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) ||
	    setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		return -1;
	return 0;
}

struct listener *listener_new(struct conn_env *env, int tcp4, int tcp6)
{
	struct listener *l;

	if (set_inherited(tcp4) || set_inherited(tcp6))
		return NULL;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->env = env;
	l->ev[0] = event_new(env->base, tcp4, EV_READ | EV_PERSIST, on_readable, l);
	l->ev[1] = event_new(env->base, tcp6, EV_READ | EV_PERSIST, on_readable, l);
	l->resume = event_new(env->base, -1, 0, on_resume, l);
	if (!l->ev[0] || !l->ev[1] || !l->resume || event_add(l->ev[0], NULL) < 0 || event_add(l->ev[1], NULL) < 0) {
		listener_free(l);
		errno = ENOMEM;
		return NULL;
	}
	return l;
}

void listener_probe(struct listener *l, const uint8_t *nonce)
{
	l->nonce = nonce;
}

void listener_stop(struct listener *l)
{
	event_del(l->ev[0]);
	event_del(l->ev[1]);
	event_del(l->resume);
}

void listener_free(struct listener *l)
{
	if (!l)
		return;
	for (int i = 0; i < 2; i++)
		if (l->ev[i])
			event_free(l->ev[i]);
	if (l->resume)
		event_free(l->resume);
	free(l);
}
