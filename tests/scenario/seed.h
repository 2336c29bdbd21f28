/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scenario in bytes, as tests/fuzz/fuzz_conn.c reads it: two bytes for the policy and the way of delivery, then
 * operations. Of a scenario in text the seed keeps what fits: what is expected is left out, and so are names that
 * the fuzz target doesn't have.
 */
#ifndef TESTS_SCENARIO_SEED_H
#define TESTS_SCENARIO_SEED_H

#include <stddef.h>
#include <stdint.h>

struct bytes;

/* The bytes behind each. With SEED_AT_ONCE the next operation follows before netgate has a turn. */
enum seed_op {
	SEED_CONNECT,	    /* an index of seed_places */
	SEED_CLIENT_SEND,   /* which client; length, two bytes; the bytes */
	SEED_UPSTREAM_SEND, /* likewise */
	SEED_CLIENT_DO,	    /* which client; enum seed_verb */
	SEED_UPSTREAM_DO,   /* likewise */
	SEED_AFTER,	    /* an index of seed_times */
	SEED_DNS,	    /* an index of seed_names; enum seed_answer */
	SEED_ROUTE,	    /* an index of seed_addrs; enum seed_route */
	SEED_LOG,	    /* 1: fails */
	SEED_OP_COUNT
};

#define SEED_AT_ONCE 0x80

enum seed_verb {
	SEED_SHUTS,
	SEED_CLOSES,
	SEED_RESETS,
	SEED_TAKES_NONE,
	SEED_TAKES_SOME,
	SEED_TAKES_ALL,
	SEED_VERB_COUNT
};
enum seed_answer { SEED_FAILS, SEED_SILENT, SEED_PRIVATE, SEED_LATE, SEED_SEVERAL, SEED_ANSWER_COUNT };
enum seed_route { SEED_CONNECTS_LATE, SEED_REFUSES, SEED_UNREACHABLE, SEED_NO_ANSWER, SEED_ROUTE_COUNT };

/* The second byte of a seed. */
#define SEED_NARROW   1
#define SEED_TICK     2
#define SEED_JOB_ENDS 4 /* at the end; else everybody goes idle */

/* Each ends in NULL. */
extern const char *const seed_policies[]; /* entries, as `policy` lines of a scenario, joined by ";" */
extern const char *const seed_places[];
extern const char *const seed_names[];
extern const char *const seed_addrs[];
extern const uint64_t seed_times[]; /* microseconds; ends in 0 */

/* The length of such a list. */
size_t seed_count(const char *const *list);

/* Appends an operation with one or two small operands, the second one left out when it is negative. */
void seed_put(struct bytes *seed, int op, int a, int b);

/* Appends SEED_CLIENT_SEND or SEED_UPSTREAM_SEND. */
void seed_send(struct bytes *seed, int op, int who, const void *p, size_t n);

/* The index of `text` in a list, 0 when it is not there. */
int seed_index(const char *const *list, const char *text);

/* The index of the time that comes nearest. */
int seed_time(uint64_t us);

#endif
