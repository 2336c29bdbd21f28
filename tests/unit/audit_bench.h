/* SPDX-License-Identifier: Apache-2.0 */
/* An audit log in memory for tests: its lines, with the times masked, and short ways to make records. */
#ifndef TESTS_UNIT_AUDIT_BENCH_H
#define TESTS_UNIT_AUDIT_BENCH_H

#include "proxy/audit/audit.h"
#include "tests/unit/rules_stub.h"

struct audit_bench {
	struct audit *audit;
	struct policy policy;
	struct limits limits;
	int fd;		/* a memfd, O_APPEND */
	int verbose[2]; /* a pipe, or -1 */
};

/* Opens a log of job `job` over a new memory file. */
void audit_bench_open(struct audit_bench *b, const char *job, bool verbose);

/* The same for an attached sandbox of this name. */
void audit_bench_open_sandbox(struct audit_bench *b, const char *job, const char *sandbox, bool verbose);

/* The same of job "j" with a loop, so that records may be held. */
void audit_bench_open_loop(struct audit_bench *b, struct event_base *base);
void audit_bench_close(struct audit_bench *b);

/* The bytes of the file of a descriptor, NUL-terminated; each call reuses the memory. Times read "T". */
const char *audit_bench_text(int fd);

/* The same with the times as they are; *len gets the length. */
const char *audit_bench_raw(int fd, size_t *len);

/* The last line, parsed; the caller's to free. Fails the test when it is not a whole line of JSON without a key twice. */
struct json_t *audit_bench_last(const struct audit_bench *b);

/* Fails the test unless audit_head() is the chain's head over the lines of the file. */
void audit_bench_assert_chain(const struct audit_bench *b);

/* What came out of the verbose pipe so far. */
const char *audit_bench_verbose(struct audit_bench *b);

/* The summary; each call reuses the memory. */
const char *audit_bench_summary(const struct audit_bench *b);

/* A canonical name; up to 32 of them live until the test ends. */
const struct name *audit_bench_name(const char *text);

/* "192.0.2.1:443" */
struct endpoint audit_bench_endpoint(const char *text);

/* A decision about `host` (NULL: none) seen in `from`, on `port`. Returns what audit_decision() does. */
int audit_bench_decide(struct audit_bench *b, uint64_t conn, enum proto proto, const char *host, enum name_from from,
		       const char *dst, enum reason reason);

/* The same about a request for a.test, by audit_decision_later(). */
int audit_bench_decide_later(struct audit_bench *b, uint64_t conn, enum reason reason, struct audit_waiter *w);

#endif
