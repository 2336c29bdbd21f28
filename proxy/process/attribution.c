/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of open questions. A slot is taken by a question and freed by its
 * answer, by time, or by the end of the job; its tag has a generation, so
 * that an answer that comes late is not taken for that of the slot's next question.
 */
#include "proxy/process/attribution.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdpass.h"
#include "proxy/audit/process.h"
#include "proxy/process/finder.h"
#include "proxy/process/trace.h"

#define RECENT	     16 /* sources of datagrams that were asked for lately */
#define RECENT_US    (1000 * 1000u)
#define US_PER_MS    1000u
#define TICK_HOLD_MS ATTRIBUTION_HOLD_MS
#define TICK_WAIT_MS 500

struct question {
	bool open;
	bool at_turn_end; /* nobody was asked yet */
	uint64_t conn;	  /* 0: a datagram's */
	struct finder_request req;
	uint64_t asked_us, held_us;
	int held_fd; /* of a connection that is over; -1: none */
};

struct attribution {
	struct event_base *base;
	struct audit *audit;
	int fd;				/* the finder; -1: nobody to ask */
	const struct trace_ring *trace; /* NULL: the finder is asked at once */
	struct event *ev, *timer, *turn_end;
	bool finished;
	uint32_t generation;
	size_t n_open, n_held;
	struct question questions[ATTRIBUTION_MAX];
	struct {
		struct endpoint src;
		uint64_t asked_us;
	} recent[RECENT];
	size_t recent_at;
	uint64_t missed[AUDIT_UNKNOWN_COUNT]; /* questions that were not asked, not recorded yet */
};

/* ---- time ---- */

static bool any_missed(const struct attribution *a)
{
	for (int i = 0; i < AUDIT_UNKNOWN_COUNT; i++)
		if (a->missed[i])
			return true;
	return false;
}

/* The timer runs while there is something that must not wait for ever; soon, if a socket is held. */
static void arm(struct attribution *a)
{
	const unsigned ms = a->n_held ? TICK_HOLD_MS : TICK_WAIT_MS;
	const struct timeval tv = { .tv_usec = (suseconds_t)(ms * US_PER_MS) };

	if (a->n_open || any_missed(a))
		evtimer_add(a->timer, &tv);
}

static void let_go(struct attribution *a, struct question *q)
{
	if (q->held_fd < 0)
		return;
	close(q->held_fd);
	q->held_fd = -1;
	a->n_held--;
}

static void end(struct attribution *a, struct question *q)
{
	let_go(a, q);
	q->open = false;
	a->n_open--;
}

/* ---- records ---- */

static void record_missed(struct attribution *a)
{
	for (int i = 0; i < AUDIT_UNKNOWN_COUNT; i++) {
		const struct audit_process rec = { .unknown = (enum audit_unknown)i, .count = a->missed[i] };

		if (rec.count && audit_process(a->audit, &rec) == 0)
			a->missed[i] = 0;
	}
}

/* The one way in which a question ends. */
static void settle(struct attribution *a, struct question *q, const struct procfs_process *found,
		   enum audit_unknown unknown)
{
	struct audit_process rec = { .conn = q->conn, .src = q->req.src, .unknown = unknown };

	if (found) {
		rec.pid = found->pid;
		rec.host_pid = found->host_pid;
		rec.uid = found->uid;
		rec.exe = found->exe;
		rec.exe_kept = found->exe_kept;
		rec.exe_len = found->exe_len;
		rec.cmdline = found->cmdline;
		rec.cmdline_len = found->args_kept;
	}
	end(a, q);
	/* No grant hangs on it: audit counts what it could not write. */
	(void)audit_process(a->audit, &rec);
}

static void settle_all(struct attribution *a, enum audit_unknown unknown)
{
	for (int i = 0; i < ATTRIBUTION_MAX; i++)
		if (a->questions[i].open)
			settle(a, &a->questions[i], NULL, unknown);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct attribution *a = arg;
	uint64_t now = clock_tick_us();

	(void)fd, (void)what;
	for (int i = 0; i < ATTRIBUTION_MAX; i++) {
		struct question *q = &a->questions[i];

		if (q->open && now - q->asked_us >= ATTRIBUTION_WAIT_MS * US_PER_MS)
			settle(a, q, NULL, AUDIT_UNKNOWN_TIMEOUT);
		else if (q->open && now - q->held_us >= ATTRIBUTION_HOLD_MS * US_PER_MS)
			let_go(a, q);
	}
	record_missed(a);
	arm(a);
}

/* ---- answers ---- */

static void lose_finder(struct attribution *a)
{
	if (a->ev)
		event_free(a->ev);
	a->ev = NULL;
	if (a->fd >= 0)
		close(a->fd);
	a->fd = -1;
	settle_all(a, AUDIT_UNKNOWN_UNAVAILABLE);
}

static enum audit_unknown unknown_of(uint32_t result)
{
	switch (result) {
	case FINDER_FOUND:
		return AUDIT_UNKNOWN_NOT;
	case FINDER_GONE:
		return AUDIT_UNKNOWN_GONE;
	case FINDER_HIDDEN:
		return AUDIT_UNKNOWN_HIDDEN;
	case FINDER_TOO_MANY:
		return AUDIT_UNKNOWN_TOO_MANY;
	default:
		return AUDIT_UNKNOWN_UNAVAILABLE;
	}
}

static bool answer_ok(const struct finder_answer *answer)
{
	const struct procfs_process *p = &answer->process;

	return answer->result < FINDER_RESULTS && p->exe_kept <= sizeof(p->exe) && p->exe_kept <= p->exe_len &&
	       p->args_kept <= sizeof(p->cmdline);
}

/* The one message that is no answer. */
static bool take_trace(struct attribution *a, int fd)
{
	bool first = !a->trace;

	if (first)
		a->trace = trace_map(fd);
	close(fd);
	return first;
}

static void on_answer(evutil_socket_t fd, short what, void *arg)
{
	struct attribution *a = arg;
	static struct finder_answer answer;
	struct question *q;
	size_t n_fds;
	int with;
	ssize_t n;

	(void)what;
	for (int i = 0; i < ATTRIBUTION_MAX && a->fd >= 0; i++) {
		n = fdpass_recv((int)fd, &answer, sizeof(answer), &with, 1, &n_fds);
		if (n == -EAGAIN || n == -EINTR)
			return;
		if (n < 0 || (n_fds == 1 && !take_trace(a, with)) || n != sizeof(answer) || !answer_ok(&answer) ||
		    (answer.result == FINDER_TRACE) != (n_fds == 1)) {
			lose_finder(a);
			return;
		}
		if (n_fds == 1)
			continue;
		q = &a->questions[answer.tag % ATTRIBUTION_MAX];
		if (q->open && !q->at_turn_end && q->req.tag == answer.tag)
			settle(a, q, answer.result == FINDER_FOUND ? &answer.process : NULL, unknown_of(answer.result));
	}
}

/* ---- questions ---- */

static void miss(struct attribution *a, enum audit_unknown why)
{
	a->missed[why]++;
	if (!evtimer_pending(a->timer, NULL))
		arm(a);
}

static void ask_finder(struct attribution *a, struct question *q)
{
	int r = fdpass_send(a->fd, &q->req, sizeof(q->req), NULL, 0);

	if (r == 0)
		return;
	end(a, q);
	if (r != -EAGAIN)
		lose_finder(a);
	miss(a, r == -EAGAIN ? AUDIT_UNKNOWN_BUSY : AUDIT_UNKNOWN_UNAVAILABLE);
}

/* Settles what the ring knows. */
static bool look(struct attribution *a, struct question *q)
{
	static struct procfs_process found;

	q->at_turn_end = false;
	if (!trace_find(a->trace, &q->req, &found) || !trace_is_whole(&found))
		return false;
	settle(a, q, &found, AUDIT_UNKNOWN_NOT);
	return true;
}

/* By now the decisions of this turn are made, which say whether a process is worth a record. Where that takes longer, so does the finder. */
static void on_turn_end(evutil_socket_t fd, short what, void *arg)
{
	struct attribution *a = arg;

	(void)fd, (void)what;
	for (int i = 0; i < ATTRIBUTION_MAX; i++) {
		struct question *q = &a->questions[i];

		if (!q->open || !q->at_turn_end)
			continue;
		if (audit_process_early(a->audit, q->conn) || !look(a, q)) {
			q->at_turn_end = false;
			ask_finder(a, q);
		}
	}
}

static void ask(struct attribution *a, uint8_t protocol, uint64_t conn, const struct endpoint *src,
		const struct endpoint *dst)
{
	struct finder_request req = { .protocol = protocol, .src = *src, .dst = *dst };
	struct question *q = a->questions;

	if (a->finished)
		return;
	while (q < a->questions + ATTRIBUTION_MAX && q->open)
		q++;
	if (a->fd < 0 || q == a->questions + ATTRIBUTION_MAX || !finder_request_ok(&req)) {
		miss(a, a->fd < 0 ? AUDIT_UNKNOWN_UNAVAILABLE : AUDIT_UNKNOWN_BUSY);
		return;
	}
	req.tag = ++a->generation * ATTRIBUTION_MAX + (uint32_t)(q - a->questions);
	*q = (struct question){ .open = true,
				.at_turn_end = a->trace,
				.conn = conn,
				.req = req,
				.asked_us = clock_tick_us(),
				.held_fd = -1 };
	a->n_open++;
	if (!evtimer_pending(a->timer, NULL))
		arm(a);
	if (q->at_turn_end)
		event_active(a->turn_end, EV_TIMEOUT, 0);
	else
		ask_finder(a, q);
}

void attribution_tcp(struct attribution *a, uint64_t conn, const struct endpoint *src, const struct endpoint *dst)
{
	ask(a, IPPROTO_TCP, conn, src, dst);
}

void attribution_udp(struct attribution *a, const struct endpoint *src, const struct endpoint *dst)
{
	uint64_t now = clock_tick_us();

	for (int i = 0; i < RECENT; i++)
		if (a->recent[i].src.port == src->port && addr_equal(&a->recent[i].src.addr, &src->addr) &&
		    now - a->recent[i].asked_us < RECENT_US)
			return;
	a->recent[a->recent_at].src = *src;
	a->recent[a->recent_at].asked_us = now;
	a->recent_at = (a->recent_at + 1) % RECENT;
	ask(a, IPPROTO_UDP, 0, src, dst);
}

void attribution_close(struct attribution *a, uint64_t conn, int fd)
{
	for (int i = 0; i < ATTRIBUTION_MAX; i++) {
		struct question *q = &a->questions[i];

		if (!q->open || q->conn != conn || q->held_fd >= 0)
			continue;
		q->held_fd = fd;
		q->held_us = clock_tick_us();
		if (a->n_held++ == 0)
			arm(a);
		return;
	}
	close(fd);
}

/* ---- life ---- */

void attribution_use(struct attribution *a, int fd)
{
	if (a->fd >= 0 || a->finished) {
		close(fd);
		return;
	}
	a->fd = fd;
	a->ev = event_new(a->base, fd, EV_READ | EV_PERSIST, on_answer, a);
	if (!a->ev || event_add(a->ev, NULL) < 0)
		lose_finder(a);
}

struct attribution *attribution_new(struct event_base *base, struct audit *audit)
{
	struct attribution *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->base = base;
	a->audit = audit;
	a->fd = -1;
	a->timer = evtimer_new(base, on_timer, a);
	a->turn_end = event_new(base, -1, 0, on_turn_end, a);
	if (!a->timer || !a->turn_end) {
		attribution_free(a);
		return NULL;
	}
	return a;
}

void attribution_finish(struct attribution *a)
{
	a->finished = true;
	for (int i = 0; i < ATTRIBUTION_MAX; i++)
		if (a->questions[i].open && a->questions[i].at_turn_end)
			(void)look(a, &a->questions[i]);
	settle_all(a, AUDIT_UNKNOWN_GONE);
	record_missed(a);
	evtimer_del(a->timer);
}

void attribution_free(struct attribution *a)
{
	if (!a)
		return;
	for (int i = 0; i < ATTRIBUTION_MAX; i++)
		if (a->questions[i].open)
			let_go(a, &a->questions[i]);
	if (a->ev)
		event_free(a->ev);
	if (a->fd >= 0)
		close(a->fd);
	if (a->timer)
		event_free(a->timer);
	if (a->turn_end)
		event_free(a->turn_end);
	free(a);
}
