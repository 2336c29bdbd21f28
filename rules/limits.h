/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much a job may do, beside what it may reach: part of its policy. Several
 * that say something about the same limit add up to the smallest of them.
 */
#ifndef RULES_LIMITS_H
#define RULES_LIMITS_H

#include <stddef.h>
#include <stdint.h>

struct err;

#define LIMITS_TEXT_MAX 48  /* a value as text, with the NUL */
#define LIMITS_ALL_MAX	768 /* all of them with their keys, likewise */

enum limit {
	LIMIT_UPLOAD,	   /* bytes sent upstream, over all connections */
	LIMIT_CONNECTIONS, /* open at once */
	LIMIT_RATE,	   /* new connections a second */
	LIMIT_NAMES,	   /* distinct names looked up or connected to */
	LIMIT_IDLE,	   /* microseconds in which nothing moves on a connection */
	LIMIT_DURATION,	   /* microseconds that the command may run */
	LIMIT_MEMORY,	   /* bytes that all processes of the command may hold together */
	LIMIT_PIDS,	   /* processes and threads at once */
	LIMIT_CPUS,	   /* thousandths of a processor's time */
	LIMIT_COUNT
};

#define LIMIT_RULE_COUNT (LIMIT_IDLE + 1) /* a rule may have the first ones, for what it decides, beside the job's */

/* All zero: no limit at all. */
struct limits {
	uint64_t max[LIMIT_COUNT]; /* 0: none */
};

/* The key of a limit in a policy: "upload", "connections", … */
const char *limits_key(enum limit which);

/*
 * A value as a person writes it: "20MiB" or "20MB", "256", "50/s", "1h30m", "0.5".
 * Returns 0; or -1 with a message that quotes it and says what to write instead.
 */
int limits_parse(enum limit which, const char *text, size_t len, uint64_t *value, struct err *err);

/* The shortest text that limits_parse() reads as this value; returns `buf`. */
const char *limits_format(enum limit which, uint64_t value, char buf[static LIMITS_TEXT_MAX]);

/* All that are set, "upload: 1MiB, rate: 5/s"; returns `buf`, which holds every one. */
const char *limits_text(const struct limits *limits, char buf[static LIMITS_ALL_MAX]);

/* Takes another value into account: the smaller one stays. */
void limits_add(struct limits *limits, enum limit which, uint64_t value);

/* "90", "90s", "5m", "1h30m", "2d" as microseconds, at most LIMITS_DURATION_MAX_S. Returns 0 or -1. */
int limits_parse_duration(const char *text, size_t len, uint64_t *us);

#define LIMITS_DURATION_MAX_S (3650ull * 86400)
#define LIMITS_COUNT_MAX      1000000000ull /* connections, names, connections a second */
#define LIMITS_SIZE_MAX	      (1ull << 60)  /* bytes */
#define LIMITS_MEMORY_MIN     (4ull << 20)  /* less does not even suffice to start a command */
#define LIMITS_CPUS_MIN	      10	    /* thousandths: what the kernel can share out (cpu.max) */
#define LIMITS_CPUS_MAX	      1000000000ull /* thousandths */

#endif
