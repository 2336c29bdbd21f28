/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What netgate does most, on the fake network, for counting instructions (bench/instructions.py):
 *
 *   hot_paths connection|relay|request TIMES
 *
 * A path is a scenario: lines that come once, and lines that come TIMES times. The real proxy/conn runs it, from accept to the
 * records.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/scenario/fail.h"
#include "tests/scenario/ledger.h"
#include "tests/scenario/script.h"

#define STEPS_MAX 12

struct path {
	const char *name;
	const char *once[STEPS_MAX], *each[STEPS_MAX], *last[STEPS_MAX];
};

static const struct path paths[] = {
	{ "connection",
	  { "policy allow a.test" },
	  { "client connects a.test:443", "client> tls a.test", "verdict allow", "dial connected",
	    "upstream< tls a.test", "upstream> \"hello\"", "client< \"hello\"", "client closes", "upstream< end",
	    "upstream closes", "close client" },
	  { NULL } },
	{ "relay",
	  { "policy allow a.test", "client connects a.test:443", "client> tls a.test", "verdict allow",
	    "dial connected", "upstream< tls a.test" },
	  { "upstream> bytes 16384", "client< bytes 16384" },
	  { "client closes", "upstream< end", "upstream closes", "close client" } },
	{ "request",
	  { "policy allow a.test",
	    "let get \"GET / HTTP/1.1\\r\\nHost: a.test\\r\\nUser-Agent: bench\\r\\nAccept: */*\\r\\n\\r\\n\"",
	    "let ok \"HTTP/1.1 200 OK\\r\\nContent-Type: text/plain\\r\\nContent-Length: 2\\r\\n\\r\\nok\"",
	    "client connects a.test:80", "client> $get", "verdict allow", "dial connected", "upstream< $get",
	    "upstream> $ok", "client< $ok" },
	  { "client> $get", "verdict allow", "upstream< $get", "upstream> $ok", "client< $ok" },
	  { "client closes", "close client", "client< end", "upstream< end" } },
};

static void add(struct scenario *s, const char *const steps[STEPS_MAX])
{
	for (size_t i = 0; i < STEPS_MAX && steps[i]; i++) {
		if (s->n == LINES_MAX)
			fail("too many times");
		s->lines[s->n].number = (unsigned)s->n + 1;
		s->lines[s->n++].text = strdup(steps[i]);
	}
}

int main(int argc, char **argv)
{
	static struct scenario s = { .file = "hot_paths" };
	const struct delivery whole = { .client = DELIVER_WHOLE };
	struct sends sends = { 0 };

	for (size_t i = 0; argc == 3 && i < sizeof(paths) / sizeof(*paths); i++) {
		if (strcmp(argv[1], paths[i].name) != 0)
			continue;
		s.name = argv[1];
		ledger_at_end = true;
		add(&s, paths[i].once);
		for (unsigned long n = strtoul(argv[2], NULL, 10); n > 0; n--)
			add(&s, paths[i].each);
		add(&s, paths[i].last);
		scenario_run(&s, &whole, &sends);
		while (s.n > 0)
			free(s.lines[--s.n].text);
		return 0;
	}
	fputs("usage: hot_paths connection|relay|request TIMES\n", stderr);
	return 2;
}
