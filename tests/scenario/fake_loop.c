/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. Defines what netgate calls of libevent, and base/clock.h. */
#include "tests/scenario/fake_loop.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tests/scenario/fail.h"
#include "tests/scenario/fake_net.h"

#define PENDING_MAX 1024
#define BEGIN_US    (1000 * (uint64_t)US_PER_S)
#define IDLE_TURNS \
	256 /* in which events are called and nothing happens, one after another; many timers may be early at once */

struct pending {
	struct event *ev;
	uint64_t id;  /* of this event_add() */
	uint64_t due; /* LOOP_FOREVER: no timer */
};

static struct {
	struct pending pending[PENDING_MAX];
	size_t n;
	size_t allocated;
	uint64_t next_id;
	uint64_t now, turn_us; /* the clock, and what it was when the turn began */
	uint64_t progress;
	bool tick;
} loop;

void loop_reset(void)
{
	loop.n = loop.allocated = 0;
	loop.next_id = loop.progress = 0;
	loop.now = loop.turn_us = BEGIN_US;
	loop.tick = false;
}

struct event_base *loop_base(void)
{
	static char base;

	return (struct event_base *)&base;
}

uint64_t loop_now(void)
{
	return loop.now;
}

void loop_tick(bool on)
{
	loop.tick = on;
}

void loop_progress(void)
{
	loop.progress++;
}

size_t loop_pending(void)
{
	return loop.n;
}

size_t loop_allocated(void)
{
	return loop.allocated;
}

bool loop_watches(int fd)
{
	for (size_t i = 0; i < loop.n; i++)
		if (loop.pending[i].ev->ev_fd == fd)
			return true;
	return false;
}

/* ---- base/clock.h ---- */

uint64_t clock_mono_us(void)
{
	loop.now += loop.tick;
	return loop.now;
}

uint64_t clock_tick_us(void)
{
	return loop.turn_us;
}

const char *clock_wall(char buf[static CLOCK_WALL_STRLEN])
{
	uint64_t s = loop.now / US_PER_S;

	snprintf(buf, CLOCK_WALL_STRLEN, "2026-05-04T%02u:%02u:%02u.%06uZ", (unsigned)(s / 3600 % 24),
		 (unsigned)(s / 60 % 60), (unsigned)(s % 60), (unsigned)(loop.now % US_PER_S));
	return buf;
}

/* ---- libevent ---- */

static struct pending *find(const struct event *ev)
{
	for (size_t i = 0; i < loop.n; i++)
		if (loop.pending[i].ev == ev)
			return &loop.pending[i];
	return NULL;
}

int event_assign(struct event *ev, struct event_base *base, evutil_socket_t fd, short events, event_callback_fn fn,
		 void *arg)
{
	if (base != loop_base())
		fail("an event of no base");
	if (find(ev))
		fail("event_assign() of an event that is pending");
	*ev = (struct event){ .ev_base = base, .ev_fd = fd, .ev_events = events };
	ev->ev_evcallback.evcb_cb_union.evcb_callback = fn;
	ev->ev_evcallback.evcb_arg = arg;
	return 0;
}

struct event *event_new(struct event_base *base, evutil_socket_t fd, short events, event_callback_fn fn, void *arg)
{
	struct event *ev = malloc(sizeof(*ev));

	if (!ev)
		return NULL;
	loop.allocated++;
	/* What malloc() gave may have been a pending event that was freed. */
	if (find(ev))
		fail("an event was freed while it was pending");
	(void)event_assign(ev, base, fd, events, fn, arg);
	return ev;
}

int event_del(struct event *ev)
{
	struct pending *p = find(ev);

	if (!p)
		return 0;
	loop.n--;
	for (; p < loop.pending + loop.n; p++)
		*p = p[1];
	return 0;
}

void event_free(struct event *ev)
{
	(void)event_del(ev);
	loop.allocated--;
	free(ev);
}

int event_add(struct event *ev, const struct timeval *timeout)
{
	struct pending *p = find(ev);

	if (ev->ev_base != loop_base())
		fail("event_add() of an event that was not assigned");
	if (ev->ev_fd >= 0 && !net_is_open(ev->ev_fd))
		fail("event_add() for descriptor %d, which is not open", (int)ev->ev_fd);
	if (!p) {
		if (loop.n == PENDING_MAX)
			fail("more than %d events", PENDING_MAX);
		p = &loop.pending[loop.n++];
		*p = (struct pending){ .ev = ev, .id = ++loop.next_id, .due = LOOP_FOREVER };
	}
	if (timeout)
		p->due = loop.turn_us + (uint64_t)timeout->tv_sec * US_PER_S + (uint64_t)timeout->tv_usec;
	return 0;
}

/* In the same turn as libevent has it, or in the next: what is due now has its turn after what is ready. */
void event_active(struct event *ev, int res, short ncalls)
{
	const struct timeval now = { 0 };

	if (res != EV_TIMEOUT || ncalls != 0)
		fail("event_active() with other arguments");
	(void)event_add(ev, &now);
}

/* ---- the loop ---- */

static short ready(const struct pending *p)
{
	return p->ev->ev_fd < 0 ? 0 : (short)(net_ready(p->ev->ev_fd) & p->ev->ev_events);
}

static void call(struct event *ev, short what)
{
	if (!(ev->ev_events & EV_PERSIST) || what == EV_TIMEOUT)
		(void)event_del(ev);
	ev->ev_evcallback.evcb_cb_union.evcb_callback(ev->ev_fd, what, ev->ev_evcallback.evcb_arg);
}

bool loop_turn(void)
{
	struct {
		uint64_t id;
		short what;
	} active[PENDING_MAX];
	size_t n = 0;

	net_turn();
	loop.turn_us = loop.now;
	for (size_t i = 0; i < loop.n; i++) {
		active[n].id = loop.pending[i].id;
		active[n].what = ready(&loop.pending[i]);
		n += active[n].what != 0;
	}
	for (size_t i = 0; i < loop.n; i++) {
		if (loop.pending[i].due > loop.now)
			continue;
		active[n].id = loop.pending[i].id;
		active[n++].what = EV_TIMEOUT;
	}
	for (size_t i = 0; i < n; i++) {
		size_t at = 0;

		while (at < loop.n && loop.pending[at].id != active[i].id)
			at++;
		if (at < loop.n)
			call(loop.pending[at].ev, active[i].what);
	}
	loop.turn_us = loop.now;
	return n > 0;
}

void loop_settle(void)
{
	unsigned idle = 0;
	uint64_t before;

	loop.turn_us = loop.now;
	do {
		before = loop.progress;
		if (!loop_turn())
			return;
		idle = loop.progress == before ? idle + 1 : 0;
	} while (idle < IDLE_TURNS);
	fail("a busy loop: %d turns in which nothing happened", IDLE_TURNS);
}

void loop_advance(uint64_t us)
{
	uint64_t end = loop.now + us;

	loop_settle();
	for (;;) {
		uint64_t due = net_due();

		for (size_t i = 0; i < loop.n; i++)
			if (loop.pending[i].due < due)
				due = loop.pending[i].due;
		if (due > end)
			break;
		if (due > loop.now)
			loop.now = due;
		loop_settle();
	}
	if (loop.now < end)
		loop.now = end;
	loop.turn_us = loop.now;
}
