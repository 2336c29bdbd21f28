/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios: what clients, upstreams, names and the log do, and what netgate must do then.
 *
 * A file holds several. `scenario TEXT` begins one, the indented lines behind it are its steps; `let NAME BYTES` and
 * `policy` lines before the first `scenario` are for all of the file. "\" at the end joins a line with the next.
 *
 *	policy allow|deny ENTRY      policy audit      policy limit KIND VALUE      policy yaml "TEXT"
 *	let NAME BYTES               what BYTES can be is in words.h; $NAME stands for them later
 *	dns NAME [v4|v6] = ADDRESS... [after TIME]       dns NAME [v4|v6] fails ERROR [after TIME]     dns NAME [v4|v6] silent
 *	route ADDRESS refuses|unreachable|connects [after TIME]        route ADDRESS silent
 *	log fails|works              job ends             after TIME
 *	whole                        the client's bytes are not delivered in pieces
 *
 *	client connects TO           NAME:PORT (by the gate's DNS), ADDRESS:PORT, `proxy` or `socks`
 *	client> BYTES                upstream> BYTES
 *	client shuts|closes|resets   upstream ...         its side ends; it is gone; it breaks off
 *	client takes N|all           upstream ...         bytes that it still reads
 *	... then shuts|closes|resets                      at once, before netgate had a turn
 *	... then waits               netgate has its next turn after the next step
 *	... then job ends            after one turn: what netgate does at the end of a turn is not done yet
 *
 *	client< BYTES                upstream< BYTES      exactly these came since the last look
 *	client< end|reset|nothing    upstream< ...        the end of what comes; a reset; nothing, not even that
 *	client< page STATUS REASON   client< alert N      a page of netgate; a TLS alert
 *	verdict allow|deny REASON    dial OUTCOME         close END           record TYPE
 *	                             the next record, with `KEY=VALUE` for further members
 *	quiet                        no record and no byte that was not looked at
 *	open N                       connections that are open
 *
 * `client2` is another client; `upstream` is the last upstream connection that was made, `upstream1` the first, ... All is run
 * until nothing moves after each step. At a scenario's end every record and byte must have been looked at,
 * and no connection may be left.
 *
 * Each scenario runs many times and must come out the same: with the clients' bytes delivered one by one, and cut at each
 * place of each step; with the upstreams' bytes delivered one by one; with sockets that take a few bytes at a time; and with a clock
 * that goes on while netgate works.
 */
#ifndef TESTS_SCENARIO_SCRIPT_H
#define TESTS_SCENARIO_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

struct err;
struct policy;

#define LINES_MAX 256

struct scenario {
	const char *file;
	char *name;
	size_t n;
	struct line {
		unsigned number;
		char *text;
	} lines[LINES_MAX]; /* with those before the first scenario of the file */
};

/* How the bytes are delivered. */
struct delivery {
	enum { DELIVER_WHOLE, DELIVER_BYTES, DELIVER_SPLIT } client;
	size_t step, at; /* DELIVER_SPLIT: which of the steps that send, and where */
	bool upstream_bytes, narrow, tick;
};

#define SENDS_MAX 64

/* What the scenario sends, for who runs it in pieces. */
struct sends {
	size_t n;
	size_t len[SENDS_MAX]; /* by clients */
	size_t longest;	       /* by anybody */
	bool whole;	       /* no pieces */
	struct bytes *seed;    /* gets the scenario in bytes (seed.h); or NULL */
};

/* A policy of the words behind `policy`, several joined by ";". NULL with an error. */
struct policy *script_policy(const char *text, struct err *err);

/* Runs a scenario; returns only when it came out as it says. */
void scenario_run(const struct scenario *s, const struct delivery *how, struct sends *sends);

#endif
