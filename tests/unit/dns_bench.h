/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the gate's DNS share: a fixture with a policy and an audit log to look into, and messages. */
#ifndef TESTS_UNIT_DNS_BENCH_H
#define TESTS_UNIT_DNS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "proxy/dns/dns_reply.h"

#define BENCH_RECORDS_MAX 128

struct audit {
	unsigned n;
	char lines[BENCH_RECORDS_MAX][1400]; /* "conn host qtype verdict reason", "raw:" before a raw name */
	int error;			     /* what audit_decision() returns */
	bool quiet;			     /* keep nothing */
};

struct bench {
	struct event_base *base;
	struct audit audit;
	struct policy *policy;
	struct dns_reply_env env;
	struct dns_server *server;
	int udp4, udp6;
	uint16_t port4, port6;
};

struct bench_message {
	size_t len;
	uint8_t b[4200];
};

enum { PLAIN = 0, OPT = 1, VERSION1 = 2, CHAOS = 4 };

/* Where the client of the bench is, and whom it asks. */
extern const struct endpoint bench_src, bench_dst;

/* Allows ok.test, *.wild.test but no.wild.test, db.ok2.test:5432, deep.er.name.test. */
struct policy *bench_policy(bool audit);

/* For cmocka: *state is a struct bench with a server that listens on loopback. */
int bench_set_up(void **state);
int bench_tear_down(void **state);

/* Exactly one record, this one; forgets it. */
void bench_recorded(struct bench *f, const char *line);

/* Appends to a message. */
void bench_add(struct bench_message *m, const void *p, size_t n);

/* A query; `name` dotted, with no way to write a dot in a label; "" is the root. */
struct bench_message bench_query(const char *name, uint16_t type, int options);

/* Header of an answer: rcode and the numbers of answer and authority records. */
void bench_has_header(const struct bench_message *m, int rcode, int answers, int authorities);

#endif
