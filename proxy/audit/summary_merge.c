/* SPDX-License-Identifier: Apache-2.0 */
/* Which counts share one row of the summary, so that a person reads each thing once. */
#include <string.h>

#include "proxy/audit/summary_merge.h"
#include "proxy/audit/tally.h"

#define ANY_PORT (-1)

/* The first entry of this kind about `what` on this port (for this reason, unless it is REASON_NONE), or NULL. */
static const struct tally_entry *first_about(const struct tally *t, enum tally_kind kind, enum reason reason,
					     const char *what, int port)
{
	for (size_t i = 0; i < tally_size(t); i++) {
		const struct tally_entry *e = tally_at(t, i);

		if (e->kind == kind && (reason == REASON_NONE || e->reason == reason) &&
		    (port == ANY_PORT || e->port == port) && !strcmp(e->what, what))
			return e;
	}
	return NULL;
}

uint64_t summary_lookups(const struct tally *t, const struct tally_entry *e)
{
	enum tally_kind kind = e->kind == TALLY_WOULD ? TALLY_WOULD_NAME : TALLY_DENIED_NAME;
	const struct tally_entry *names = first_about(t, kind, e->reason, e->what, ANY_PORT);

	return names && first_about(t, e->kind, e->reason, e->what, ANY_PORT) == e ? names->count : 0;
}

const struct tally_entry *summary_connections(const struct tally *t, const struct tally_entry *e)
{
	if (e->kind != TALLY_WOULD || first_about(t, TALLY_WOULD, REASON_NONE, e->what, e->port) != e)
		return NULL;
	return first_about(t, TALLY_CONNECTED, REASON_NONE, e->what, e->port);
}

/* True when a look-up that was allowed is not all that there is to say about the name. */
static bool is_more_than_looked_up(const struct tally *t, const char *what)
{
	static const enum tally_kind kinds[] = { TALLY_CONNECTED, TALLY_FAILED,	     TALLY_WOULD,
						 TALLY_DENIED,	  TALLY_DENIED_NAME, TALLY_DROPPED };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (first_about(t, kinds[i], REASON_NONE, what, ANY_PORT))
			return true;
	}
	return false;
}

bool summary_is_hidden(const struct tally *t, const struct tally_entry *e)
{
	if (tally_is_together(t, e->below))
		return true;
	switch (e->kind) {
	case TALLY_DIAL:
		return true;
	case TALLY_LOOKED_UP:
		return is_more_than_looked_up(t, e->what);
	case TALLY_CONNECTED:
		return first_about(t, TALLY_WOULD, REASON_NONE, e->what, e->port) != NULL;
	case TALLY_WOULD_NAME:
		return first_about(t, TALLY_WOULD, e->reason, e->what, ANY_PORT) != NULL;
	case TALLY_DENIED_NAME:
		return first_about(t, TALLY_DENIED, e->reason, e->what, ANY_PORT) != NULL;
	case TALLY_BELOW:
		return e->names <= TALLY_BELOW_MAX;
	case TALLY_FAILED:
	case TALLY_WOULD:
	case TALLY_DENIED:
	case TALLY_DROPPED:
		break;
	}
	return false;
}
