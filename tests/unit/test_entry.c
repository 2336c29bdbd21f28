/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policy entries: what each one means, and that whatever has no single meaning
 * is refused with a message that says what to write instead.
 *
 * Size: one table of cases a rule of the language; a split would only scatter them.
 *
 * links: rules/entry.c rules/pattern.c base/addr.c base/prefix.c base/name.c base/err.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "rules/entry.h"

struct good {
	const char *text;
	const char *name; /* NULL: a prefix */
	bool apex, below;
	const char *prefix;
	uint16_t port;
	bool any_bytes;
};

static void check_good(enum entry_list list, const struct good *g)
{
	struct err err = { "" };
	char shown[PREFIX_STRLEN];
	struct entry e;

	if (entry_parse(list, g->text, strlen(g->text), &e, &err))
		fail_msg("%s: %s", g->text, err.text);
	assert_int_equal(e.is_prefix, g->name == NULL);
	assert_int_equal(PORT_NUMBER(e.port), g->port);
	assert_int_equal(PORT_ANY_BYTES(e.port), g->any_bytes);
	if (!g->name) {
		assert_string_equal(prefix_format(&e.prefix, shown), g->prefix);
		return;
	}
	assert_string_equal(e.name.s, g->name);
	assert_int_equal(e.name.len, strlen(g->name));
	assert_int_equal(e.apex, g->apex);
	assert_int_equal(e.below, g->below);
}

static void allow_entries(void **state)
{
	static const struct good good[] = {
		{ "api.example.com", "api.example.com", true, false, NULL, 0, false },
		{ "API.Example.COM.", "api.example.com", true, false, NULL, 0, false },
		{ "github.com:22", "github.com", true, false, NULL, 22, false },
		{ "example.com:443/tcp", "example.com", true, false, NULL, 443, true },
		{ "*.example.com", "example.com", false, true, NULL, 0, false },
		{ ".example.com", "example.com", true, true, NULL, 0, false },
		{ "*.example.com:8443", "example.com", false, true, NULL, 8443, false },
		{ "intranet", "intranet", true, false, NULL, 0, false },
		{ "_srv.example.com:65535", "_srv.example.com", true, false, NULL, 65535, false },
		{ "*!", "", false, true, NULL, 0, false },
		{ "*!:443", "", false, true, NULL, 443, false },
		{ "*.com!", "com", false, true, NULL, 0, false },
		{ ".github.io!:443/tcp", "github.io", true, true, NULL, 443, true },
		{ "b\303\274cher.example", "xn--bcher-kva.example", true, false, NULL, 0, false },
		{ "*.stra\303\237e.example:22", "xn--strae-oqa.example", false, true, NULL, 22, false },
		{ "api\xe3\x80\x82"
		  "example.com",
		  "api.example.com", true, false, NULL, 0, false },
		{ "203.0.113.7:443", NULL, false, false, "203.0.113.7/32", 443, false },
		{ "203.0.113.0/24:8443", NULL, false, false, "203.0.113.0/24", 8443, false },
		{ "0.0.0.0/0:443/tcp", NULL, false, false, "0.0.0.0/0", 443, true },
		{ "[2001:db8::1]:443", NULL, false, false, "2001:db8::1/128", 443, false },
		{ "[2001:db8::]/32:443", NULL, false, false, "2001:db8::/32", 443, false },
		{ "2001:db8::/32:22/tcp", NULL, false, false, "2001:db8::/32", 22, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		check_good(ENTRY_ALLOW, &good[i]);
}

static void deny_entries(void **state)
{
	static const struct good good[] = {
		{ "telemetry.example.com", "telemetry.example.com", true, false, NULL, 0, false },
		{ "*.com", "com", false, true, NULL, 0, false },
		{ "*", "", false, true, NULL, 0, false },
		{ ".com:22", "com", true, true, NULL, 22, false },
		{ "203.0.113.7", NULL, false, false, "203.0.113.7/32", 0, false },
		{ "10.0.0.0/8", NULL, false, false, "10.0.0.0/8", 0, false },
		{ "2001:db8::1", NULL, false, false, "2001:db8::1/128", 0, false },
		{ "2001:db8::/32", NULL, false, false, "2001:db8::/32", 0, false },
		{ "[2001:db8::]/32", NULL, false, false, "2001:db8::/32", 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		check_good(ENTRY_DENY, &good[i]);
}

struct bad {
	const char *text;
	size_t len; /* 0: up to the NUL */
	const char *says;
};

static void check_bad(enum entry_list list, const struct bad *b)
{
	size_t len = b->len ? b->len : strlen(b->text);
	char quoted[ENTRY_QUOTE_MAX];
	struct err err = { "" };
	struct entry e;

	if (entry_parse(list, b->text, len, &e, &err) == 0)
		fail_msg("accepted: %s", b->text);
	entry_quote(b->text, len, quoted);
	if (strncmp(err.text, quoted, strlen(quoted)) != 0)
		fail_msg("%s is not quoted first: %s", quoted, err.text);
	if (!strstr(err.text, b->says))
		fail_msg("\"%s\" is not in: %s", b->says, err.text);
	for (const char *c = err.text; *c; c++)
		assert_in_range(*c, ' ', '~');
}

static void refused_entries(void **state)
{
	static const struct bad bad[] = {
		{ "", 0, "empty entry" },
		{ "*", 0, "write \"*!\"" },
		{ "*:443", 0, "\"*!\"" },
		{ "*.com", 0, "write \"*.com!\"" },
		{ ".co.uk", 0, "write \".co.uk!\"" },
		{ "*.intranet", 0, "write \"*.intranet!\"" },
		{ "*.github.io", 0, "public suffix \"github.io\"" },
		{ "api.example.com!", 0, "without '!'" },
		{ "*.", 0, "no host name" },
		{ ".", 0, "no host name" },
		{ "!", 0, "without '!'" },
		{ "a*b.example", 0, "write *.HOST" },
		{ "*.*.example.com", 0, "write *.HOST" },
		{ "api.*.example.com", 0, "write *.HOST" },
		{ "**.example.com", 0, "write *.HOST" },
		{ "^api\\.example\\.com$", 0, "only letters" },
		{ "api.example.com\nevil.example", 0, "one host an entry" },
		{ "api.example.com evil.example", 0, "one host an entry" },
		{ "api.example.com#", 0, "only letters" },
		{ "\"api.example.com\"", 0, "only letters" },
		{ "api.example.com\0.evil", 21, "only letters" },
		{ "user@api.example.com", 0, "only letters" },
		{ "a,b.example", 0, "only letters" },
		{ "A9-_{b.example", 0, "only letters" },
		{ "api..example.com", 0, "a dot without a name" },
		{ "..example.com", 0, "a dot without a name" },
		{ "api.example.com..", 0, "a dot without a name" },
		{ "2130706433", 0, "as an IP address" },
		{ "0x7f.1", 0, "as an IP address" },
		{ "127.1", 0, "as an IP address" },
		{ "*.127.0.0.1", 0, "an address is not a host" },
		{ "https://api.example.com/v1", 0, "write \"api.example.com\"" },
		{ "https://api.example.com:8443", 0, "write \"api.example.com:8443\"" },
		{ "api.example.com/v1", 0, "not a path" },
		{ "api.example.com:443/udp", 0, "another protocol" },
		{ "api.example.com/tcp", 0, "/tcp belongs to a port" },
		{ "api.example.com:", 0, "not a port" },
		{ "api.example.com:0", 0, "not a port" },
		{ "api.example.com:65536", 0, "not a port" },
		{ "api.example.com:0443", 0, "not a port" },
		{ "api.example.com:443 ", 0, "not a port" },
		{ "api.example.com:+443", 0, "not a port" },
		{ "api.example.com:https", 0, "not a port" },
		{ "api.example.com:22:23", 0, "one port an entry" },
		{ "203.0.113.7", 0, "write 203.0.113.7/32:443" },
		{ "203.0.113.0/24", 0, "write 203.0.113.0/24:443" },
		{ "2001:db8::1", 0, "write [2001:db8::1]/128:443" },
		{ "10.0.0.1/8:443", 0, "write 10.0.0.0/8" },
		{ "10.0.0.0/33:443", 0, "not an address prefix" },
		{ "10.0.0.0/08:443", 0, "not an address prefix" },
		{ "[api.example.com]:443", 0, "brackets are for IPv6" },
		{ "[1:2:3:4:5:6:7:8:9:a:b:c:d:e:f:10:11:12:13:14:15:16:17:18:19:1a]:443", 0, "brackets are for IPv6" },
		{ "[[::1]]:443", 0, "after ']'" },
		{ "[::1:443", 0, "brackets are for IPv6" },
		{ "[::1]x:443", 0, "after ']'" },
		{ "[fe80::1%eth0]:443", 0, "not an address prefix" },
		{ "[::1]", 0, "needs a port" },
		{ "\xff.example", 0, "IDNA refuses" },
		{ "\303\251\0.example", 11, "too long, or not text" },
		{ "\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1", 0, "as an IP address" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		check_bad(ENTRY_ALLOW, &bad[i]);
}

static void refused_denials(void **state)
{
	static const struct bad bad[] = {
		{ "api.example.com:443/tcp", 0, "write 443" },
		{ "api.example.com!", 0, "without '!'" },
		{ "10.0.0.1/8", 0, "write 10.0.0.0/8" },
		{ "a*b", 0, "write *.HOST" },
	};
	struct err err = { "" };
	struct entry e;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		check_bad(ENTRY_DENY, &bad[i]);
	/* Without the way out that only an allow has. */
	assert_int_equal(entry_parse(ENTRY_DENY, "a.test:0", 8, &e, &err), -1);
	assert_string_equal(err.text, "\"a.test:0\": \"0\": not a port; write a number from 1 to 65535");
}

static void long_entries(void **state)
{
	char text[1100];
	struct bad bad = { text, 300, "253 bytes" };
	struct entry e;
	struct err err = { "" };

	(void)state;
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = i % 50 == 49 ? '.' : 'a';
	check_bad(ENTRY_ALLOW, &bad);
	assert_int_equal(entry_parse(ENTRY_ALLOW, text, NAME_LEN_MAX, &e, &err), 0);
	assert_int_equal(e.name.len, NAME_LEN_MAX);
	memset(text, 'a', 64);
	text[64] = '\0';
	bad = (struct bad){ text, 64, "63 bytes" };
	check_bad(ENTRY_ALLOW, &bad);
	assert_int_equal(entry_parse(ENTRY_ALLOW, text, 63, &e, &err), 0);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = i % 2 ? '\251' : '\303';
	bad = (struct bad){ text, 4 * NAME_LEN_MAX, "IDNA refuses" };
	check_bad(ENTRY_ALLOW, &bad);
	bad = (struct bad){ text, 4 * NAME_LEN_MAX + 2, "too long, or not text" };
	check_bad(ENTRY_ALLOW, &bad);
}

static void every_truncation_is_safe(void **state)
{
	static const char *const texts[] = { "[2001:db8::]/32:443/tcp", "*.b\303\274cher.example!:443/tcp",
					     "203.0.113.0/24:8443/tcp", "https://api.example.com:1/x" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		for (size_t len = 0; len <= strlen(texts[i]); len++) {
			/* The copy ends where the entry does, so that the sanitizer sees a byte too many. */
			char *copy = test_malloc(len ? len : 1);
			struct err err = { "" };
			struct entry e;

			memcpy(copy, texts[i], len);
			if (entry_parse(ENTRY_ALLOW, copy, len, &e, &err))
				assert_string_not_equal(err.text, "");
			test_free(copy);
		}
	}
}

static void confirmation_only_where_it_is_needed(void **state)
{
	struct err err = { "" };
	struct entry e;

	(void)state;
	assert_int_equal(entry_parse(ENTRY_ALLOW, "*.com!", 6, &e, &err), 0);
	assert_true(e.deliberate);
	assert_int_equal(entry_parse(ENTRY_ALLOW, "*.example.com!", 14, &e, &err), 0);
	assert_false(e.deliberate);
}

static void quoting(void **state)
{
	char buf[ENTRY_QUOTE_MAX];
	char text[70];

	(void)state;
	assert_string_equal(entry_quote("a\"b\\c\n\x7f\xc3", 8, buf), "\"a\\x22b\\x5cc\\x0a\\x7f\\xc3\"");
	memset(text, '\n', sizeof(text));
	entry_quote(text, sizeof(text), buf);
	assert_int_equal(strlen(buf), ENTRY_QUOTE_MAX - 1);
	assert_string_equal(buf + ENTRY_QUOTE_MAX - 9, "\\x0a\"...");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allow_entries),
		cmocka_unit_test(deny_entries),
		cmocka_unit_test(refused_entries),
		cmocka_unit_test(refused_denials),
		cmocka_unit_test(long_entries),
		cmocka_unit_test(every_truncation_is_safe),
		cmocka_unit_test(confirmation_only_where_it_is_needed),
		cmocka_unit_test(quoting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
