/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --verbose: one line for each attempt, dial and end of a connection, while it
 * happens. Lines never wait: a terminal that is stopped (^S) must not stop the
 * gate, so that a line it would not take is left out, and their number shown later.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proxy/audit/audit_impl.h"
#include "proxy/audit/show.h"
#include "rules/limit_met.h"
#include "rules/policy.h"

#define LINE_MAX_BYTES 3072 /* longer than any line; a pipe that is writable takes as much at once (PIPE_BUF) */
#define PATH_SHOWN     80
#define RAW_SHOWN      60
#define LABEL_SHOWN    255
#define HEAD	       "netgate: " /* of every line */

struct line {
	char text[LINE_MAX_BYTES];
	size_t len;
};

/* An empty line; false when nobody wants one. Most jobs don't, so that its text is not cleared for nothing. */
static bool begin(const struct audit *a, struct line *l)
{
	l->len = 0;
	return a->verbose_fd >= 0;
}

__attribute__((format(printf, 2, 3))) static void put(struct line *l, const char *fmt, ...)
{
	size_t room = sizeof(l->text) - l->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(l->text + l->len, room, fmt, ap);
	va_end(ap);
	if (n > 0)
		l->len += (size_t)n < room ? (size_t)n : room - 1;
}

/* Text of the policy or the system, which may still hold bytes that are not for a terminal. */
static void put_escaped(struct line *l, const char *before, const void *p, size_t len, size_t max)
{
	char buf[SHOW_CAP(LABEL_SHOWN)];

	put(l, "%s%s", before, show_bytes(buf, p, len, max));
}

static bool is_writable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLOUT);
}

/* The line of a sandbox that is one of several begins with its name. */
static void print(struct audit *a, const struct line *l)
{
	struct line out = { .len = 0 };
	ssize_t n;

	if (!is_writable(a->verbose_fd)) {
		a->verbose_skipped++;
		return;
	}
	if (a->verbose_skipped)
		put(&out, "netgate: (%" PRIu64 " lines not shown)\n", a->verbose_skipped);
	if (a->sandbox)
		put(&out, HEAD "%s: %.*s\n", a->sandbox, LINE_MAX_BYTES, l->text + strlen(HEAD));
	else
		put(&out, "%.*s\n", LINE_MAX_BYTES, l->text);
	n = write(a->verbose_fd, out.text, out.len);
	a->verbose_skipped = n < 0 ? a->verbose_skipped + 1 : 0;
}

static void put_target(struct line *l, const struct audit_decision *d)
{
	char dst[ENDPOINT_STRLEN], raw[SHOW_CAP(RAW_SHOWN)];
	enum name_from from = NAME_FROM_DNS;
	const struct name *host = decision_host(d, &from);

	if (host && d->request->proto == PROTO_DNS)
		put(l, " %s", host->s);
	else if (host)
		put(l, " %s:%u (%s)", host->s, d->request->port, name_from_word(from));
	else if (d->raw_name && d->dst.addr.family == ADDR_NONE)
		put(l, " \"%s\":%u", show_bytes(raw, d->raw_name, d->raw_name_len, RAW_SHOWN), d->dst.port);
	else if (d->raw_name)
		put(l, " \"%s\" at %s", show_bytes(raw, d->raw_name, d->raw_name_len, RAW_SHOWN),
		    endpoint_format(&d->dst, dst));
	else if (d->dst.addr.family != ADDR_NONE)
		put(l, " %s", endpoint_format(&d->dst, dst));
}

/* The limit that was met and whose it is; the rule that decided; or, which is not the same and not what would allow it, the one that came nearest. */
static void put_rule(struct line *l, const struct policy *policy, const struct audit_decision *d)
{
	const struct verdict *v = d->verdict;
	bool decided = v->reason == REASON_RULE || v->reason == REASON_DENIED_BY_RULE;
	char label[POLICY_RULE_LABEL_MAX], limit[LIMIT_MET_MAX];

	if (decision_is_limited(d) && *limit_met_text(policy, v, NULL, limit)) {
		put_escaped(l, " (", limit, strlen(limit), LABEL_SHOWN);
		put(l, ")");
		return;
	}
	if (!v->rule)
		return;
	policy_rule_label(policy, v->rule, label);
	put_escaped(l, decided ? " by " : " (nearest rule: ", label, strlen(label), LABEL_SHOWN);
	if (!decided)
		put(l, ")");
}

void verbose_decision(struct audit *a, const struct audit_decision *d, uint64_t count)
{
	const struct verdict *v = d->verdict;
	struct line l;

	if (!begin(a, &l))
		return;
	put(&l, HEAD "%s %s", v->allow ? "allow" : "deny ", proto_word(d->request->proto));
	if (d->method)
		put_escaped(&l, " ", d->method, d->method_len, RECORD_METHOD_MAX);
	put_target(&l, d);
	if (d->qtype)
		put_escaped(&l, " ", d->qtype, strlen(d->qtype), RECORD_WORD_MAX);
	if (d->path)
		put_escaped(&l, " ", d->path, d->path_len, PATH_SHOWN);
	if (v->reason != REASON_RULE)
		put(&l, " %s", reason_word(v->reason));
	if (v->would != REASON_NONE)
		put(&l, " (would be %s)", reason_word(v->would));
	put_rule(&l, a->policy, d);
	if (count)
		put(&l, ", %" PRIu64 " more", count);
	print(a, &l);
}

void verbose_dial(struct audit *a, const struct name *host, const struct endpoint *peer, enum reason reason,
		  const char *detail)
{
	struct line l;
	char addr[ENDPOINT_STRLEN];

	if (!begin(a, &l))
		return;
	put(&l, HEAD "dial ");
	if (host)
		put(&l, " %s", host->s);
	if (peer->addr.family != ADDR_NONE)
		put(&l, " %s", endpoint_format(peer, addr));
	put(&l, " %s", reason_word(reason));
	if (detail && *detail) {
		put_escaped(&l, " (", detail, strlen(detail), RECORD_DETAIL_MAX);
		put(&l, ")");
	}
	print(a, &l);
}

void verbose_close(struct audit *a, const struct audit_close *c)
{
	char dst[ENDPOINT_STRLEN], up[SHOW_SIZE_STRLEN], down[SHOW_SIZE_STRLEN];
	struct line l;

	if (!begin(a, &l))
		return;
	if (c->host)
		put(&l, HEAD "close %s:%u", c->host->s, c->dst.port);
	else
		put(&l, HEAD "close %s", endpoint_format(&c->dst, dst));
	put(&l, " %s up, %s down, %" PRIu64 " ms, %s", show_size(up, c->up), show_size(down, c->down), c->ms,
	    close_end_word(c->end));
	print(a, &l);
}

void verbose_drop(struct audit *a, const struct audit_drop *d)
{
	struct endpoint dst = { .addr = d->dst, .port = d->port };
	struct line l;
	char text[ENDPOINT_STRLEN];

	if (!begin(a, &l))
		return;
	put(&l, HEAD "drop ");
	if (d->proto)
		put(&l, " %s", d->proto);
	if (d->quic_name)
		put(&l, " %s:%u (quic) at", d->quic_name->s, d->port);
	if (dst.port)
		put(&l, " %s", endpoint_format(&dst, text));
	else if (dst.addr.family != ADDR_NONE)
		put(&l, " %s", addr_format(&dst.addr, text));
	if (!d->proto || strcmp(d->proto, reason_word(d->reason)) != 0)
		put(&l, " %s", reason_word(d->reason));
	put(&l, ", %" PRIu64 " packet%s", d->count, d->count == 1 ? "" : "s");
	print(a, &l);
}

void verbose_lease(struct audit *a, const struct addr *addr)
{
	struct line l;
	char text[ADDR_STRLEN];

	if (!begin(a, &l))
		return;
	put(&l, "netgate: lease %s", addr_format(addr, text));
	print(a, &l);
}

void verbose_interface(struct audit *a, const char *name)
{
	struct line l;

	if (!begin(a, &l))
		return;
	put_escaped(&l, HEAD "interface ", name, strlen(name), LABEL_SHOWN);
	print(a, &l);
}
