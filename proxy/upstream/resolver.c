/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look-ups on top of the c-ares channel.
 *
 * A `subject` is a name that is being asked for: two questions, two results. Its
 * `waiters` are the look-ups that share it, so that a thousand connections to
 * one name ask twice, not two thousand times, and a forger of answers gets one
 * question id to guess, not a thousand. When both results are there and one
 * brought addresses, the subject is kept until its TTL is over, and later look-ups wait for
 * nothing. What failed, in part or whole, is asked for anew each time. Nothing is judged
 * by what is kept: each dial vets the addresses that it uses.
 *
 * Results are told from an event of their own, never from inside c-ares: its
 * callbacks only store them. So callbacks may start and cancel look-ups, and
 * c-ares never finds its channel changed under its feet. A cancelled look-up
 * leaves its subject, which c-ares still points to, to live until both
 * questions are answered or timed out.
 */
#include "proxy/upstream/resolver.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/err.h"
#include "proxy/upstream/resolver_channel.h"

enum { HALF_V6, HALF_V4, HALVES }; /* IPv6 is asked and told first (RFC 8305 §3) */

struct half {
	struct subject *subject;
	struct resolver_question question;
	bool done;
	uint8_t n;
	const char *error;
	struct addr addrs[RESOLVER_ADDRS_MAX];
};

struct subject {
	TAILQ_ENTRY(subject) link; /* in resolver.asked while a question is open, in resolver.kept when `kept` */
	struct resolver *resolver;
	struct name name;
	unsigned open;	  /* questions that c-ares holds */
	uint64_t expires; /* monotonic microseconds: the end of the shortest TTL so far */
	bool kept;
	struct half halves[HALVES];
	TAILQ_HEAD(waiters, resolver_query) waiters;
};

struct resolver_query {
	TAILQ_ENTRY(resolver_query) link;  /* in subject.waiters */
	TAILQ_ENTRY(resolver_query) ready; /* in resolver.ready, when is_ready */
	struct subject *subject;
	resolver_fn *done;
	void *arg;
	bool is_ready;
	bool told[HALVES];
};

struct resolver {
	struct resolver_channel *channel;
	struct event *deliver;
	TAILQ_HEAD(subjects, subject) asked, kept;
	size_t n_asked, n_kept;
	TAILQ_HEAD(ready, resolver_query) ready; /* those with a result to be told */
	size_t n_ready;
};

/* The first half that is there and not told yet; HALVES when there is none. */
static unsigned next_half(const struct resolver_query *q)
{
	unsigned i;

	for (i = 0; i < HALVES; i++)
		if (q->subject->halves[i].done && !q->told[i])
			break;
	return i;
}

static void set_ready(struct resolver_query *q)
{
	struct resolver *r = q->subject->resolver;

	if (q->is_ready || next_half(q) == HALVES)
		return;
	q->is_ready = true;
	r->n_ready++;
	TAILQ_INSERT_TAIL(&r->ready, q, ready);
	event_active(r->deliver, EV_TIMEOUT, 0);
}

static void unset_ready(struct resolver_query *q)
{
	struct resolver *r = q->subject->resolver;

	if (!q->is_ready)
		return;
	q->is_ready = false;
	r->n_ready--;
	TAILQ_REMOVE(&r->ready, q, ready);
}

/* Frees a subject that neither c-ares nor a waiter needs, and that is not kept. */
static void subject_release(struct subject *s)
{
	if (s->open == 0 && !s->kept && TAILQ_EMPTY(&s->waiters))
		free(s);
}

/* No later look-up finds it. It may be freed by that. */
static void unkeep(struct subject *s)
{
	struct resolver *r = s->resolver;

	TAILQ_REMOVE(&r->kept, s, link);
	r->n_kept--;
	s->kept = false;
	subject_release(s);
}

/* Both results are there: keeps them, if they are any good and for a while. */
static void keep(struct subject *s)
{
	struct resolver *r = s->resolver;

	if (s->halves[HALF_V6].n + s->halves[HALF_V4].n == 0 || s->expires <= clock_tick_us())
		return;
	if (r->n_kept == RESOLVER_KEPT_MAX)
		unkeep(TAILQ_FIRST(&r->kept));
	TAILQ_INSERT_TAIL(&r->kept, s, link);
	r->n_kept++;
	s->kept = true;
}

/* Takes a query off its subject, which may be freed by that. */
static void detach(struct resolver_query *q)
{
	struct subject *s = q->subject;

	unset_ready(q);
	TAILQ_REMOVE(&s->waiters, q, link);
	q->subject = NULL;
	subject_release(s);
}

static void set_half(struct half *h, const struct addr *addrs, size_t n, const char *error)
{
	h->done = true;
	h->n = (uint8_t)n;
	h->error = error;
	if (n > 0)
		memcpy(h->addrs, addrs, n * sizeof(*addrs));
}

/* c-ares has an answer: store it. */
static void on_answer(void *arg, const struct addr *addrs, size_t n, uint32_t ttl, const char *error)
{
	struct half *h = arg;
	struct subject *s = h->subject;
	struct resolver *r = s->resolver;
	uint64_t expires = clock_tick_us() + (uint64_t)(ttl < RESOLVER_KEPT_S ? ttl : RESOLVER_KEPT_S) * US_PER_S;
	struct resolver_query *q;

	set_half(h, addrs, n, error);
	if (expires < s->expires)
		s->expires = expires;
	s->open--;
	if (s->open == 0) {
		TAILQ_REMOVE(&r->asked, s, link);
		r->n_asked--;
		keep(s);
	}
	TAILQ_FOREACH(q, &s->waiters, link)
	set_ready(q);
	subject_release(s);
}

/* Tells one result. Nothing of the query may be touched after the call. */
static void tell(struct resolver_query *q)
{
	unsigned i = next_half(q);
	const struct half *h = &q->subject->halves[i];
	enum addr_family family = h->question.family;
	struct addr addrs[RESOLVER_ADDRS_MAX];
	resolver_fn *done = q->done;
	const char *error = h->error;
	void *arg = q->arg;
	size_t n = h->n;
	bool last;

	memcpy(addrs, h->addrs, n * sizeof(addrs[0]));
	unset_ready(q);
	q->told[i] = true;
	last = q->told[HALF_V6] && q->told[HALF_V4];
	if (last) {
		detach(q);
		free(q);
	} else {
		set_ready(q);
	}
	done(arg, family, addrs, n, error, last);
}

static void on_deliver(evutil_socket_t fd, short what, void *arg)
{
	struct resolver *r = arg;

	(void)fd;
	(void)what;
	/* Those that become ready meanwhile have their turn after the other events of the loop. */
	for (size_t n = r->n_ready; n > 0 && !TAILQ_EMPTY(&r->ready); n--)
		tell(TAILQ_FIRST(&r->ready));
	if (!TAILQ_EMPTY(&r->ready))
		event_active(r->deliver, EV_TIMEOUT, 0);
}

struct resolver *resolver_new(struct event_base *base, const struct endpoint *servers, size_t n, struct err *err)
{
	struct resolver *r = calloc(1, sizeof(*r));

	if (!r) {
		err_set_errno(err, ENOMEM, "resolver");
		return NULL;
	}
	TAILQ_INIT(&r->asked);
	TAILQ_INIT(&r->kept);
	TAILQ_INIT(&r->ready);
	r->deliver = event_new(base, -1, 0, on_deliver, r);
	if (!r->deliver) {
		err_set_errno(err, ENOMEM, "resolver");
		free(r);
		return NULL;
	}
	r->channel = resolver_channel_new(base, servers, n, err);
	if (!r->channel) {
		event_free(r->deliver);
		free(r);
		return NULL;
	}
	return r;
}

void resolver_free(struct resolver *r)
{
	struct resolver_query *q;
	struct subject *s;

	if (!r)
		return;
	while ((q = TAILQ_FIRST(&r->ready)))
		resolver_cancel(q);
	TAILQ_FOREACH(s, &r->asked, link)
	while ((q = TAILQ_FIRST(&s->waiters)))
		resolver_cancel(q);
	while ((s = TAILQ_FIRST(&r->kept)))
		unkeep(s);
	/* Answers the open questions, which frees their subjects. */
	resolver_channel_free(r->channel);
	event_free(r->deliver);
	free(r);
}

static struct subject *find_in(const struct subjects *list, const struct name *name)
{
	struct subject *s;

	TAILQ_FOREACH(s, list, link)
	if (name_equal(&s->name, name))
		break;
	return s;
}

/* The subject whose results a look-up may have. */
static struct subject *subject_find(struct resolver *r, const struct name *name)
{
	struct subject *s = find_in(&r->kept, name);

	if (s && clock_tick_us() < s->expires)
		return s;
	if (s)
		unkeep(s);
	return find_in(&r->asked, name);
}

void resolver_forget(struct resolver *r, const struct name *name)
{
	struct subject *s = find_in(&r->kept, name);

	if (s)
		unkeep(s);
}

static struct subject *subject_new(struct resolver *r, const struct name *name)
{
	static const enum addr_family families[HALVES] = { [HALF_V6] = ADDR_V6, [HALF_V4] = ADDR_V4 };
	struct subject *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->resolver = r;
	s->name = *name;
	s->expires = UINT64_MAX;
	TAILQ_INIT(&s->waiters);
	for (size_t i = 0; i < HALVES; i++) {
		struct half *h = &s->halves[i];

		h->subject = s;
		h->question = (struct resolver_question){ .family = families[i], .done = on_answer, .arg = h };
	}
	return s;
}

/* Asks both questions; the waiter that is there already keeps the subject alive if both fail at once. */
static void subject_ask(struct subject *s)
{
	struct resolver *r = s->resolver;

	if (r->n_asked >= RESOLVER_QUESTIONS_MAX) {
		for (size_t i = 0; i < HALVES; i++)
			set_half(&s->halves[i], NULL, 0, "too many look-ups at once");
		return;
	}
	s->open = HALVES;
	r->n_asked++;
	TAILQ_INSERT_TAIL(&r->asked, s, link);
	for (size_t i = 0; i < HALVES; i++)
		resolver_channel_ask(r->channel, s->name.s, &s->halves[i].question);
}

struct resolver_query *resolver_lookup(struct resolver *r, const struct name *name, resolver_fn *done, void *arg)
{
	struct resolver_query *q = calloc(1, sizeof(*q));
	struct subject *s = subject_find(r, name);
	bool is_new = !s;

	if (is_new)
		s = subject_new(r, name);
	if (!q || !s) {
		if (is_new)
			free(s);
		free(q);
		return NULL;
	}
	q->subject = s;
	q->done = done;
	q->arg = arg;
	TAILQ_INSERT_TAIL(&s->waiters, q, link);
	if (is_new)
		subject_ask(s);
	set_ready(q);
	return q;
}

void resolver_cancel(struct resolver_query *q)
{
	detach(q);
	free(q);
}
