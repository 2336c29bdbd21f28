/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a line of a scenario, and the bytes that they stand for. */
#ifndef TESTS_SCENARIO_WORDS_H
#define TESTS_SCENARIO_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define WORDS_MAX 64
#define LETS_MAX  16

struct word {
	bool quoted;
	size_t len;
	char *s; /* NUL-terminated; for a quoted one, decoded */
};

struct words {
	size_t n;
	struct word at[WORDS_MAX + 1]; /* behind the last one: an empty word */
};

/* What `let` gave names to. */
struct lets {
	size_t n;
	struct {
		char name[32];
		struct bytes bytes;
	} at[LETS_MAX];
};

/* Takes `line` apart, in place. In quotes: \r \n \t \\ \" \xNN. A "#" outside of quotes begins a comment. */
void words_split(char *line, struct words *out);

/*
 * Appends what the words from `i` on stand for, up to the end or a "then", and returns the index behind them:
 *
 *	"TEXT"              these bytes
 *	$NAME               what `let NAME` said
 *	tls NAME [ech]      a ClientHello for NAME, or without a name for "-"
 *	socks NAME PORT     a SOCKS5 request to connect there
 *	bytes N             N bytes of a pattern
 */
size_t words_bytes(const struct words *w, size_t i, const struct lets *lets, struct bytes *out);

/* Begins or replaces a name. */
struct bytes *lets_set(struct lets *lets, const char *name);
void lets_free(struct lets *lets);

/* "10s", "250ms", "3us", "2h", in microseconds. */
uint64_t words_time(const char *text);

/* "4711" */
uint64_t words_number(const char *text);

#endif
