/* SPDX-License-Identifier: Apache-2.0 */
/* See the header and script.h. */
#include "tests/scenario/expect.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tests/scenario/fail.h"
#include "tests/scenario/fake_net.h"
#include "tests/scenario/ledger.h"
#include "tests/scenario/world.h"

#define SHOWN_MAX 400 /* bytes of what came, in a message */

static bool is(const struct words *w, size_t i, const char *text)
{
	return i < w->n && !w->at[i].quoted && strcmp(w->at[i].s, text) == 0;
}

/* ---- the players ---- */

void players_begin(struct players *p)
{
	*p = (struct players){ .records = 1 };
}

/* The number behind a player's name; `none` when there is none. */
static size_t number_of(const char *name, size_t prefix, size_t none)
{
	return name[prefix] ? (size_t)words_number(name + prefix) : none;
}

void players_client(struct players *p, const char *name, struct tube *t)
{
	size_t i = number_of(name, 6, 1) - 1;

	if (i >= CLIENTS_MAX)
		fail("there is no %s", name);
	p->clients[i] = t;
}

struct tube *players_find(const struct players *p, const char *name)
{
	struct tube *found = NULL;
	size_t i, n = 0;

	if (strncmp(name, "client", 6) == 0) {
		i = number_of(name, 6, 1) - 1;
		found = i < CLIENTS_MAX ? p->clients[i] : NULL;
	} else {
		i = number_of(name, 8, 0);
		for (struct tube *t = net_tubes(); t; t = t->next)
			if (t->upstream && t->connected && (++n == i || i == 0))
				found = t;
	}
	if (!found)
		fail("there is no %s", name);
	return found;
}

/* ---- bytes ---- */

static void show(const char *title, const struct bytes *b)
{
	const uint8_t *p = bytes_data(b);
	size_t n = bytes_len(b);

	fprintf(stderr, "%s: %zu bytes \"", title, n);
	for (size_t i = 0; i < n && i < SHOWN_MAX; i++) {
		if (p[i] >= ' ' && p[i] <= '~')
			fputc(p[i], stderr);
		else
			fprintf(stderr, p[i] == '\n' ? "\\n" : p[i] == '\r' ? "\\r" : "\\x%02x", p[i]);
	}
	fprintf(stderr, "\"%s\n", n > SHOWN_MAX ? "..." : "");
}

/* Takes all that came; it must be what was expected. */
static void expect_bytes(struct tube *t, const struct bytes *want)
{
	if (bytes_len(&t->got) != bytes_len(want) ||
	    (bytes_len(want) > 0 && memcmp(bytes_data(&t->got), bytes_data(want), bytes_len(want)) != 0)) {
		show("expected", want);
		show("came", &t->got);
		fail("other bytes came than were expected");
	}
	bytes_consume(&t->got, bytes_len(want));
}

/* "page STATUS REASON": a whole answer of netgate's own, after which the connection ends. */
static void expect_page(struct tube *t, const char *status, const char *reason)
{
	char text[4096], begins[64], says[128];
	size_t n = bytes_len(&t->got) < sizeof(text) - 1 ? bytes_len(&t->got) : sizeof(text) - 1;

	if (n > 0)
		memcpy(text, bytes_data(&t->got), n);
	text[n] = '\0';
	snprintf(begins, sizeof(begins), "HTTP/1.1 %s ", status);
	snprintf(says, sizeof(says), "\r\nX-Netgate-Reason: %s\r\nConnection: close\r\n\r\n", reason);
	if (strncmp(text, begins, strlen(begins)) != 0 || !strstr(text, says)) {
		show("came", &t->got);
		fail("no page %s %s", status, reason);
	}
	bytes_consume(&t->got, n);
}

static void expect_alert(struct tube *t, uint64_t description)
{
	const uint8_t alert[] = { 0x15, 3, 3, 0, 2, 2, (uint8_t)description };
	struct bytes want = { 0 };

	if (bytes_append(&want, alert, sizeof(alert), sizeof(alert)) < 0)
		fail("out of memory");
	expect_bytes(t, &want);
	bytes_free(&want);
}

void expect_received(struct tube *t, const struct words *w, const struct lets *lets)
{
	const struct bytes none = { 0 };
	struct bytes want = { 0 };

	if (is(w, 1, "page")) {
		expect_page(t, w->at[2].s, w->at[3].s);
	} else if (is(w, 1, "alert")) {
		expect_alert(t, words_number(w->at[2].s));
	} else if (is(w, 1, "nothing") || is(w, 1, "end") || is(w, 1, "reset")) {
		expect_bytes(t, &none);
		if (t->got_reset != is(w, 1, "reset") || (t->got_fin && is(w, 1, "nothing")) ||
		    (!t->got_fin && is(w, 1, "end")))
			fail("%s is expected, and there was %s", w->at[1].s,
			     t->got_reset ? "a reset"
			     : t->got_fin ? "an end"
					  : "nothing");
	} else {
		words_bytes(w, 1, lets, &want);
		expect_bytes(t, &want);
		bytes_free(&want);
	}
}

/* ---- records ---- */

static void expect_member(const json_t *record, const char *key, const char *value)
{
	const char *have = ledger_text(record, key);

	if (strcmp(have, value) != 0)
		fail("the record's %s is \"%s\", expected is \"%s\"", key, have, value);
}

/* The next record is of this type; `key` is `value`, and so is each KEY=VALUE from word `i` on. */
static void expect_record(struct players *p, const char *type, const char *key, const char *value,
			  const struct words *w, size_t i)
{
	json_t *record = ledger_at(p->records);

	if (!record)
		fail("there is no further record");
	p->records++;
	expect_member(record, "type", type);
	if (value)
		expect_member(record, key, value);
	for (; i < w->n; i++) {
		char *equal = strchr(w->at[i].s, '=');

		if (!equal)
			fail("\"%s\" is not KEY=VALUE", w->at[i].s);
		*equal = '\0';
		expect_member(record, w->at[i].s, equal + 1);
	}
}

static void expect_verdict(struct players *p, const struct words *w)
{
	bool named = w->n > 2 && !strchr(w->at[2].s, '=');
	size_t first = p->records;

	if (!named && !is(w, 1, "allow"))
		fail("verdict deny needs a reason");
	expect_record(p, "decision", "verdict", w->at[1].s, w, named ? 3 : 2);
	expect_member(ledger_at(first), "reason", named ? w->at[2].s : "rule");
}

static void expect_quiet(const struct players *p)
{
	if (ledger_size() > p->records)
		fail("a record that nobody looked at");
	for (const struct tube *t = net_tubes(); t; t = t->next) {
		if (bytes_len(&t->got) > 0) {
			show("came", &t->got);
			fail("bytes came to %s that nobody looked at", t->upstream ? "an upstream" : "a client");
		}
	}
}

void expect_step(struct players *p, const struct words *w)
{
	if (is(w, 0, "verdict"))
		expect_verdict(p, w);
	else if (is(w, 0, "dial"))
		expect_record(p, "dial", "outcome", w->at[1].s, w, 2);
	else if (is(w, 0, "close"))
		expect_record(p, "close", "end", w->at[1].s, w, 2);
	else if (is(w, 0, "record"))
		expect_record(p, w->at[1].s, NULL, NULL, w, 2);
	else if (is(w, 0, "quiet"))
		expect_quiet(p);
	else if (is(w, 0, "open") && w->n > 1 && world_open() != words_number(w->at[1].s))
		fail("%zu connections are open", world_open());
	else if (!is(w, 0, "open"))
		fail("\"%s\" means nothing", w->at[0].s);
}

void expect_end(struct players *p)
{
	expect_quiet(p);
	if (world_open() > 0)
		fail("%zu connections are open at the end", world_open());
}
