/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of records, one function each: the JSON, then the totals, the
 * summary and the --verbose line. docs/records.md describes each member.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/version.h"
#include "proxy/audit/audit_impl.h"
#include "proxy/audit/flood.h"
#include "rules/limit_met.h"
#include "rules/policy.h"

const char *door_word(enum door door)
{
	static const char *const words[] = {
		[DOOR_TRANSPARENT] = "transparent", [DOOR_DNS] = "dns",	      [DOOR_HTTP] = "http",
		[DOOR_CONNECT] = "connect",	    [DOOR_SOCKS5] = "socks5",
	};

	static_assert(sizeof(words) / sizeof(*words) == DOOR_COUNT, "a door without a word");

	return words[door];
}

const char *close_end_word(enum close_end end)
{
	static const char *const words[] = {
#define X(id, word) [CLOSE_##id] = word,
		CLOSE_ENDS
#undef X
	};

	static_assert(sizeof(words) / sizeof(words[0]) == CLOSE_END_COUNT, "a word for each end");
	return words[end];
}

/* A string member of at most RECORD_WORD_MAX bytes; nothing for NULL and "". */
static void put_word(struct json *j, const char *key, const char *word)
{
	if (word && *word)
		json_bytes(j, key, word, strlen(word), RECORD_WORD_MAX);
}

static void put_detail(struct json *j, const char *detail)
{
	if (detail && *detail)
		json_bytes(j, "detail", detail, strlen(detail), RECORD_DETAIL_MAX);
}

void audit_holders(struct audit *a, const uint32_t holder[static RESOURCE_COUNT])
{
	for (int i = 0; i < RESOURCE_COUNT; i++)
		a->holder[i] = holder[i] < HOLDER_COUNT ? (enum resource_holder)holder[i] : HOLDER_NONE;
}

static void put_holders(struct json *j, const enum resource_holder holder[static RESOURCE_COUNT])
{
	static const char *const keys[RESOURCE_COUNT] = { "memory_by", "pids_by", "cpus_by" };
	static const char *const words[HOLDER_COUNT] = { NULL, "cgroup2", "cgroup1", "rlimit" };

	for (int i = 0; i < RESOURCE_COUNT; i++)
		json_word(j, keys[i], words[holder[i]]);
}

/* Those that there are, as a policy has them. */
static void put_limits(struct json *j, const struct limits *limits)
{
	char text[LIMITS_TEXT_MAX];
	bool any = false;

	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (!limits->max[i])
			continue;
		if (!any)
			json_open(j, "limits");
		any = true;
		json_text(j, limits_key((enum limit)i), limits_format((enum limit)i, limits->max[i], text));
	}
	if (any)
		json_close(j);
}

/* A start record with the members that each has. */
static void begin_start(struct audit *a, struct record *r)
{
	char digest[POLICY_DIGEST_STRLEN];

	a->begun_us = clock_mono_us();
	record_begin(a, r, "start");
	json_text(&r->json, "netgate", NETGATE_VERSION);
	put_word(&r->json, "kernel", a->uts.release);
	json_u64(&r->json, "pid", (uint64_t)getpid());
	json_u64(&r->json, "uid", a->uid);
	json_word(&r->json, "mode", policy_is_audit(a->policy) ? "audit" : "enforce");
	json_word(&r->json, "policy", policy_digest(a->policy, digest));
	json_u64(&r->json, "rules", policy_size(a->policy));
	put_limits(&r->json, a->limits);
}

int audit_start(struct audit *a, char *const *command)
{
	struct record r;

	begin_start(a, &r);
	put_holders(&r.json, a->holder);
	json_texts(&r.json, "command", command, RECORD_ARGS_MAX, RECORD_COMMAND_MAX);
	return record_write(a, &r);
}

int audit_start_attached(struct audit *a, const struct audit_attached *s)
{
	struct record r;

	begin_start(a, &r);
	json_bytes(&r.json, "attached", s->to, strlen(s->to), RECORD_TO_MAX);
	if (s->netns)
		json_u64(&r.json, "netns", s->netns);
	if (s->pid)
		json_u64(&r.json, "host_pid", (uint64_t)s->pid);
	if (s->accepted[0])
		json_texts(&r.json, "accepted", s->accepted, RECORD_ARGS_MAX, RECORD_NOTES_MAX);
	if (s->notes[0])
		json_texts(&r.json, "notes", s->notes, RECORD_ARGS_MAX, RECORD_NOTES_MAX);
	return record_write(a, &r);
}

const struct name *decision_host(const struct audit_decision *d, enum name_from *from)
{
	if (d->verdict->host) {
		*from = d->verdict->name_from;
		return d->verdict->host;
	}
	for (int i = 0; i < NAME_FROM_COUNT; i++)
		if (d->request->names[i]) {
			*from = (enum name_from)i;
			return d->request->names[i];
		}
	return NULL;
}

/* `host`, `port`, `name_from`, and the names seen elsewhere where they differ. */
static void put_names(struct json *j, const struct audit_decision *d)
{
	static const char *const keys[NAME_FROM_COUNT] = {
		[NAME_FROM_SNI] = "sni",
		[NAME_FROM_HOST] = "http_host",
		[NAME_FROM_CONNECT] = "connect_host",
		[NAME_FROM_SOCKS5] = "socks5_host",
		[NAME_FROM_DNS] = "dns_name",
	};
	enum name_from from = NAME_FROM_DNS;
	const struct name *host = decision_host(d, &from);

	if (host)
		json_text(j, "host", host->s);
	if (d->request->port)
		json_u64(j, "port", d->request->port);
	if (!host)
		return;
	json_word(j, "name_from", name_from_word(from));
	for (int i = 0; i < NAME_FROM_COUNT; i++) {
		const struct name *name = d->request->names[i];

		if (name && !name_equal(name, host))
			json_text(j, keys[i], name->s);
	}
}

/* What was seen beside the name. */
static void put_seen(struct json *j, const struct audit_decision *d)
{
	if (d->raw_name)
		json_bytes(j, "raw_name", d->raw_name, d->raw_name_len, RECORD_RAW_MAX);
	put_word(j, "qtype", d->qtype);
	put_word(j, "alpn", d->alpn);
	if (d->ech)
		json_bool(j, "ech", true);
	if (d->method)
		json_bytes(j, "method", d->method, d->method_len, RECORD_METHOD_MAX);
	if (d->path)
		json_bytes(j, "path", d->path, d->path_len, RECORD_PATH_MAX);
}

bool decision_is_limited(const struct audit_decision *d)
{
	return d->door != DOOR_DNS || d->verdict->reason != REASON_LIMIT_CONNECTIONS;
}

static void put_verdict(struct json *j, const struct policy *policy, const struct audit_decision *d)
{
	const struct verdict *verdict = d->verdict;
	char label[POLICY_RULE_LABEL_MAX], limit[LIMITS_TEXT_MAX];

	json_word(j, "verdict", verdict->allow ? "allow" : "deny");
	json_word(j, "reason", reason_word(verdict->reason));
	if (verdict->would != REASON_NONE)
		json_word(j, "would", reason_word(verdict->would));
	if (verdict->rule)
		json_text(j, "rule", policy_rule_label(policy, verdict->rule, label));
	if (decision_is_limited(d))
		put_word(j, "limit", limit_met(policy, verdict, limit));
}

static void count_decision(struct audit_totals *t, const struct audit_decision *d)
{
	if (d->request->proto == PROTO_DNS) {
		t->queries++;
		t->queries_denied += !d->verdict->allow;
	} else {
		t->allowed += d->verdict->allow;
		t->denied += !d->verdict->allow;
	}
}

int record_decision(struct audit *a, const struct audit_decision *d, uint64_t count, struct audit_waiter *w)
{
	struct record r;
	int ret;

	record_begin(a, &r, "decision");
	if (d->conn)
		json_u64(&r.json, "conn", d->conn);
	json_word(&r.json, "door", door_word(d->door));
	json_word(&r.json, "proto", proto_word(d->request->proto));
	json_endpoint(&r.json, "src", &d->src);
	json_endpoint(&r.json, "dst", &d->dst);
	put_names(&r.json, d);
	put_seen(&r.json, d);
	put_verdict(&r.json, a->policy, d);
	if (count)
		json_u64(&r.json, "count", count);
	ret = w ? record_hold_for(a, &r, w) : record_write(a, &r);
	/* An allow that is not on record will not be one; a denial is one all the same. */
	if (!ret || !d->verdict->allow)
		verbose_decision(a, d, count);
	return ret;
}

bool audit_only_counts(struct audit *a, const struct audit_decision *d)
{
	if (flood_take(a->flood, d))
		return false;
	count_decision(&a->totals, d);
	summary_decision(a, d);
	return true;
}

static int decision(struct audit *a, const struct audit_decision *d, struct audit_waiter *w)
{
	int ret;

	/* While the log can't be written, it can't be said that this one will be in it: then nothing that is allowed is only counted. */
	if ((!d->verdict->allow || (d->door == DOOR_DNS && !a->lost)) && !d->own && audit_only_counts(a, d))
		return a->lost ? -EIO : 0;
	ret = record_decision(a, d, 0, w);
	if (ret && d->verdict->allow)
		return ret;
	count_decision(&a->totals, d);
	summary_decision(a, d);
	return ret;
}

int audit_decision(struct audit *a, const struct audit_decision *d)
{
	return decision(a, d, NULL);
}

int audit_decision_later(struct audit *a, const struct audit_decision *d, struct audit_waiter *w)
{
	w->waits = false;
	/* A denial waits for nothing, and the line for a person says what is so. */
	return decision(a, d, d->verdict->allow && a->verbose_fd < 0 ? w : NULL);
}

int audit_dial(struct audit *a, uint64_t conn, const struct name *host, const struct endpoint *peer, enum reason reason,
	       const char *detail)
{
	struct record r;
	int ret;

	record_begin(a, &r, "dial");
	json_u64(&r.json, "conn", conn);
	if (host)
		json_text(&r.json, "host", host->s);
	json_endpoint(&r.json, "addr", peer);
	json_word(&r.json, "outcome", reason_word(reason));
	put_detail(&r.json, detail);
	ret = record_write(a, &r);
	summary_dial(a, conn, host, peer, reason, detail);
	verbose_dial(a, host, peer, reason, detail);
	return ret;
}

int audit_close(struct audit *a, const struct audit_close *c)
{
	struct record r;
	int ret;

	record_begin(a, &r, "close");
	json_u64(&r.json, "conn", c->conn);
	if (c->host)
		json_text(&r.json, "host", c->host->s);
	json_endpoint(&r.json, "dst", &c->dst);
	json_u64(&r.json, "up", c->up);
	json_u64(&r.json, "down", c->down);
	json_u64(&r.json, "ms", c->ms);
	json_word(&r.json, "end", close_end_word(c->end));
	ret = record_hold(a, &r);
	a->totals.connections++;
	a->totals.up += c->up;
	a->totals.down += c->down;
	summary_close(a, c);
	verbose_close(a, c);
	return ret;
}

int audit_drop(struct audit *a, const struct audit_drop *d)
{
	struct record r;
	int ret;

	record_begin(a, &r, "drop");
	put_word(&r.json, "proto", d->proto);
	json_addr(&r.json, "dst", &d->dst);
	if (d->port)
		json_u64(&r.json, "port", d->port);
	if (d->quic_name)
		json_text(&r.json, "quic_name", d->quic_name->s);
	json_word(&r.json, "reason", reason_word(d->reason));
	json_u64(&r.json, "count", d->count);
	json_u64(&r.json, "bytes", d->bytes);
	ret = record_write(a, &r);
	/* The caller keeps a count that could not be written, and comes back with it. */
	if (ret)
		return ret;
	a->totals.drops += d->count;
	summary_drop(a, d);
	verbose_drop(a, d);
	return 0;
}

int audit_lease(struct audit *a, const struct addr *addr)
{
	struct record r;
	int ret;

	record_begin(a, &r, "lease");
	json_addr(&r.json, "addr", addr);
	ret = record_write(a, &r);
	if (!ret)
		verbose_lease(a, addr);
	return ret;
}

int audit_interface(struct audit *a, const char *name)
{
	struct record r;
	int ret;

	record_begin(a, &r, "interface");
	json_text(&r.json, "name", name);
	ret = record_write(a, &r);
	if (!ret)
		verbose_interface(a, name);
	return ret;
}

int audit_end(struct audit *a, const struct audit_end *e)
{
	const struct audit_totals *t = &a->totals;
	char head[CHAIN_HEX];
	struct record r;

	flood_flush(a->flood, true);
	record_begin(a, &r, "end");
	if (e->wait_status != -1 && WIFEXITED(e->wait_status))
		json_u64(&r.json, "exit", (uint64_t)WEXITSTATUS(e->wait_status));
	if (e->wait_status != -1 && WIFSIGNALED(e->wait_status))
		json_u64(&r.json, "signal", (uint64_t)WTERMSIG(e->wait_status));
	if (e->ended)
		json_text(&r.json, "ended", e->ended);
	json_u64(&r.json, "ms", (clock_mono_us() - a->begun_us) / 1000);
	if (e->hits.oom_kills)
		json_u64(&r.json, "oom_kills", e->hits.oom_kills);
	if (e->hits.forks_refused)
		json_u64(&r.json, "forks_refused", e->hits.forks_refused);
	json_u64(&r.json, "connections", t->connections);
	json_u64(&r.json, "allowed", t->allowed);
	json_u64(&r.json, "denied", t->denied);
	json_u64(&r.json, "queries", t->queries);
	json_u64(&r.json, "queries_denied", t->queries_denied);
	json_u64(&r.json, "up", t->up);
	json_u64(&r.json, "down", t->down);
	json_u64(&r.json, "drops", t->drops);
	if (e->counted)
		json_u64(&r.json, "syns", e->syns);
	json_u64(&r.json, "accepts", e->accepts);
	json_u64(&r.json, "lost", a->lost_ever);
	chain_hex(a->head, head);
	json_word(&r.json, "head", head);
	return record_write(a, &r);
}
