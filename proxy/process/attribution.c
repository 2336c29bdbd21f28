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

#define RECENT	     16 /* sources of datagrams that were asked for lately */
#define RECENT_US    (1000 * 1000u)
#define US_PER_MS    1000u
#define TICK_HOLD_MS ATTRIBUTION_HOLD_MS
#define TICK_WAIT_MS 500

struct question {
	bool open;
	uint32_t tag;
	uint64_t conn; /* 0: a datagram's */
	struct endpoint src;
	uint64_t asked_us, held_us;
	int held_fd; /* of a connection that is over; -1: none */
};

struct attribution {
	struct event_base *base;
	struct audit *audit;
	int fd; /* the finder; -1: nobody to ask */
	struct event *ev, *timer;
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
	struct audit_process rec = { .conn = q->conn, .src = q->src, .unknown = unknown };

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
	let_go(a, q);
	q->open = false;
	a->n_open--;
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
	uint64_t now = clock_mono_us();

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

static void on_answer(evutil_socket_t fd, short what, void *arg)
{
	struct attribution *a = arg;
	static struct finder_answer answer;
	struct question *q;
	size_t n_fds;
	ssize_t n;

	(void)what;
	for (int i = 0; i < ATTRIBUTION_MAX && a->fd >= 0; i++) {
		n = fdpass_recv((int)fd, &answer, sizeof(answer), NULL, 0, &n_fds);
		if (n == -EAGAIN || n == -EINTR)
			return;
		if (n != sizeof(answer) || !answer_ok(&answer)) {
			lose_finder(a);
			return;
		}
		q = &a->questions[answer.tag % ATTRIBUTION_MAX];
		if (q->open && q->tag == answer.tag)
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

static void ask(struct attribution *a, uint8_t protocol, uint64_t conn, const struct endpoint *src,
		const struct endpoint *dst)
{
	struct finder_request req = { .protocol = protocol, .src = *src, .dst = *dst };
	uint32_t i = 0;
	int r;

	if (a->finished)
		return;
	while (i < ATTRIBUTION_MAX && a->questions[i].open)
		i++;
	if (a->fd < 0 || i == ATTRIBUTION_MAX) {
		miss(a, a->fd < 0 ? AUDIT_UNKNOWN_UNAVAILABLE : AUDIT_UNKNOWN_BUSY);
		return;
	}
	req.tag = ++a->generation * ATTRIBUTION_MAX + i;
	r = finder_request_ok(&req) ? fdpass_send(a->fd, &req, sizeof(req), NULL, 0) : -EAGAIN;
	if (r < 0) {
		if (r != -EAGAIN)
			lose_finder(a);
		miss(a, r == -EAGAIN ? AUDIT_UNKNOWN_BUSY : AUDIT_UNKNOWN_UNAVAILABLE);
		return;
	}
	a->questions[i] = (struct question){
		.open = true, .tag = req.tag, .conn = conn, .src = *src, .asked_us = clock_mono_us(), .held_fd = -1
	};
	a->n_open++;
	if (!evtimer_pending(a->timer, NULL))
		arm(a);
}

void attribution_tcp(struct attribution *a, uint64_t conn, const struct endpoint *src, const struct endpoint *dst)
{
	ask(a, IPPROTO_TCP, conn, src, dst);
}

void attribution_udp(struct attribution *a, const struct endpoint *src, const struct endpoint *dst)
{
	uint64_t now = clock_mono_us();

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
		q->held_us = clock_mono_us();
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
	if (!a->timer) {
		free(a);
		return NULL;
	}
	return a;
}

void attribution_finish(struct attribution *a)
{
	a->finished = true;
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
	event_free(a->timer);
	free(a);
}
