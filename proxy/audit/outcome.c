/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "proxy/audit/outcome.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proxy/audit/audit_impl.h"
#include "proxy/audit/show.h"
#include "proxy/audit/summary_merge.h"
#include "rules/hint.h"

static_assert(sizeof(struct outcome) <= PIPE_BUF, "a row is written at once or not at all");
static_assert(sizeof(((struct outcome *)0)->allow) >= HINT_ADDRESSES_MAX, "the longest flag fits");
static_assert(sizeof(((struct outcome *)0)->text) >= SHOW_CAP(RECORD_DETAIL_MAX), "the longest detail fits");

static void write_row(int fd, const struct outcome *o)
{
	while (write(fd, o, sizeof(*o)) < 0 && errno == EINTR)
		;
}

static enum outcome_kind kind_of(const struct tally_entry *e)
{
	switch (e->kind) {
	case TALLY_CONNECTED:
	case TALLY_LOOKED_UP:
		return OUTCOME_ALLOWED;
	case TALLY_WOULD:
	case TALLY_WOULD_NAME:
		return OUTCOME_WOULD_DENY;
	case TALLY_DROPPED:
		return OUTCOME_DROPPED;
	case TALLY_FAILED:
		return OUTCOME_FAILED;
	default:
		return e->reason == REASON_CLIENT_GONE ? OUTCOME_FAILED : OUTCOME_DENIED;
	}
}

static void count(struct outcome *o, const struct tally *t, const struct tally_entry *e)
{
	const struct tally_entry *made = e->kind == TALLY_CONNECTED ? e : summary_connections(t, e);

	switch (e->kind) {
	case TALLY_LOOKED_UP:
	case TALLY_WOULD_NAME:
	case TALLY_DENIED_NAME:
		o->lookups = e->count;
		break;
	case TALLY_DROPPED:
		o->packets = e->count;
		o->down = e->down;
		break;
	default:
		o->attempts = made || e->kind == TALLY_FAILED ? 0 : e->count;
		o->connections = made ? made->count : e->kind == TALLY_FAILED ? e->count : 0;
		o->lookups = e->lookups;
	}
	if (e->kind == TALLY_WOULD || e->kind == TALLY_DENIED)
		o->lookups = summary_lookups(t, e);
	if (made) {
		o->up = made->up;
		o->down = made->down;
	}
}

static void write_entry(int fd, const struct tally *t, const struct tally_entry *e)
{
	struct outcome o;

	memset(&o, 0, sizeof(o));
	o.kind = kind_of(e);
	o.reason = e->reason;
	o.port = e->port;
	o.names = e->kind == TALLY_BELOW ? e->names : 0;
	count(&o, t, e);
	memcpy(o.what, e->what, sizeof(o.what));
	memcpy(o.proto, e->proto, sizeof(o.proto));
	if (e->hint)
		snprintf(o.allow, sizeof(o.allow), "%s", e->hint);
	if (e->detail)
		show_bytes(o.text, e->detail, strlen(e->detail), RECORD_DETAIL_MAX);
	write_row(fd, &o);
}

void audit_outcomes(const struct audit *a, int fd)
{
	const struct tally *t = a->tally;
	struct outcome more;
	uint64_t left[2];

	for (int denied = 0; denied < 2; denied++) {
		size_t shown = 0;

		left[denied] = tally_more(t, denied);
		for (size_t i = 0; i < tally_size(t); i++) {
			const struct tally_entry *e = tally_at(t, i);

			if (tally_is_denied(e->kind) != denied || summary_is_hidden(t, e))
				continue;
			if (shown++ < OUTCOME_ROWS_MAX)
				write_entry(fd, t, e);
			else
				left[denied]++;
		}
	}
	memset(&more, 0, sizeof(more));
	more.kind = OUTCOME_MORE;
	more.connections = left[false];
	more.attempts = left[true];
	more.packets = a->lost_ever;
	more.names = a->truncated;
	write_row(fd, &more);
}

void outcome_write_error(int fd, const char *text)
{
	struct outcome o;

	memset(&o, 0, sizeof(o));
	o.kind = OUTCOME_ERROR;
	snprintf(o.text, sizeof(o.text), "%s", text);
	write_row(fd, &o);
}

/* Printable ASCII that ends within `size` bytes. */
static bool is_text(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return len < size;
}

bool outcome_ok(const struct outcome *o)
{
	return o->kind < OUTCOME_KIND_COUNT && o->reason < REASON_COUNT && o->port <= UINT16_MAX &&
	       is_text(o->proto, sizeof(o->proto)) && is_text(o->what, sizeof(o->what)) &&
	       is_text(o->allow, sizeof(o->allow)) && is_text(o->text, sizeof(o->text));
}
