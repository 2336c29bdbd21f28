/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of an audit log, for the files that make it up: audit.c (what a
 * record is and how it gets into the file), records.c (the types of records), flood.c, summary.c and verbose.c.
 */
#ifndef PROXY_AUDIT_AUDIT_IMPL_H
#define PROXY_AUDIT_AUDIT_IMPL_H

#include <sys/utsname.h>

#include "base/json.h"
#include "proxy/audit/audit.h"
#include "proxy/audit/chain.h"
#include "proxy/audit/log_file.h"

struct flood;
struct tally;

/* Bytes of input shown of each string that has no bound of its own; docs/records.md states them. */
#define RECORD_JOB_MAX	   64
#define RECORD_RAW_MAX	   300
#define RECORD_METHOD_MAX  32
#define RECORD_PATH_MAX	   1024
#define RECORD_WORD_MAX	   64 /* ALPN, query type, protocol of a packet, kernel release */
#define RECORD_DETAIL_MAX  128
#define RECORD_COMMAND_MAX 2048 /* of all arguments together */
#define RECORD_ARGS_MAX	   64
#define RECORD_TO_MAX	   256
#define RECORD_NOTES_MAX   1024 /* of all notes together */

#define RECORD_MAX 12288 /* longest line with its line feed */
#define HELD_MAX   (2 * RECORD_MAX)

/* Lines that go to the file in one write. */
struct held {
	size_t len, n;
	uint8_t head[CHAIN_LEN]; /* of the chain before them */
	char lines[HELD_MAX];
};

/* What happened so far; with no gap in the log, each is also the count or sum over its records. */
struct audit_totals {
	uint64_t connections;	  /* close records: connections that had an allowing decision */
	uint64_t allowed, denied; /* decisions, DNS apart */
	uint64_t queries, queries_denied;
	uint64_t up, down; /* bytes of the connections */
	uint64_t drops;	   /* packets */
};

/* What befell the file, on record in `log` records. */
enum log_event { LOG_NOTHING, LOG_ROTATED, LOG_CONTINUES, LOG_TRUNCATED, LOG_EVENT_COUNT };

struct audit {
	struct log_file file;
	struct held held;
	struct event *
		turn_end; /* active when something is to be done or forgotten at the end of the loop's turn; NULL: no loop */
	TAILQ_HEAD(audit_waiters, audit_waiter) waiters; /* to be called then, in the order in which they came */
	bool looked;					 /* at the file, in this turn */
	enum log_event due;				 /* to be recorded before anything else */
	int verbose_fd, tell_fd;
	const char *job, *sandbox;
	const struct policy *policy;
	bool fixed; /* as in audit_config */
	const struct limits *limits;
	struct chain *chain;
	uint8_t head[CHAIN_LEN];
	uint64_t seq;		  /* of the last record that is in the file, or held */
	uint64_t lost;		  /* records that could not be written since */
	uint64_t lost_ever;	  /* records that could not be written at all */
	uint64_t truncated;	  /* how often somebody cut the file */
	uint64_t complained_us;	  /* when a person was told that it can't be written */
	uint64_t begun_us;	  /* when audit_start() was called */
	uint64_t verbose_skipped; /* lines that a stopped terminal did not take */
	struct audit_totals totals;
	struct tally *tally;
	struct flood *flood;
	struct utsname uts; /* read before the process is isolated */
	uid_t uid;
	enum resource_holder holder[RESOURCE_COUNT];
};

/* A record that is being built. */
struct record {
	struct json json;
	int error; /* what is due before it can't be written: nor can this */
	char mem[RECORD_MAX];
};

/* Starts a record: version, seq, time, job and type are in it. Writes what is due before it: a log record, a gap record. */
void record_begin(struct audit *a, struct record *r, const char *type);

/* Ends the record and writes it, after those that are held. Returns 0; or -errno, and it is counted as lost, as they are. */
int record_write(struct audit *a, struct record *r);

/*
 * Ends a record that nothing waits for: it is held for the next record_write(), until the end of the loop's turn at
 * the latest. Returns 0; or -errno when it is known already that it is lost.
 */
int record_hold(struct audit *a, struct record *r);

/* As record_hold(), for a record that `w` waits for: see audit_decision_later(). */
int record_hold_for(struct audit *a, struct record *r, struct audit_waiter *w);

/* The host that a decision is about: the one to dial, or for a denial the most specific one seen; NULL when none was. */
const struct name *decision_host(const struct audit_decision *d, enum name_from *from);

/* True when the limit that a denial names is the policy's: the gate's DNS has a bound of connections of its own. */
bool decision_is_limited(const struct audit_decision *d);

/*
 * Writes a decision record, or holds it for `w`, if that is not NULL; with `count` it stands for so many denials of a
 * kind. Returns 0 or -errno, as record_write().
 */
int record_decision(struct audit *a, const struct audit_decision *d, uint64_t count, struct audit_waiter *w);

/* The words of records. */
const char *door_word(enum door door);
const char *close_end_word(enum close_end end);

/* The --verbose line of each kind of record; nothing when verbose_fd is -1. */
void verbose_decision(struct audit *a, const struct audit_decision *d, uint64_t count);
void verbose_dial(struct audit *a, const struct name *host, const struct endpoint *peer, enum reason reason,
		  const char *detail);
void verbose_close(struct audit *a, const struct audit_close *c);
void verbose_drop(struct audit *a, const struct audit_drop *d);
void verbose_lease(struct audit *a, const struct addr *addr);
void verbose_interface(struct audit *a, const char *name);

/* What the summary remembers of each. */
void summary_decision(struct audit *a, const struct audit_decision *d);
void summary_dial(struct audit *a, uint64_t conn, const struct name *host, const struct endpoint *peer,
		  enum reason reason, const char *detail);
void summary_close(struct audit *a, const struct audit_close *c);
void summary_drop(struct audit *a, const struct audit_drop *d);

#endif
