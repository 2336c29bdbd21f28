/* SPDX-License-Identifier: Apache-2.0 */
/* What a scenario expects of netgate, and the players by their names. */
#ifndef TESTS_SCENARIO_EXPECT_H
#define TESTS_SCENARIO_EXPECT_H

#include "tests/scenario/words.h"

struct tube;

#define CLIENTS_MAX 128

struct players {
	struct tube *clients[CLIENTS_MAX]; /* "client" is "client1" */
	size_t records;			   /* how many were looked at */
};

/* A scenario begins: the start record is its first. */
void players_begin(struct players *p);

/* The client of this name connects. */
void players_client(struct players *p, const char *name, struct tube *t);

/* "client", "client3", "upstream", "upstream2". Fails when there is none. */
struct tube *players_find(const struct players *p, const char *name);

/* "client< ..." */
void expect_received(struct tube *t, const struct words *w, const struct lets *lets);

/* The other lines that expect something. Fails for a line that means nothing. */
void expect_step(struct players *p, const struct words *w);

/* Nothing is left to look at, and nobody is connected. */
void expect_end(struct players *p);

#endif
