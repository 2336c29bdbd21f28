/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of HTTP/1 body framing: where a message ends must not depend on how
 * its bytes arrive, nor on which of them are moved unseen.
 * links: proxy/wire/http1_body.c proxy/wire/http1_text.c tests/unit/guard_page.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/wire/http1.h"
#include "tests/unit/guard_page.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct http1_body begin(enum http1_body_kind kind, uint64_t len)
{
	static struct http1_head head;
	struct http1_body b;

	head.body = kind;
	head.body_len = len;
	http1_body_begin(&b, &head);
	return b;
}

static enum parse feed(struct http1_body *b, const char *p, size_t n, size_t *taken)
{
	guard_page_free();
	return http1_body_feed(b, guard_page_copy(p, n), n, taken);
}

static void no_body(void **state)
{
	struct http1_body b = begin(HTTP1_BODY_NONE, 5);
	size_t taken;

	(void)state;
	assert_true(b.done);
	assert_int_equal(b.left, 0);
	assert_int_equal(feed(&b, "GET", 3, &taken), PARSE_OK);
	assert_int_equal(taken, 0);
	b = begin(HTTP1_BODY_LENGTH, 0);
	assert_true(b.done);
	assert_int_equal(feed(&b, "GET", 3, &taken), PARSE_OK);
	assert_int_equal(taken, 0);
}

static void counted_body(void **state)
{
	struct http1_body b = begin(HTTP1_BODY_LENGTH, 10);
	size_t taken;

	(void)state;
	assert_false(b.done);
	assert_int_equal(b.left, 10);
	assert_int_equal(feed(&b, "abc", 3, &taken), PARSE_MORE);
	assert_int_equal(taken, 3);
	assert_int_equal(b.left, 7);
	http1_body_skip(&b, 5);
	assert_int_equal(b.left, 2);
	assert_false(b.done);
	assert_int_equal(feed(&b, "", 0, &taken), PARSE_MORE);
	assert_int_equal(feed(&b, "ijGET", 5, &taken), PARSE_OK);
	assert_int_equal(taken, 2);
	assert_true(b.done);
	b = begin(HTTP1_BODY_LENGTH, 999999999999999999);
	http1_body_skip(&b, 999999999999999998);
	assert_int_equal(b.left, 1);
	http1_body_skip(&b, 1);
	assert_true(b.done);
}

static void body_until_close(void **state)
{
	struct http1_body b = begin(HTTP1_BODY_UNTIL_CLOSE, 0);
	size_t taken;

	(void)state;
	assert_int_equal(b.left, UINT64_MAX);
	assert_int_equal(feed(&b, "abc", 3, &taken), PARSE_MORE);
	assert_int_equal(taken, 3);
	http1_body_skip(&b, 1ULL << 40);
	assert_int_equal(b.left, UINT64_MAX);
	assert_false(b.done);
}

static const char *const good[] = {
	"0\r\n\r\n",
	"0000000000000000\r\n\r\n",
	"5\r\nhello\r\n0\r\n\r\n",
	"1\r\n\r\r\n1\r\n\n\r\n0\r\n\r\n",
	"a\r\n0123456789\r\nA\r\n0123456789\r\n00000000000000c\r\n0\r\n\r\n0\r\n\r\n\r\n\r\n0\r\n\r\n",
	"5;a\r\nhello\r\n5;a=b;c=\"d\te\"\r\nhello\r\n0;x\r\n\r\n",
	"5;\r\nhello\r\n0\r\nA:\r\nB: \tc\xc3\xa4\r\n\r\n",
	"0\r\nHos: x\r\nHostx: x\r\nContent-Lengt: 1\r\nXTransfer-Encoding: x\r\n\r\n",
};

/* Feeds `s` in pieces of `size`; with `unseen`, moves what may be moved without a look. Returns the last answer. */
static enum parse feed_pieces(const char *s, size_t len, size_t size, bool unseen, size_t *total)
{
	struct http1_body b = begin(HTTP1_BODY_CHUNKED, 0);
	enum parse got = PARSE_MORE;

	*total = 0;
	while (*total < len && got == PARSE_MORE) {
		size_t n = len - *total < size ? len - *total : size;
		size_t taken;

		if (unseen && b.left > 0) {
			taken = b.left < len - *total ? (size_t)b.left : len - *total;
			http1_body_skip(&b, taken);
		} else {
			got = feed(&b, s + *total, n, &taken);
			if (got == PARSE_MORE)
				assert_int_equal(taken, n);
		}
		*total += taken;
		assert_int_equal(b.done, got == PARSE_OK);
	}
	return got;
}

static void good_chunks(void **state)
{
	char s[512];
	size_t total;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		size_t len = strlen(good[i]);

		snprintf(s, sizeof(s), "%sGET / HTTP/1.1\r\n", good[i]);
		for (size_t size = 1; size <= strlen(s); size++) {
			assert_int_equal(feed_pieces(s, strlen(s), size, false, &total), PARSE_OK);
			assert_int_equal(total, len);
			assert_int_equal(feed_pieces(s, strlen(s), size, true, &total), PARSE_OK);
			assert_int_equal(total, len);
		}
		for (size_t cut = 0; cut < len; cut++) {
			assert_int_equal(feed_pieces(s, cut, cut + 1, false, &total), PARSE_MORE);
			assert_int_equal(total, cut);
		}
	}
}

static const char *const bad[] = {
	"\r\n",
	"\n",
	";x\r\n",
	" 5\r\n",
	"5 \r\n",
	"5\t\r\n",
	"5 ;x\r\n",
	"+5\r\n",
	"-5\r\n",
	"0x5\r\n",
	"5x\r\n",
	"g\r\n",
	"5\n",
	"5\rx",
	"5\r\r\n",
	"5;x\n",
	"5;x\rhello",
	"5;x\x01\r\n",
	"5;x\x7f\r\n",
	"5;\x80\r\n",
	"00000000000000005\r\n",
	"8000000000000000\r\n",
	"ffffffffffffffff\r\n",
	"10000000000000005\r\n",
	"5\r\nhello0\r\n\r\n",
	"5\r\nhello\n0\r\n\r\n",
	"5\r\nhello\r0\r\n\r\n",
	"5\r\nhellox\r\n",
	"5\r\nhello\r\n\r\n",
	"0\n\r\n",
	"0\r\n\n",
	"0\r\n\rx",
	"0\r\nA\r\n\r\n",
	"0\r\nA : b\r\n\r\n",
	"0\r\n: b\r\n\r\n",
	"0\r\n A: b\r\n\r\n",
	"0\r\nA: b\r\n c\r\n\r\n",
	"0\r\nA: b\n\r\n",
	"0\r\nA: b\rc\r\n\r\n",
	"0\r\nA: \x01\r\n\r\n",
	"0\r\nA: \x7f\r\n\r\n",
	"0\r\nHost: x\r\n\r\n",
	"0\r\nhOST:\r\n\r\n",
	"0\r\nA: b\r\nContent-Length: 0\r\n\r\n",
	"0\r\nTRANSFER-ENCODING: chunked\r\n\r\n",
};

static void bad_chunks(void **state)
{
	size_t total;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		for (size_t size = 1; size <= strlen(bad[i]); size++) {
			if (feed_pieces(bad[i], strlen(bad[i]), size, false, &total) != PARSE_BAD)
				fail_msg("case %zu, pieces of %zu: %s", i, size, bad[i]);
		}
	}
}

static void bad_stays_bad(void **state)
{
	struct http1_body b = begin(HTTP1_BODY_CHUNKED, 0);
	size_t taken;

	(void)state;
	assert_int_equal(feed(&b, "x", 1, &taken), PARSE_BAD);
	assert_int_equal(feed(&b, "0\r\n\r\n", 5, &taken), PARSE_BAD);
	assert_int_equal(taken, 0);
	assert_int_equal(b.left, 0);
	assert_false(b.done);
}

/* Nothing may be moved unseen while a chunk's first line is not over. */
static void no_data_before_the_line_ends(void **state)
{
	static const char line[] = "1f4;x=y\r\n";
	struct http1_body b = begin(HTTP1_BODY_CHUNKED, 0);
	size_t taken;

	(void)state;
	for (size_t i = 0; i < sizeof(line) - 1; i++) {
		assert_int_equal(b.left, 0);
		http1_body_skip(&b, 0);
		assert_int_equal(feed(&b, line + i, 1, &taken), PARSE_MORE);
	}
	assert_int_equal(b.left, 0x1f4);
	http1_body_skip(&b, 0x1f3);
	assert_int_equal(feed(&b, "x\r", 2, &taken), PARSE_MORE);
	assert_int_equal(taken, 2);
	assert_int_equal(b.left, 0);
}

static void largest_chunk(void **state)
{
	struct http1_body b = begin(HTTP1_BODY_CHUNKED, 0);
	size_t taken;

	(void)state;
	assert_int_equal(feed(&b, "7fffffffffffffff\r\n", 18, &taken), PARSE_MORE);
	assert_int_equal(b.left, INT64_MAX);
	http1_body_skip(&b, INT64_MAX);
	assert_int_equal(feed(&b, "\r\n0\r\n\r\n", 7, &taken), PARSE_OK);
	assert_int_equal(taken, 7);
}

static void extensions_are_bounded(void **state)
{
	char s[512];
	size_t n = HTTP1_CHUNK_EXT_MAX, total;

	(void)state;
	memset(s, ';', sizeof(s));
	s[0] = '5';
	memcpy(s + 1 + n, "\r\n", 2);
	assert_int_equal(feed_pieces(s, n + 3, 7, false, &total), PARSE_MORE);
	assert_int_equal(total, n + 3);
	memset(s + 1 + n, ';', 2);
	assert_int_equal(feed_pieces(s, n + 2, 7, false, &total), PARSE_BAD);
	/* For each chunk anew. */
	memcpy(s, "1;aaaaaaa\r\nx\r\n1;", 16);
	assert_int_equal(feed_pieces(s, 16 + n - 1, 7, false, &total), PARSE_MORE);
	assert_int_equal(feed_pieces(s, 16 + n, 7, false, &total), PARSE_BAD);
}

/* Trailer lines of `len` bytes together, then the end. */
static enum parse trailers(size_t len)
{
	static char s[2 * HTTP1_TRAILER_MAX];
	size_t n = (size_t)snprintf(s, sizeof(s), "0\r\nA: b\r\nC: "), total;

	memset(s + n, 'x', len - 6 - 3 - 2);
	memcpy(s + 3 + len - 2, "\r\n\r\n", 4);
	return feed_pieces(s, 3 + len + 2, 1000, false, &total);
}

static void trailers_are_bounded(void **state)
{
	(void)state;
	assert_int_equal(trailers(100), PARSE_OK);
	assert_int_equal(trailers(HTTP1_TRAILER_MAX), PARSE_OK);
	assert_int_equal(trailers(HTTP1_TRAILER_MAX + 1), PARSE_BAD);
	assert_int_equal(trailers(HTTP1_TRAILER_MAX + 1000), PARSE_BAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_body),
		cmocka_unit_test(counted_body),
		cmocka_unit_test(body_until_close),
		cmocka_unit_test(good_chunks),
		cmocka_unit_test(bad_chunks),
		cmocka_unit_test(bad_stays_bad),
		cmocka_unit_test(no_data_before_the_line_ends),
		cmocka_unit_test(largest_chunk),
		cmocka_unit_test(extensions_are_bounded),
		cmocka_unit_test(trailers_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
