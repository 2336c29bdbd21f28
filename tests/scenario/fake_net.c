/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "tests/scenario/fake_net.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "tests/scenario/fail.h"
#include "tests/scenario/fake_loop.h"
#include "tests/scenario/fake_net_impl.h"
#include "tests/scenario/ledger.h"

#define SEND_QUEUE_MAX (256 * 1024) /* bytes that the kernel holds for a peer that takes none */
#define ROUTES_MAX     64

struct net net;

static struct {
	struct route {
		struct addr addr;
		uint64_t us;
		int error;
	} routes[ROUTES_MAX];
	size_t n_routes;
	size_t narrow;
} world;

void net_reset(void)
{
	struct tube *t;

	while ((t = net.tubes)) {
		net.tubes = t->next;
		bytes_free(&t->rx);
		bytes_free(&t->tx);
		bytes_free(&t->got);
		bytes_free(&t->sent);
		free(t);
	}
	for (size_t i = 0; i < net.n_files; i++)
		if (net.files[i].kind == FILE_PIPE_RD && net.files[i].pipe)
			fail("a pipe was left open");
	memset(&net, 0, sizeof(net));
	memset(&world, 0, sizeof(world));
}

/* ---- descriptors ---- */

struct file *net_file(int fd)
{
	size_t i = (size_t)fd - FD_FIRST;

	if (fd < FD_FIRST || i >= net.n_files || net.files[i].kind == FILE_CLOSED)
		fail("descriptor %d is used, and it is not open", fd);
	return &net.files[i];
}

int net_file_new(enum file_kind kind)
{
	if (net.n_files == FILES_MAX) {
		errno = EMFILE;
		return -1;
	}
	net.files[net.n_files] = (struct file){ .kind = kind };
	net.n_open++;
	loop_progress();
	return FD_FIRST + (int)net.n_files++;
}

bool net_is_open(int fd)
{
	size_t i = (size_t)fd - FD_FIRST;

	return fd >= FD_FIRST && i < net.n_files && net.files[i].kind != FILE_CLOSED;
}

size_t net_open(void)
{
	return net.n_open;
}

int net_listen(void)
{
	return net_file_new(FILE_LISTEN);
}

int net_log(void)
{
	return net_file_new(FILE_LOG);
}

void net_close(int fd)
{
	net_file(fd)->kind = FILE_CLOSED;
	net.n_open--;
}

void net_log_error(int error)
{
	net.log_error = error;
}

void net_narrow(size_t bytes)
{
	world.narrow = bytes;
}

/* ---- tubes ---- */

struct tube *net_tubes(void)
{
	return net.tubes;
}

struct tube *net_last_checked(void)
{
	return net.checked;
}

struct tube *tube_new(void)
{
	struct tube **at = &net.tubes;
	struct tube *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	while (*at)
		at = &(*at)->next;
	*at = t;
	t->fd = -1;
	t->window = NET_OPEN_WINDOW;
	return t;
}

struct tube *net_client(const struct endpoint *src, const struct endpoint *dst)
{
	struct tube *t = tube_new();

	t->local = *dst;
	t->remote = *src;
	t->connected = true;
	return t;
}

void net_route(const struct addr *a, uint64_t us, int error)
{
	struct route *r = world.routes;

	while (r < world.routes + world.n_routes && !addr_equal(&r->addr, a))
		r++;
	if (r == world.routes + ROUTES_MAX)
		fail("more than %d routes", ROUTES_MAX);
	if (r == world.routes + world.n_routes)
		world.n_routes++;
	*r = (struct route){ *a, us, error };
}

void tube_connect(struct tube *t)
{
	t->connecting = true;
	t->connect_us = loop_now();
	for (size_t i = 0; i < world.n_routes; i++) {
		const struct route *r = &world.routes[i];

		if (!addr_equal(&r->addr, &t->remote.addr))
			continue;
		t->connect_us = r->us == LOOP_FOREVER ? LOOP_FOREVER : loop_now() + r->us;
		t->connect_error = r->error;
	}
}

/* Connecting has ended by now. */
static void tube_settle(struct tube *t)
{
	if (!t->connecting || t->connect_us > loop_now())
		return;
	t->connecting = false;
	t->error = t->connect_error;
	t->dead = t->error != 0;
	t->connected = !t->dead;
}

uint64_t net_due(void)
{
	uint64_t due = LOOP_FOREVER;

	for (const struct tube *t = net.tubes; t; t = t->next)
		if (t->fd >= 0 && t->connecting && t->connect_us < due)
			due = t->connect_us;
	return due;
}

void net_turn(void)
{
	for (struct tube *t = net.tubes; t; t = t->next)
		t->put_in_turn = 0;
}

/* The peer takes bytes, as many as its window lets it. Returns their number. */
static size_t take(struct tube *t, const void *p, size_t n)
{
	if (n > t->window)
		n = (size_t)t->window;
	if (n == 0)
		return 0;
	if (bytes_append(&t->got, p, n, SIZE_MAX / 2) < 0)
		abort();
	if (t->window != NET_OPEN_WINDOW)
		t->window -= n;
	loop_progress();
	return n;
}

static void deliver(struct tube *t)
{
	bytes_consume(&t->tx, take(t, bytes_data(&t->tx), bytes_len(&t->tx)));
	if (t->tx_fin && bytes_len(&t->tx) == 0)
		t->got_fin = true;
}

void tube_window(struct tube *t, uint64_t bytes)
{
	t->window = bytes;
	deliver(t);
}

void tube_send(struct tube *t, const void *p, size_t n)
{
	if (t->rx_fin)
		fail("a peer that ended its side sends");
	if (t->dead || t->got_reset || (t->upstream && t->fd < 0))
		return; /* to a peer that is gone */
	if (bytes_append(&t->rx, p, n, SIZE_MAX / 2) < 0)
		abort();
	loop_progress();
}

void tube_shut(struct tube *t)
{
	t->rx_fin = true;
	loop_progress();
}

void tube_abort(struct tube *t)
{
	if (t->dead || t->got_reset)
		return;
	t->dead = true;
	t->error = t->rx_fin ? EPIPE : ECONNRESET;
	bytes_free(&t->tx);
	loop_progress();
}

void tube_close(struct tube *t)
{
	if (bytes_len(&t->tx) > 0) {
		tube_abort(t);
		return;
	}
	t->peer_closed = true;
	tube_shut(t);
}

/* Bytes that may be sent now. */
static size_t room(const struct tube *t)
{
	size_t left = SEND_QUEUE_MAX - bytes_len(&t->tx);

	if (!world.narrow)
		return left;
	if (t->put_in_turn >= world.narrow)
		return 0;
	return left < world.narrow - t->put_in_turn ? left : (size_t)(world.narrow - t->put_in_turn);
}

short net_ready(int fd)
{
	const struct file *f = net_file(fd);
	struct tube *t = f->tube;
	short what = 0;

	if (f->kind == FILE_LISTEN) {
		for (t = net.tubes; t; t = t->next)
			if (!t->upstream && !t->accepted)
				return EV_READ;
		return 0;
	}
	if (f->kind != FILE_SOCKET)
		fail("descriptor %d is no socket, and waited for", fd);
	tube_settle(t);
	if (t->connecting)
		return 0;
	/* EPOLLERR and EPOLLHUP wake for both. */
	if (t->dead || t->error || (t->rx_fin && t->tx_fin))
		return EV_READ | EV_WRITE;
	if (bytes_len(&t->rx) > 0 || t->rx_fin)
		what |= EV_READ;
	/* In a turn with a limit, a turn begins with room. */
	if (t->tx_fin || t->peer_closed || bytes_len(&t->tx) < SEND_QUEUE_MAX)
		what |= EV_WRITE;
	return what;
}

int tube_error(struct tube *t)
{
	int error;

	tube_settle(t);
	if (t->connecting)
		return 0;
	error = t->error;
	t->error = 0;
	return error;
}

ssize_t tube_recv(struct tube *t, void *p, size_t n, bool peek)
{
	size_t have = bytes_len(&t->rx);
	int error;

	if (have > 0) {
		n = n < have ? n : have;
		memcpy(p, bytes_data(&t->rx), n);
		if (!peek) {
			bytes_consume(&t->rx, n);
			t->taken += n;
			loop_progress();
		}
		return (ssize_t)n;
	}
	if (t->rx_fin)
		return 0;
	error = tube_error(t);
	if (error || (!t->dead && !t->rx_fin)) {
		errno = error ? error : EAGAIN;
		return -1;
	}
	return 0;
}

ssize_t tube_put(struct tube *t, const void *p, size_t n)
{
	int error = tube_error(t);
	size_t taken;

	if (error || t->dead || t->tx_fin) {
		errno = error ? error : EPIPE;
		return -1;
	}
	if (n > room(t))
		n = room(t);
	if (t->connecting || n == 0) {
		errno = EAGAIN;
		return -1;
	}
	if (t->upstream)
		ledger_sent(t, n);
	t->put += n;
	t->put_in_turn += n;
	loop_progress();
	if (bytes_append(&t->sent, p, n, NET_SENT_MAX) < 0 && t->put <= NET_SENT_MAX)
		abort();
	if (t->upstream)
		ledger_requests(t);
	if (t->peer_closed) {
		tube_abort(t);
		return (ssize_t)n;
	}
	taken = bytes_len(&t->tx) == 0 ? take(t, p, n) : 0;
	if (taken < n && bytes_append(&t->tx, (const uint8_t *)p + taken, n - taken, SEND_QUEUE_MAX) < 0)
		abort();
	return (ssize_t)n;
}

int tube_finish(struct tube *t)
{
	if (t->dead || t->connecting) {
		errno = ENOTCONN;
		return -1;
	}
	if (!t->tx_fin)
		loop_progress();
	t->tx_fin = true;
	deliver(t);
	return 0;
}

void tube_drop(struct tube *t)
{
	bool over = t->tx_fin && t->rx_fin && bytes_len(&t->tx) == 0;
	bool unread = bytes_len(&t->rx) > 0;

	t->fd = -1;
	if (t->dead || t->connecting)
		return;
	if (unread || (t->linger_reset && !over)) {
		t->got_reset = true;
		bytes_free(&t->tx);
		return;
	}
	t->tx_fin = true;
	deliver(t);
}
