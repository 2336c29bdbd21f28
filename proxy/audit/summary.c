/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The summary for a person. While the job runs, what happens is counted under
 * what a person would call the same; at the end each such entry is a row. A
 * denied look-up and the denied connection to the same name share one, and so do many denied names
 * below one domain: a sandbox that sends data out in names does not fill the screen with them.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proxy/audit/audit_impl.h"
#include "proxy/audit/show.h"
#include "proxy/audit/tally.h"
#include "rules/hint.h"
#include "rules/policy.h"

#define SUMMARY_ROWS_MAX 30 /* rows of what was allowed, and again of what was denied */
#define SUMMARY_RAW_MAX	 60 /* bytes shown of a raw name */
#define WHAT_WIDTH_MAX	 40 /* wider ones stick out of their column */
#define ANY_PORT	 (-1)

static_assert(SHOW_CAP(SUMMARY_RAW_MAX) + 2 <= TALLY_WHAT_MAX, "an escaped name fits");
static_assert(NAME_LEN_MAX < TALLY_WHAT_MAX, "a name fits");

/* A raw name, escaped and in quotes: it may hold blanks. */
static const char *quote(char buf[static TALLY_WHAT_MAX], const void *raw, size_t len)
{
	size_t end;

	buf[0] = '"';
	show_bytes(buf + 1, raw, len, SUMMARY_RAW_MAX);
	end = strlen(buf);
	buf[end] = '"';
	buf[end + 1] = '\0';
	return buf;
}

/* Counts a denied name with the others of its domain. Returns what tally_entry.below is to be. */
static size_t count_below(struct tally *t, const struct tally_key *key, const char *host)
{
	struct tally_entry *e = tally_below(t, key->reason, host);

	if (!e)
		return 0;
	if (key->kind == TALLY_DENIED_NAME)
		e->lookups++;
	else
		e->count++;
	return 1 + tally_index(t, e);
}

/* True when the names counted in that entry share its row. */
static bool is_together(const struct tally *t, size_t below)
{
	return below && tally_at(t, below - 1)->names > TALLY_BELOW_MAX;
}

/* What a person wants to know of the first of its kind. */
static void describe(struct audit *a, struct tally_entry *e, const struct audit_decision *d)
{
	char hint[HINT_MAX], label[POLICY_RULE_LABEL_MAX];

	tally_text(&e->hint, match_hint(d->request, d->verdict, hint, sizeof(hint)));
	if (e->reason == REASON_DENIED_BY_RULE)
		tally_text(&e->detail, policy_rule_label(a->policy, d->verdict->rule, label));
}

void summary_decision(struct audit *a, const struct audit_decision *d)
{
	struct tally_key key = { .kind = TALLY_DENIED, .reason = d->verdict->reason, .proto = "" };
	bool dns = d->request->proto == PROTO_DNS;
	const struct verdict *verdict = d->verdict;
	char what[TALLY_WHAT_MAX];
	enum name_from from = NAME_FROM_DNS;
	const struct name *host = decision_host(d, &from);
	struct tally_entry *e;
	size_t below = 0;

	if (verdict->allow && verdict->would != REASON_NONE) {
		key.kind = dns ? TALLY_WOULD_NAME : TALLY_WOULD;
		key.reason = verdict->would;
	} else if (verdict->allow && dns) {
		key.kind = TALLY_LOOKED_UP;
	} else if (verdict->allow) {
		return; /* counted when the connection is over */
	} else if (dns) {
		key.kind = TALLY_DENIED_NAME;
	}
	key.port = dns ? 0 : d->request->port;
	if (host)
		key.what = host->s;
	else if (d->raw_name)
		key.what = quote(what, d->raw_name, d->raw_name_len);
	else
		key.what = addr_format(&d->dst.addr, what);
	if (host && !verdict->allow)
		below = count_below(a->tally, &key, host->s);
	if (is_together(a->tally, below))
		return;
	e = tally_get(a->tally, &key, false);
	if (!e)
		return;
	e->below = below;
	if (e->count++ == 0)
		describe(a, e, d);
}

/* Where the last failure to dial a host is kept until the connection's end asks for it. */
static struct tally_key dial_key(const struct name *host, const struct addr *addr, char text[static ADDR_STRLEN])
{
	return (struct tally_key){ .kind = TALLY_DIAL, .proto = "", .what = host ? host->s : addr_format(addr, text) };
}

/* True for what netgate itself refuses to dial. */
static bool is_refusal(enum reason reason)
{
	return reason == REASON_PRIVATE_ADDRESS || reason == REASON_DENIED_BY_RULE;
}

void summary_dial(struct audit *a, uint64_t conn, const struct name *host, const struct endpoint *peer,
		  enum reason reason, const char *detail)
{
	char text[ADDR_STRLEN], addr[ENDPOINT_STRLEN], both[ENDPOINT_STRLEN + RECORD_DETAIL_MAX];
	struct tally_key key = dial_key(host, &peer->addr, text);
	char hint[HINT_ADDRESSES_MAX] = "";
	struct tally_entry *e;

	if (reason == REASON_CONNECTED)
		return;
	e = tally_get(a->tally, &key, true);
	if (!e)
		return;
	/* An address that was refused says less than one that was tried and failed on its own. */
	if (e->conn == conn && e->why == REASON_CONNECT_FAILED && is_refusal(reason))
		return;
	e->conn = conn;
	e->why = reason;
	if (host && reason == REASON_PRIVATE_ADDRESS)
		hint_addresses(host, peer, hint);
	tally_text(&e->hint, hint);
	if (peer->addr.family != ADDR_NONE) {
		snprintf(both, sizeof(both), "%s%s%s", endpoint_format(peer, addr), detail && *detail ? ", " : "",
			 detail ? detail : "");
		tally_text(&e->detail, both);
	} else {
		tally_text(&e->detail, detail);
	}
}

/* The entry for a connection that was allowed but never made. */
static struct tally_entry *failed_entry(struct audit *a, struct tally_key *key, const struct tally_entry *dial)
{
	/* Their memory stays where it is when the entries move. */
	const char *detail = dial ? dial->detail : NULL, *hint = dial ? dial->hint : NULL;
	struct tally_entry *e;

	key->reason = dial ? dial->why : REASON_CONNECT_FAILED;
	key->kind = is_refusal(key->reason) ? TALLY_DENIED : TALLY_FAILED;
	e = tally_get(a->tally, key, false);
	if (e) {
		tally_text(&e->detail, detail);
		tally_text(&e->hint, hint);
	}
	return e;
}

void summary_close(struct audit *a, const struct audit_close *c)
{
	struct tally_key key = { .kind = TALLY_CONNECTED, .port = c->dst.port, .proto = "" };
	char text[ADDR_STRLEN];
	struct tally_key look = dial_key(c->host, &c->dst.addr, text);
	const struct tally_entry *dial = tally_find(a->tally, &look);
	struct tally_entry *e;

	key.what = look.what;
	if (c->end == CLOSE_CONNECT_FAILED)
		e = failed_entry(a, &key, dial);
	else
		e = tally_get(a->tally, &key, false);
	if (!e)
		return;
	e->count++;
	e->up += c->up;
	e->down += c->down;
}

void summary_drop(struct audit *a, const struct audit_drop *d)
{
	struct tally_key key = { .kind = TALLY_DROPPED, .reason = d->reason, .port = d->port };
	char text[ADDR_STRLEN] = "";
	struct tally_entry *e;

	key.proto = d->quic_name ? "udp (QUIC)" : d->proto ? d->proto : "";
	if (d->quic_name)
		key.what = d->quic_name->s;
	else
		key.what = d->dst.family == ADDR_NONE ? text : addr_format(&d->dst, text);
	e = tally_get(a->tally, &key, false);
	if (!e)
		return;
	e->count += d->count;
	e->down += d->bytes;
}

/* The text of one row; the columns that are aligned are apart. */
struct row {
	const char *verdict;
	char what[TALLY_WHAT_MAX + 48]; /* host:port/proto, or "N names below domain" */
	char counts[80];
	char why[SHOW_CAP(RECORD_DETAIL_MAX) + 32];
	const char *hint;
};

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

/* The look-ups that share the row of connection entry `e`: those of the same name and reason, in the first such row. */
static uint64_t shared_lookups(const struct tally *t, const struct tally_entry *e)
{
	enum tally_kind kind = e->kind == TALLY_WOULD ? TALLY_WOULD_NAME : TALLY_DENIED_NAME;
	const struct tally_entry *names = first_about(t, kind, e->reason, e->what, ANY_PORT);

	return names && first_about(t, e->kind, e->reason, e->what, ANY_PORT) == e ? names->count : 0;
}

/* What came of the connections that only audit mode let through, in the first row about them; or NULL. */
static const struct tally_entry *shared_connections(const struct tally *t, const struct tally_entry *e)
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

/* True for an entry that has no row of its own. */
static bool is_hidden(const struct tally *t, const struct tally_entry *e)
{
	if (is_together(t, e->below))
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

/* What a drop without a destination is about. */
static const char *without_destination(enum reason reason)
{
	switch (reason) {
	case REASON_HALF_OPEN:
		return "(half-open connections)";
	case REASON_DNS_OVERFLOW:
		return "(unanswered DNS queries)";
	case REASON_LIMIT_CONNECTIONS:
	case REASON_LIMIT_RATE:
		return "(further connections)";
	default:
		return "(further packets)";
	}
}

static void row_what(struct row *row, const struct tally *t, const struct tally_entry *e)
{
	struct addr addr;
	bool brackets = e->port && !addr_parse(e->what, strlen(e->what), &addr) && addr.family == ADDR_V6;
	char port[8] = "";

	if (e->port)
		snprintf(port, sizeof(port), ":%u", e->port);
	if (e->kind == TALLY_BELOW)
		snprintf(row->what, sizeof(row->what), "%s%" PRIu64 " names below %s",
			 tally_is_cut(t) ? "at least " : "", e->names, e->what);
	else if (!*e->what)
		snprintf(row->what, sizeof(row->what), "%s", without_destination(e->reason));
	else
		snprintf(row->what, sizeof(row->what), "%s%s%s%s%s%s", brackets ? "[" : "", e->what,
			 brackets ? "]" : "", port, *e->proto ? "/" : "", e->proto);
}

/* Appends "3 lookups"; nothing when there is none. */
static void put_count(struct row *row, uint64_t n, const char *noun)
{
	size_t len = strlen(row->counts);

	if (n)
		snprintf(row->counts + len, sizeof(row->counts) - len, "%s%" PRIu64 " %s%s", len ? ", " : "", n, noun,
			 n == 1 ? "" : "s");
}

static const char *count_noun(const struct tally_entry *e)
{
	switch (e->kind) {
	case TALLY_CONNECTED:
	case TALLY_FAILED:
		return "connection";
	case TALLY_LOOKED_UP:
	case TALLY_WOULD_NAME:
	case TALLY_DENIED_NAME:
		return "lookup";
	case TALLY_DROPPED:
		return drop_noun(e->reason);
	case TALLY_DIAL:
	case TALLY_WOULD:
	case TALLY_DENIED:
	case TALLY_BELOW:
		break;
	}
	return "attempt";
}

static const char *row_verdict(const struct tally_entry *e)
{
	if (e->kind == TALLY_CONNECTED || e->kind == TALLY_LOOKED_UP)
		return "allowed";
	if (e->kind == TALLY_FAILED)
		return "failed";
	if (e->reason == REASON_CLIENT_GONE)
		return "gave up"; /* the client did, before anything was decided */
	return e->kind == TALLY_WOULD || e->kind == TALLY_WOULD_NAME ? "would deny" : "denied";
}

static void row_counts(struct row *row, const struct tally *t, const struct tally_entry *e)
{
	const struct tally_entry *made = shared_connections(t, e);

	row->counts[0] = '\0';
	if (made)
		put_count(row, made->count, "connection");
	else
		put_count(row, e->count, count_noun(e));
	if (e->kind == TALLY_WOULD || e->kind == TALLY_DENIED)
		put_count(row, shared_lookups(t, e), "lookup");
	put_count(row, e->lookups, "lookup");
}

static void row_why(struct row *row, const struct tally *t, const struct tally_entry *e)
{
	const struct tally_entry *made = e->kind == TALLY_CONNECTED ? e : shared_connections(t, e);
	char up[SHOW_SIZE_STRLEN], down[SHOW_SIZE_STRLEN], detail[SHOW_CAP(RECORD_DETAIL_MAX)] = "";

	if (made)
		snprintf(detail, sizeof(detail), "%s up, %s down", show_size(up, made->up),
			 show_size(down, made->down));
	else if (e->detail)
		show_bytes(detail, e->detail, strlen(e->detail), RECORD_DETAIL_MAX);
	if (made == e)
		snprintf(row->why, sizeof(row->why), "%s", detail);
	else if (e->kind == TALLY_LOOKED_UP)
		snprintf(row->why, sizeof(row->why), "no connection");
	else if (*detail)
		snprintf(row->why, sizeof(row->why), "%s (%s)", reason_word(e->reason), detail);
	else
		snprintf(row->why, sizeof(row->why), "%s", reason_word(e->reason));
}

static void row_make(struct row *row, const struct tally *t, size_t i)
{
	const struct tally_entry *e = tally_at(t, i);

	row->verdict = row_verdict(e);
	row->hint = e->hint;
	row_what(row, t, e);
	row_counts(row, t, e);
	row_why(row, t, e);
}

/* Which entries get a row, in order: what was allowed, then what was not. */
struct plan {
	size_t rows[2 * SUMMARY_ROWS_MAX];
	size_t n;
	uint64_t more[2]; /* how many got none */
	int verdict_width, what_width, counts_width;
	int why_width; /* of rows with a hint, which comes after */
};

static void widen(int *width, const char *text, int max)
{
	int len = (int)strlen(text);

	if (len > *width && len <= max)
		*width = len;
}

static void plan_rows(struct plan *plan, const struct tally *t, bool denied)
{
	size_t shown = 0;
	struct row row;

	plan->more[denied] = tally_more(t, denied);
	for (size_t i = 0; i < tally_size(t); i++) {
		const struct tally_entry *e = tally_at(t, i);

		if (tally_is_denied(e->kind) != denied || is_hidden(t, e))
			continue;
		if (shown == SUMMARY_ROWS_MAX) {
			plan->more[denied]++;
			continue;
		}
		shown++;
		plan->rows[plan->n++] = i;
		row_make(&row, t, i);
		widen(&plan->verdict_width, row.verdict, WHAT_WIDTH_MAX);
		widen(&plan->what_width, row.what, WHAT_WIDTH_MAX);
		widen(&plan->counts_width, row.counts, WHAT_WIDTH_MAX);
		if (row.hint)
			widen(&plan->why_width, row.why, WHAT_WIDTH_MAX);
	}
}

void audit_summary(const struct audit *a, FILE *out)
{
	const char *least = tally_is_cut(a->tally) ? "at least " : "";
	struct plan plan = { .n = 0 };
	struct row row;

	plan_rows(&plan, a->tally, false);
	plan_rows(&plan, a->tally, true);
	for (size_t i = 0; i < plan.n; i++) {
		row_make(&row, a->tally, plan.rows[i]);
		fprintf(out, "netgate: %-*s  %-*s  %-*s  ", plan.verdict_width, row.verdict, plan.what_width, row.what,
			plan.counts_width, row.counts);
		if (row.hint)
			fprintf(out, "%-*s   to allow: %s\n", plan.why_width, row.why, row.hint);
		else
			fprintf(out, "%s\n", row.why);
	}
	for (int denied = 0; denied < 2; denied++) {
		if (plan.more[denied])
			fprintf(out, "netgate: and %s%" PRIu64 " more that were %s (see the log)\n", least,
				plan.more[denied], denied ? "denied" : "allowed");
	}
	if (a->lost_ever)
		fprintf(out, "netgate: %" PRIu64 " records could not be written to the log\n", a->lost_ever);
	if (a->truncated)
		fprintf(out,
			"netgate: the log was cut by another program while it was written; records may be missing\n");
}
