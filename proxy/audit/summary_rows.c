/* SPDX-License-Identifier: Apache-2.0 */
/* The summary for a person: rows of text, in columns. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proxy/audit/audit_impl.h"
#include "proxy/audit/show.h"
#include "proxy/audit/summary_merge.h"
#include "proxy/audit/tally.h"

#define SUMMARY_ROWS_MAX 30 /* rows of what was allowed, and again of what was denied */
#define WHAT_WIDTH_MAX	 40 /* wider ones stick out of their column */

/* The text of one row; the columns that are aligned are apart. */
struct row {
	const char *verdict;
	char what[TALLY_WHAT_MAX + 48]; /* host:port/proto, or "N names below domain" */
	char counts[80];
	char why[SHOW_CAP(RECORD_DETAIL_MAX) + 32];
	const char *hint;
};

/* What a drop without a destination is about. */
static const char *without_destination(enum reason reason)
{
	switch (reason) {
	case REASON_HALF_OPEN:
		return "(half-open connections)";
	case REASON_FRAME:
		return "(frames other than IP)";
	case REASON_DNS_OVERFLOW:
		return "(unanswered DNS queries)";
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
		return "packet";
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
	if (e->reason == REASON_CLIENT_GONE)
		return "gave up"; /* the client did, before anything was decided, or connected */
	if (e->kind == TALLY_FAILED)
		return "failed";
	return e->kind == TALLY_WOULD || e->kind == TALLY_WOULD_NAME ? "would deny" : "denied";
}

static void row_counts(struct row *row, const struct tally *t, const struct tally_entry *e)
{
	const struct tally_entry *made = summary_connections(t, e);

	row->counts[0] = '\0';
	if (made)
		put_count(row, made->count, "connection");
	else
		put_count(row, e->count, count_noun(e));
	if (e->kind == TALLY_WOULD || e->kind == TALLY_DENIED)
		put_count(row, summary_lookups(t, e), "lookup");
	put_count(row, e->lookups, "lookup");
}

static void row_why(struct row *row, const struct tally *t, const struct tally_entry *e)
{
	const struct tally_entry *made = e->kind == TALLY_CONNECTED ? e : summary_connections(t, e);
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

		if (tally_is_denied(e->kind) != denied || summary_is_hidden(t, e))
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
