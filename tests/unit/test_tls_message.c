/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of ClientHellos without record layer, as QUIC carries them: what is
 * read must be what the same message in a record says (test_tls_hello.c).
 * links: proxy/wire/tls_hello.c tests/unit/guard_page.c tests/unit/hello_builder.c
 */
#include "proxy/wire/tls_hello.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/guard_page.h"
#include "tests/unit/hello_builder.h"

#define COUNT(a)      (sizeof(a) / sizeof((a)[0]))
#define CORPUS	      "tests/fuzz/corpus/fuzz_tls_hello/"
#define RECORD_HEADER 5

static uint8_t scratch[TLS_HELLO_MAX];
static struct hello_bytes message, stream;

static const char *const real[] = { "openssl-tls13", "openssl-tls12", "openssl-tls10", "openssl-no-sni", "openssl-psk",
				    "curl-h2",	     "wget-gnutls",   "git-gnutls",    "node-tls",	 "node-fetch",
				    "java-jsse",     "python-ssl",    "resume-tls12",  "resume-tls13" };

/* Reads a corpus file, a stream of one record, into `stream`, and its message. */
static void read_corpus(const char *name)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), CORPUS "%s", name);
	f = fopen(path, "rb");
	if (!f)
		fail_msg("no %s: run it from the root of the tree", path);
	stream.n = fread(stream.b, 1, sizeof(stream.b), f);
	fclose(f);
	message.n = stream.n - RECORD_HEADER;
	memcpy(message.b, stream.b + RECORD_HEADER, message.n);
}

/* A copy that ends at an unreadable page, until the next call. */
static const uint8_t *copy(size_t len)
{
	guard_page_free();
	return guard_page_copy(message.b, len);
}

/* The same as from the record; MORE up to the last byte, and nothing may follow. */
static void real_messages(void **state)
{
	struct tls_hello hello, want;

	(void)state;
	for (size_t i = 0; i < COUNT(real); i++) {
		read_corpus(real[i]);
		assert_int_equal(tls_hello_parse(stream.b, stream.n, scratch, &want), PARSE_OK);
		for (size_t len = 0; len < message.n; len++)
			assert_int_equal(tls_hello_message(copy(len), len, &hello), PARSE_MORE);
		assert_int_equal(tls_hello_message(copy(message.n), message.n, &hello), PARSE_OK);
		assert_int_equal(hello.has_sni, want.has_sni);
		assert_int_equal(hello.sni_len, want.sni_len);
		assert_memory_equal(hello.sni, want.sni, want.sni_len);
		assert_memory_equal(hello.alpn, want.alpn, sizeof(want.alpn));
		assert_int_equal(tls_hello_message(message.b, message.n + 1, &hello), PARSE_BAD);
	}
	guard_page_free();
}

static void malformed_messages(void **state)
{
	static const struct tls_hello none;
	static const struct hello_spec cases[] = {
		{ .type = 2 },
		{ .version = 2 },
		{ .session = 33 },
		{ .no_ciphers = true },
		{ .compression = 1 },
		{ .lie_extensions = 1 },
		{ .lie_name = 1 },
		{ .names_twice = true },
		{ .sni_twice = true },
		{ .grease_twice = true },
		{ .lie_message = -1 },
		{ .alpn = "" },
		{ .behind_extensions = 1 },
	};
	struct tls_hello hello;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		hello_build(&message, &cases[i]);
		assert_int_equal(tls_hello_message(copy(message.n), message.n, &hello), PARSE_BAD);
		assert_memory_equal(&hello, &none, sizeof(none));
	}
	guard_page_free();
	/* Bad as soon as its header is: another type, more than there may be. */
	assert_int_equal(tls_hello_message((const uint8_t *)"\2", 1, &hello), PARSE_BAD);
	assert_int_equal(tls_hello_message((const uint8_t *)"\1\1\0\0", 4, &hello), PARSE_BAD);
	assert_int_equal(tls_hello_message((const uint8_t *)"\1\0\xff\0", 4, &hello), PARSE_MORE);
}

/* The name is there as soon as its last byte is, and from then on. */
static void early_names(void **state)
{
	struct tls_hello hello, want;

	(void)state;
	for (size_t i = 0; i < COUNT(real); i++) {
		size_t end;

		read_corpus(real[i]);
		tls_hello_parse(stream.b, stream.n, scratch, &want);
		end = want.has_sni ? (size_t)(want.sni - stream.b) - RECORD_HEADER + want.sni_len : SIZE_MAX;
		for (size_t len = 0; len <= message.n; len++) {
			assert_int_equal(tls_hello_early_name(copy(len), len, &hello), len >= end);
			assert_int_equal(hello.has_sni, len >= end);
			if (len < end)
				continue;
			assert_int_equal(hello.sni_len, want.sni_len);
			assert_memory_equal(hello.sni, want.sni, want.sni_len);
		}
	}
	guard_page_free();
}

static void no_early_names(void **state)
{
	static const struct hello_spec cases[] = {
		{ .type = 2 },	   { .behind_sni = 1 },	      { .names_twice = true },
		{ .session = 33 }, { .no_extensions = true }, { .sni = "" },
	};
	struct tls_hello hello;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		hello_build(&message, &cases[i]);
		assert_false(tls_hello_early_name(copy(message.n), message.n, &hello));
		assert_false(hello.has_sni);
	}
	guard_page_free();
	/* What comes behind is not looked at. */
	hello_build(&message, &(struct hello_spec){ .behind_extensions = 1 });
	assert_true(tls_hello_early_name(message.b, message.n, &hello));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_messages),
		cmocka_unit_test(malformed_messages),
		cmocka_unit_test(early_names),
		cmocka_unit_test(no_early_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
