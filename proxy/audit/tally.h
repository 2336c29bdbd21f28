/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts for the summary: one entry for each thing that a person would call
 * the same (this host on this port, denied for this reason). Bounded: what
 * does not fit is counted without a name. Half of the table is for what was allowed, half for
 * what was denied, so that a sandbox that knocks at a thousand doors can't hide the one that opened.
 */
#ifndef PROXY_AUDIT_TALLY_H
#define PROXY_AUDIT_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rules/reason.h"

#define TALLY_MAX	1024
#define TALLY_WHAT_MAX	288 /* a name of 253 bytes, or an escaped one, with the NUL */
#define TALLY_PROTO_MAX 12
#define TALLY_NAMES_MAX 65536 /* different ones told apart among what has no entry of its own */
#define TALLY_BELOW_MAX 5     /* denied names below one domain that are shown one by one */

enum tally_kind {
	TALLY_CONNECTED,   /* connections that were allowed; up, down */
	TALLY_FAILED,	   /* connections that were allowed and could not be made */
	TALLY_LOOKED_UP,   /* DNS queries that were allowed */
	TALLY_DIAL,	   /* per host: why the last dial failed; never shown by itself */
	TALLY_WOULD,	   /* connections and requests that only audit mode let through */
	TALLY_WOULD_NAME,  /* DNS queries of that kind */
	TALLY_DENIED,	   /* connections and requests */
	TALLY_DENIED_NAME, /* DNS queries */
	TALLY_DROPPED,	   /* packets; down: bytes */
	TALLY_BELOW	   /* names below one domain, together; lookups apart */
};

struct tally_key {
	enum tally_kind kind;
	enum reason reason;
	uint16_t port;	   /* 0: none */
	const char *proto; /* of packets; else "" */
	const char *what;  /* host, escaped raw name, or address: safe to print */
};

struct tally_entry {
	enum tally_kind kind;
	enum reason reason;
	uint16_t port;
	uint64_t count, up, down;
	uint64_t lookups; /* TALLY_BELOW: DNS queries; `count` is the rest */
	uint64_t names;	  /* TALLY_BELOW: different names */
	size_t below;	  /* of a denied name: 1 + the index of the TALLY_BELOW entry that counts it, too; or 0 */
	enum reason why;  /* TALLY_DIAL: the failure */
	uint64_t conn;	  /* TALLY_DIAL: whose */
	char *hint;	  /* what would allow it; or NULL */
	char *detail;	  /* or NULL */
	char proto[TALLY_PROTO_MAX];
	char what[TALLY_WHAT_MAX];
};

struct tally;

/* NULL when out of memory. */
struct tally *tally_new(void);
void tally_free(struct tally *t);

/*
 * The entry with this key, made when there is none (then with a count of 0).
 * NULL when its half of the table is full or memory is out: then it counts as one
 * that did not fit, unless `quiet`. Valid until the next call.
 */
struct tally_entry *tally_get(struct tally *t, const struct tally_key *key, bool quiet);

/*
 * The entry of all names that were denied for this reason below the registrable domain
 * (by the public suffix list) of `name`, which is canonical; `names` counts it. NULL when `name` is not below
 * one, or there is no room. Valid until the next call.
 */
struct tally_entry *tally_below(struct tally *t, enum reason reason, const char *name);

/* The entry with this key, or NULL. */
struct tally_entry *tally_find(const struct tally *t, const struct tally_key *key);

/* Replaces one of an entry's texts by a copy of `text` (NULL or "": none). */
void tally_text(char **slot, const char *text);

/* Entries in the order of their first appearance. */
size_t tally_size(const struct tally *t);
const struct tally_entry *tally_at(const struct tally *t, size_t i);

/* True when the names that entry `below` - 1 (tally_entry.below) counts are so many that they share a row. */
bool tally_is_together(const struct tally *t, size_t below);

/* Which half of the table a kind is in. */
bool tally_is_denied(enum tally_kind kind);

/* The position of an entry. */
size_t tally_index(const struct tally *t, const struct tally_entry *e);

/* How many different entries did not fit: of what was allowed (`denied` false), of what was not. */
uint64_t tally_more(const struct tally *t, bool denied);

/* True when there were more different names than can be told apart: the counts of names are lower bounds. */
bool tally_is_cut(const struct tally *t);

#endif
