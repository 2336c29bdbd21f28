/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Happy Eyeballs as pure state. Two queues, one a family; each start takes from
 * the family that did not have the last turn, so that addresses that come late
 * join the rotation and nothing has to be sorted again.
 */
#include "proxy/upstream/happy_eyeballs.h"

static bool is_known(const struct happy_family *f, const struct addr *a)
{
	for (size_t i = 0; i < f->n; i++)
		if (addr_equal(&f->addrs[i], a))
			return true;
	return false;
}

void happy_answer(struct happy *h, enum addr_family family, const struct addr *addrs, size_t n, uint64_t now)
{
	struct happy_family *f = family == ADDR_V6 ? &h->v6 : &h->v4;

	f->answered = true;
	if (family == ADDR_V4)
		h->v4_at = now;
	for (size_t i = 0; i < n && f->n < HAPPY_ADDRS_MAX; i++)
		if (!is_known(f, &addrs[i]))
			f->addrs[f->n++] = addrs[i];
}

static bool has_more(const struct happy_family *f)
{
	return f->tried < f->n;
}

enum happy_step happy_next(struct happy *h, uint64_t now, struct addr *out, uint64_t *wait_us)
{
	struct happy_family *f = h->last.family == ADDR_V6 ? &h->v4 : &h->v6;
	uint64_t due = h->earliest;

	*wait_us = HAPPY_FOREVER;
	if (!has_more(&h->v6) && !has_more(&h->v4))
		return h->in_flight == 0 && h->v6.answered && h->v4.answered ? HAPPY_DONE : HAPPY_WAIT;
	if (h->in_flight >= HAPPY_IN_FLIGHT_MAX)
		return HAPPY_WAIT;
	/* Only IPv4 so far: give IPv6 a little time to come, so that it has the first turn. */
	if (h->last.family == ADDR_NONE && !has_more(&h->v6) && !h->v6.answered)
		due = h->v4_at + HAPPY_RESOLUTION_US;
	if (now < due) {
		*wait_us = due - now;
		return HAPPY_WAIT;
	}
	if (!has_more(f))
		f = f == &h->v6 ? &h->v4 : &h->v6;
	h->last = f->addrs[f->tried++];
	h->earliest = now + HAPPY_ATTEMPT_US;
	h->in_flight++;
	*out = h->last;
	return HAPPY_START;
}

void happy_failed(struct happy *h, const struct addr *a)
{
	if (h->in_flight > 0)
		h->in_flight--;
	if (addr_equal(a, &h->last))
		h->earliest = 0;
}
