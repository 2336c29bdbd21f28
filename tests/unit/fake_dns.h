/* SPDX-License-Identifier: Apache-2.0 */
/* A name server on loopback for tests, inside the test's own event loop, that can misbehave in many ways. */
#ifndef TESTS_UNIT_FAKE_DNS_H
#define TESTS_UNIT_FAKE_DNS_H

#include <stdint.h>

#include "base/addr.h"

struct event_base;
struct fake_dns;

enum fake_how {
	FAKE_ANSWER,	     /* the addresses of the entry */
	FAKE_RCODE,	     /* an empty answer with `value` as rcode */
	FAKE_DROP,	     /* never answers */
	FAKE_DROP_AAAA,	     /* answers A only */
	FAKE_SLOW_AAAA,	     /* AAAA after `value` ms */
	FAKE_TRUNCATED,	     /* TC over UDP, `value` A records 9.0.x.x over TCP */
	FAKE_TCP_CLOSES,     /* TC over UDP, end of stream over TCP */
	FAKE_TCP_DRIP,	     /* TC over UDP, half a message over TCP */
	FAKE_WRONG_ID,	     /* a wrong id, then the right answer */
	FAKE_WRONG_QUESTION, /* an answer to another question, then the right one */
	FAKE_TWICE,	     /* the answer three times */
	FAKE_EMPTY_FIRST,    /* an empty datagram, then the answer */
	FAKE_GARBAGE,	     /* a header that promises records, and noise */
	FAKE_OVERSIZED,	     /* a datagram of 8 KB */
	FAKE_CHAIN,	     /* `value` CNAMEs over _x.N.chain.test, then the addresses */
	FAKE_LOOP	     /* 100 CNAMEs in a circle */
};

struct fake_entry {
	const char *name;
	enum fake_how how;
	unsigned value;
	uint16_t ttl;		    /* seconds, of the addresses; an alias has 0 */
	const char *a[8], *aaaa[8]; /* NULL-terminated where fewer */
};

/* `entries` ends with a NULL name and is borrowed; other names get NXDOMAIN. Aborts when it can't be had. */
struct fake_dns *fake_dns_new(struct event_base *base, const struct fake_entry *entries);
void fake_dns_free(struct fake_dns *f);

/* Where it listens, UDP and TCP. */
struct endpoint fake_dns_endpoint(const struct fake_dns *f);

/* Questions over UDP so far, for all names. */
unsigned fake_dns_asked(const struct fake_dns *f);

#endif
