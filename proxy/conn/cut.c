/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. Nothing tells of an acknowledgement, so it is looked at, less and less often. */
#include "proxy/conn/cut.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "proxy/conn/env.h"

#define CUT_LOOK_US	1000u
#define CUT_LOOK_MAX_US 200000u

struct cut {
	LIST_ENTRY(cut) link;
	struct event timer;
	struct conn_env *env;
	int fd;
	uint64_t look_us, deadline_us;
};

static void reset(int fd)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = 0 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(fd);
}

static bool is_delivered(int fd)
{
	int unacked = 0;

	return ioctl(fd, SIOCOUTQ, &unacked) < 0 || unacked == 0;
}

static void cut_free(struct cut *c)
{
	reset(c->fd);
	event_del(&c->timer);
	LIST_REMOVE(c, link);
	c->env->n_cuts--;
	free(c);
}

static void look_later(struct cut *c)
{
	const struct timeval tv = { .tv_usec = (suseconds_t)c->look_us };

	event_add(&c->timer, &tv);
	if (c->look_us < CUT_LOOK_MAX_US)
		c->look_us *= 2;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct cut *c = arg;

	(void)fd, (void)what;
	if (is_delivered(c->fd) || clock_mono_us() >= c->deadline_us)
		cut_free(c);
	else
		look_later(c);
}

void cut_delivered(struct conn_env *env, int fd)
{
	struct cut *c = NULL;

	if (env->n_cuts < CUTS_MAX && !is_delivered(fd))
		c = calloc(1, sizeof(*c));
	if (!c) {
		reset(fd);
		return;
	}
	env->n_cuts++;
	c->env = env;
	c->fd = fd;
	c->look_us = CUT_LOOK_US;
	c->deadline_us = clock_mono_us() + (uint64_t)CUT_WAIT_S * US_PER_S;
	evtimer_assign(&c->timer, env->base, on_timer, c);
	LIST_INSERT_HEAD(&env->cuts, c, link);
	look_later(c);
}

void cut_all(struct conn_env *env)
{
	struct cut *c;

	while ((c = LIST_FIRST(&env->cuts)))
		cut_free(c);
}
