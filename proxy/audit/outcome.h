/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The summary as data: rows of fixed size, which the proxy writes to a pipe and netgate's own process reads when the proxy
 * is gone. The reader believes nothing: it checks each row (outcome_ok()).
 */
#ifndef PROXY_AUDIT_OUTCOME_H
#define PROXY_AUDIT_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "proxy/audit/tally.h"

#define OUTCOME_ROWS_MAX 100 /* of what was allowed, and again of what was denied */
#define OUTCOME_TEXT_MAX 1024

struct audit;

enum outcome_kind {
	OUTCOME_ALLOWED,    /* connections, up, down; or only lookups */
	OUTCOME_FAILED,	    /* allowed, and came to nothing */
	OUTCOME_WOULD_DENY, /* only audit mode let it through */
	OUTCOME_DENIED,
	OUTCOME_DROPPED, /* packets; down: their bytes */
	OUTCOME_MORE, /* rows that there was no room for: `connections` allowed, `attempts` denied; `packets`: lost records;
			  `names`: the log was cut */
	OUTCOME_ERROR, /* the proxy failed; text: why */
	OUTCOME_KIND_COUNT
};

struct outcome {
	uint32_t kind;	 /* enum outcome_kind */
	uint32_t reason; /* enum reason */
	uint64_t connections, attempts, lookups, packets;
	uint64_t names; /* not 0: so many names below `what`, together */
	uint64_t up, down;
	uint32_t port;			 /* 0: none */
	char proto[TALLY_PROTO_MAX];	 /* of packets */
	char what[TALLY_WHAT_MAX];	 /* host, address, or a raw name escaped and in quotes; "": not known */
	char allow[TALLY_WHAT_MAX + 96]; /* the flag that would allow it; "": none */
	char text[OUTCOME_TEXT_MAX];	 /* more to the reason */
};

/* Writes a job's rows to `fd`, a pipe that somebody reads. */
void audit_outcomes(const struct audit *a, int fd);

/* Writes a row of kind OUTCOME_ERROR. */
void outcome_write_error(int fd, const char *text);

/* False for a row that no proxy in its right mind writes. */
bool outcome_ok(const struct outcome *o);

#endif
