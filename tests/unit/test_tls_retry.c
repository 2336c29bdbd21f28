/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of what comes after a ClientHello: a server's HelloRetryRequest, cut at
 * every byte and split into records in every way, and what a client may send before its second hello.
 * links: proxy/wire/tls_retry.c tests/unit/guard_page.c
 */
#include "proxy/wire/tls_retry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/sha.h>

#include "tests/unit/guard_page.h"

#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))
#define CORPUS	   "tests/fuzz/corpus/fuzz_tls_retry/"
#define STREAM_MAX 65536

static const uint8_t zeros[TLS_CIPHERTEXT_MAX];
static uint8_t message[256], stream[STREAM_MAX];
static size_t message_len, stream_len;

static void put(const void *p, size_t n)
{
	assert_true(n <= sizeof(stream) - stream_len);
	memcpy(stream + stream_len, p, n);
	stream_len += n;
}

static void put_record(uint8_t type, const void *p, size_t n)
{
	put((uint8_t[]){ type, 3, 3, (uint8_t)(n >> 8), (uint8_t)n }, 5);
	put(p, n);
}

/* A HelloRetryRequest that asks for P-384 (RFC 8446 §4.1.4): the random is made here, not copied. */
static void build_retry(void)
{
	static const uint8_t head[] = { 2, 0, 0, 84, 3, 3 };
	static const uint8_t rest[] = { 0x13, 2, 0, 0, 12, 0, 43, 0, 2, 3, 4, 0, 51, 0, 2, 0, 24 };

	memcpy(message, head, sizeof(head));
	SHA256((const uint8_t *)"HelloRetryRequest", 17, message + 6);
	message[38] = 32;
	memset(message + 39, 0x5e, 32);
	memcpy(message + 71, rest, sizeof(rest));
	message_len = 71 + sizeof(rest);
	assert_int_equal(message_len, 4 + head[3]);
}

static void split(size_t first, size_t rest)
{
	stream_len = 0;
	for (size_t at = 0, n; at < message_len; at += n) {
		n = at == 0 ? first : rest;
		n = n < message_len - at ? n : message_len - at;
		put_record(22, message + at, n);
	}
}

/* Feeds `stream` in pieces of `piece` bytes, each at the end of a page; `used`: where the answer came. */
static enum parse feed(size_t piece, size_t *used)
{
	struct tls_retry r = { 0 };
	enum parse got = PARSE_MORE;
	size_t at = 0;

	while (at < stream_len && got == PARSE_MORE) {
		size_t n = piece < stream_len - at ? piece : stream_len - at;

		got = tls_retry_feed(&r, guard_page_copy(stream + at, n), n);
		guard_page_free();
		at += n;
	}
	if (used)
		*used = at;
	return got;
}

static void read_corpus(const char *name)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), CORPUS "%s", name);
	f = fopen(path, "rb");
	if (!f)
		fail_msg("no %s: run it from the root of the tree", path);
	stream_len = fread(stream, 1, sizeof(stream), f);
	fclose(f);
}

/* As sent by OpenSSL 3.0 (s_server); what follows does not matter. */
static void real_servers(void **state)
{
	static const struct {
		const char *file;
		enum parse want;
	} cases[] = {
		{ "openssl-retry", PARSE_OK },
		{ "openssl-tls13", PARSE_BAD },
		{ "openssl-tls12", PARSE_BAD },
		{ "openssl-alert", PARSE_MORE }, /* the end comes behind it */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		read_corpus(cases[i].file);
		assert_true(stream_len > 0);
		for (size_t piece = 1; piece <= stream_len; piece++) {
			if (feed(piece, NULL) != cases[i].want)
				fail_msg("%s in pieces of %zu", cases[i].file, piece);
		}
	}
}

static void retry_in_any_split(void **state)
{
	size_t used;

	(void)state;
	build_retry();
	for (size_t first = 1; first <= message_len; first++) {
		split(first, message_len);
		assert_int_equal(feed(1, &used), PARSE_OK);
		assert_int_equal(feed(stream_len, NULL), PARSE_OK);
		/* Known with the last byte of the random, and not a byte before. */
		assert_int_equal(used, 38 + 5 + (first < 38 ? 5 : 0));
	}
	for (size_t size = 1; size < message_len; size++) {
		split(size, size);
		for (size_t piece = 1; piece < 12; piece++)
			assert_int_equal(feed(piece, NULL), PARSE_OK);
	}
}

/* Every bit of the type and the random counts; length, version and what follows don't. */
static void other_answers(void **state)
{
	(void)state;
	build_retry();
	for (size_t at = 0; at < message_len; at++) {
		bool counts = at == 0 || (at >= 6 && at < 38);

		for (int bit = 0; bit < 8; bit++) {
			message[at] ^= (uint8_t)(1 << bit);
			split(message_len, message_len);
			assert_int_equal(feed(stream_len, NULL), counts ? PARSE_BAD : PARSE_OK);
			split(1, 1);
			assert_int_equal(feed(7, NULL), counts ? PARSE_BAD : PARSE_OK);
			message[at] ^= (uint8_t)(1 << bit);
		}
	}
}

static void no_tls(void **state)
{
	static const struct {
		const char *b;
		size_t n;
	} cases[] = {
		{ "HTTP/1.1 400 Bad Request\r\n", 8 },
		{ "\x80\x2e\x01\x03\x01", 1 },
		{ "\x17\x03\x03\x00\x10", 1 },
		{ "\x16\x02", 2 },
		{ "\x16\xfe\xfd", 2 },
		{ "\x16\x03\x03\x00\x00", 5 },
		{ "\x16\x03\x03\x41\x01", 5 },
		{ "\x15\x03\x03\x00\x00", 5 },
		{ "\0", 1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		stream_len = 0;
		put(cases[i].b, cases[i].n);
		assert_int_equal(feed(stream_len, NULL), PARSE_BAD);
		assert_int_equal(feed(1, NULL), PARSE_BAD);
	}
	for (int type = 0; type < 256; type++) {
		bool record = type == 20 || type == 21 || type == 22;

		stream_len = 0;
		put((uint8_t[]){ (uint8_t)type }, 1);
		assert_int_equal(feed(1, NULL), record ? PARSE_MORE : PARSE_BAD);
	}
}

/* Warnings before the answer don't hide it; between two of its records they are no TLS. */
static void records_before_the_answer(void **state)
{
	(void)state;
	build_retry();
	stream_len = 0;
	put_record(21, "\x01\x70", 2);
	put_record(20, "\x01", 1);
	put_record(22, message, message_len);
	for (size_t piece = 1; piece < stream_len; piece++)
		assert_int_equal(feed(piece, NULL), PARSE_OK);
	stream_len = 0;
	put_record(22, message, 10);
	put_record(21, "\x01\x70", 2);
	put_record(22, message + 10, message_len - 10);
	assert_int_equal(feed(stream_len, NULL), PARSE_BAD);
}

/* A server that goes on with alerts is no longer waited for. */
static void never_undecided_at_the_cap(void **state)
{
	struct tls_retry r = { 0 };

	(void)state;
	stream_len = 0;
	while (stream_len < TLS_RETRY_MAX + 100)
		put_record(21, "\x01\x70", 2);
	for (size_t i = 0; i < TLS_RETRY_MAX - 1; i++)
		assert_int_equal(tls_retry_feed(&r, stream + i, 1), PARSE_MORE);
	assert_int_equal(tls_retry_feed(&r, stream + TLS_RETRY_MAX - 1, 1), PARSE_BAD);
	assert_int_equal(feed(stream_len, NULL), PARSE_BAD);
}

/* What is in `stream`, at the end of a page. */
static enum parse between(size_t len, size_t *taken)
{
	enum parse got = tls_retry_between(guard_page_copy(stream, len), len, taken);

	guard_page_free();
	return got;
}

/* Early data behind a dummy change_cipher_spec, then the hello: cut at every byte, only whole records are taken. */
static void early_data_then_a_hello(void **state)
{
	size_t ends[4], taken, data, hello;

	(void)state;
	stream_len = 0;
	ends[0] = 0;
	put_record(20, "\x01", 1);
	ends[1] = stream_len;
	put_record(23, message, 200);
	ends[2] = stream_len;
	put_record(23, "", 0);
	ends[3] = hello = stream_len;
	put_record(22, "\x01\x00", 2);
	for (size_t len = 0; len <= stream_len; len++) {
		enum parse got = between(len, &taken);

		for (data = 3; ends[data] > len; data--)
			;
		assert_int_equal(taken, ends[data]);
		assert_int_equal(got, len > hello ? PARSE_OK : PARSE_MORE);
	}
	assert_int_equal(tls_retry_between(NULL, 0, &taken), PARSE_MORE);
	assert_int_equal(taken, 0);
}

static void between_takes_nothing_else(void **state)
{
	size_t taken;

	(void)state;
	for (int type = 0; type < 256; type++) {
		bool passes = type == 20 || type == 21 || type == 23;

		stream_len = 0;
		put_record(21, "\x02\x28", 2);
		put_record((uint8_t)type, "\x01\x00", 2);
		assert_int_equal(between(stream_len, &taken), passes ? PARSE_MORE : type == 22 ? PARSE_OK : PARSE_BAD);
		assert_int_equal(taken, passes ? 14 : 7);
		assert_int_equal(between(8, &taken), passes ? PARSE_MORE : type == 22 ? PARSE_OK : PARSE_BAD);
	}
	stream_len = 0;
	put("\x17\x02", 2);
	assert_int_equal(between(2, &taken), PARSE_BAD);
	assert_int_equal(between(1, &taken), PARSE_MORE);
	stream_len = 0;
	put("\x17\x03\x03\x41\x01", 5);
	assert_int_equal(between(5, &taken), PARSE_BAD);
	stream[4] = 0;
	assert_int_equal(between(5, &taken), PARSE_MORE);
	stream_len = 0;
	put_record(23, zeros, TLS_CIPHERTEXT_MAX);
	assert_int_equal(between(stream_len - 1, &taken), PARSE_MORE);
	assert_int_equal(taken, 0);
	assert_int_equal(between(stream_len, &taken), PARSE_MORE);
	assert_int_equal(taken, stream_len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_servers),
		cmocka_unit_test(retry_in_any_split),
		cmocka_unit_test(other_answers),
		cmocka_unit_test(no_tls),
		cmocka_unit_test(records_before_the_answer),
		cmocka_unit_test(never_undecided_at_the_cap),
		cmocka_unit_test(early_data_then_a_hello),
		cmocka_unit_test(between_takes_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
