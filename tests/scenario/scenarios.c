/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state machine of a connection, from accept to close, in scenarios: script.h has their language.
 *
 *     scenarios [-k TEXT] FILE...       runs those whose names contain TEXT, each in every way to deliver its bytes
 *     scenarios -s DIR FILE...          writes them into DIR as seeds for tests/fuzz/fuzz_conn.c
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/scenario/fail.h"
#include "tests/scenario/script.h"

#define LONG \
	5000 /* bytes of a step that is not delivered in many small pieces, only cut near its ends and in the middle */

static struct {
	const char *only, *seeds;
	size_t scenarios, runs;
} total;

static void run_cut(const struct scenario *s, size_t step, size_t at)
{
	const struct delivery how = { .client = DELIVER_SPLIT, .step = step, .at = at };
	struct sends again = { 0 };

	scenario_run(s, &how, &again);
	total.runs++;
}

static void run_cuts(const struct scenario *s, const struct sends *sends)
{
	for (size_t step = 0; step < sends->n; step++) {
		size_t len = sends->len[step];

		if (len > LONG) {
			run_cut(s, step, 1);
			run_cut(s, step, len / 2);
			run_cut(s, step, len - 1);
			continue;
		}
		for (size_t at = 1; at < len; at++)
			run_cut(s, step, at);
	}
}

static void write_seed(const struct scenario *s)
{
	const struct delivery whole = { .client = DELIVER_WHOLE };
	struct bytes seed = { 0 };
	struct sends sends = { .seed = &seed };
	char path[512];
	FILE *f;

	scenario_run(s, &whole, &sends);
	snprintf(path, sizeof(path), "%s/%03zu", total.seeds, total.scenarios);
	f = fopen(path, "we");
	if (!f || fwrite(bytes_data(&seed), 1, bytes_len(&seed), f) != bytes_len(&seed) || fclose(f) != 0)
		fail("%s cannot be written", path);
	bytes_free(&seed);
}

static void run_all(const struct scenario *s)
{
	static const struct delivery ways[] = {
		{ .narrow = true },
		{ .tick = true },
		{ .upstream_bytes = true },
		{ .client = DELIVER_BYTES },
		{ .client = DELIVER_BYTES, .upstream_bytes = true, .narrow = true },
	};
	const struct delivery whole = { .client = DELIVER_WHOLE };
	struct sends sends = { 0 }, again = { 0 };

	if (total.only && !strstr(s->name, total.only))
		return;
	total.scenarios++;
	if (total.seeds) {
		write_seed(s);
		return;
	}
	scenario_run(s, &whole, &sends);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		if ((sends.whole && ways[i].client == DELIVER_BYTES) || (sends.longest > LONG && !ways[i].tick))
			continue;
		scenario_run(s, &ways[i], &again);
		total.runs++;
	}
	total.runs++;
	if (!sends.whole)
		run_cuts(s, &sends);
}

/* Ends the scenario that is being read, if there is one, and begins one with the file's own lines. */
static void next(struct scenario *s, size_t shared, char *name)
{
	if (s->name)
		run_all(s);
	s->n = shared;
	s->name = name;
}

static void add(struct scenario *s, unsigned number, char *text)
{
	if (s->n == LINES_MAX)
		fail("%s:%u: more than %d lines", s->file, number, LINES_MAX);
	s->lines[s->n++] = (struct line){ number, text };
}

static void run_file(const char *path)
{
	static struct scenario s;
	unsigned number = 0, first = 0;
	char *line = NULL, *whole = NULL, *texts[4096];
	size_t size = 0, shared = 0, n_texts = 0;
	FILE *f = fopen(path, "re");
	ssize_t len;

	if (!f)
		fail("%s cannot be read", path);
	s = (struct scenario){ .file = path };
	while ((len = getline(&line, &size, f)) >= 0) {
		size_t had = whole ? strlen(whole) : 0;
		bool joined = len > 1 && line[len - 2] == '\\';

		number++;
		first = whole ? first : number;
		whole = realloc(whole, had + (size_t)len + 1);
		if (!whole || n_texts == sizeof(texts) / sizeof(*texts))
			fail("%s: too long", path);
		memcpy(whole + had, line, (size_t)len);
		whole[had + (size_t)len - (joined ? 2 : 1)] = '\0';
		if (joined)
			continue;
		texts[n_texts++] = whole;
		if (strncmp(whole, "scenario ", 9) == 0) {
			shared = s.name ? shared : s.n;
			next(&s, shared, whole + 9);
		} else {
			add(&s, first, whole);
		}
		whole = NULL;
	}
	next(&s, shared, NULL);
	while (n_texts > 0)
		free(texts[--n_texts]);
	free(line);
	fclose(f);
}

int main(int argc, char **argv)
{
	int first = 1;

	if (argc > 2 && (strcmp(argv[1], "-k") == 0 || strcmp(argv[1], "-s") == 0)) {
		*(argv[1][1] == 'k' ? &total.only : &total.seeds) = argv[2];
		first = 3;
	}
	for (int i = first; i < argc; i++)
		run_file(argv[i]);
	fail_at("%s", "");
	if (total.scenarios == 0)
		fail("no scenarios");
	printf("%zu scenarios in %zu runs\n", total.scenarios, total.runs);
	return 0;
}
