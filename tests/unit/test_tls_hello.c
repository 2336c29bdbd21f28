/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the ClientHello reader: hellos of real clients (the fuzzing corpus)
 * and built ones, cut at every byte and split into records in every way.
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

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define CORPUS	 "tests/fuzz/corpus/fuzz_tls_hello/"

static uint8_t scratch[TLS_HELLO_MAX];
static struct hello_bytes message, stream;

static void build(const struct hello_spec *s)
{
	hello_build(&message, s);
}

static void split(size_t first, size_t rest)
{
	hello_split(&stream, &message, first, rest);
}

/* Parses the first `len` bytes of `stream`, which end at an unreadable page. The copy lives until the next call. */
static enum parse parse(size_t len, struct tls_hello *hello)
{
	guard_page_free();
	return tls_hello_parse(guard_page_copy(stream.b, len), len, scratch, hello);
}

static void assert_hello(const struct tls_hello *got, const char *sni, const char *alpn, bool ech)
{
	assert_int_equal(got->has_sni, sni != NULL);
	assert_int_equal(got->sni_len, sni ? strlen(sni) : 0);
	if (sni)
		assert_memory_equal(got->sni, sni, got->sni_len);
	assert_string_equal(got->alpn, alpn);
	assert_int_equal(got->ech, ech);
}

static void assert_parses(const char *sni, const char *alpn, bool ech)
{
	struct tls_hello hello, again;

	assert_int_equal(parse(stream.n, &hello), PARSE_OK);
	assert_hello(&hello, sni, alpn, ech);
	/* Nothing but what the hello takes is needed, and nothing less. */
	assert_int_equal(parse(hello.len, &again), PARSE_OK);
	assert_int_equal(again.len, hello.len);
	assert_int_equal(parse(hello.len - 1, &again), PARSE_MORE);
}

/* Every `step`th beginning of `stream`, and the last ones, may still become a hello. */
static void assert_more_before_end(size_t step)
{
	struct tls_hello hello;

	for (size_t len = 0; len < stream.n; len += len + step < stream.n ? step : 1)
		assert_int_equal(parse(len, &hello), PARSE_MORE);
}

/* Reads a corpus file, a stream of one record, into `message` and `stream`. */
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
	message.n = stream.n - 5;
	memcpy(message.b, stream.b + 5, message.n);
}

/*
 * As sent to a loopback listener by OpenSSL 3.0 (s_client, curl, Python, Node
 * 20), GnuTLS 3.7 (wget, git) and Java 17. The resume ones offer a session;
 * "localhost" is no host name to Java.
 */
static const struct {
	const char *file, *sni, *alpn;
} real[] = {
	{ "openssl-tls13", "ok.test", "h2,http/1.1" },
	{ "openssl-tls12", "ok.test", "" },
	{ "openssl-tls10", "ok.test", "" },
	{ "openssl-no-sni", NULL, "" },
	{ "openssl-psk", "ok.test", "" },
	{ "curl-h2", "ok.test", "h2,http/1.1" },
	{ "wget-gnutls", "localhost", "" },
	{ "git-gnutls", "localhost", "h2,http/1.1" },
	{ "node-tls", "ok.test", "http/1.1" },
	{ "node-fetch", "localhost", "http/1.1" },
	{ "java-jsse", NULL, "" },
	{ "python-ssl", "a-rather-long-host-name-for-a-test.of-many.labels.wild.test", "" },
	{ "resume-tls12", "ok.test", "" },
	{ "resume-tls13", "ok.test", "" },
};

static void real_hellos_cut_at_every_byte(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(real); i++) {
		read_corpus(real[i].file);
		assert_parses(real[i].sni, real[i].alpn, false);
		assert_more_before_end(1);
	}
}

static void real_hellos_in_two_records(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(real); i++) {
		read_corpus(real[i].file);
		for (size_t first = 1; first < message.n; first++) {
			split(first, HELLO_RECORD_MAX);
			assert_parses(real[i].sni, real[i].alpn, false);
		}
	}
}

static void real_hellos_in_small_records(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(real); i++) {
		read_corpus(real[i].file);
		for (size_t size = 1; size < 64; size++) {
			split(size, size);
			assert_parses(real[i].sni, real[i].alpn, false);
		}
		split(1, 1);
		assert_more_before_end(1);
	}
}

/* The name lies in the stream when one record holds the hello, and in the scratch otherwise. */
static void one_record_is_read_in_place(void **state)
{
	struct tls_hello hello;

	(void)state;
	build(&(struct hello_spec){ 0 });
	split(HELLO_RECORD_MAX, HELLO_RECORD_MAX);
	assert_int_equal(tls_hello_parse(stream.b, stream.n, scratch, &hello), PARSE_OK);
	assert_true(hello.sni > stream.b && hello.sni < stream.b + stream.n);
	split(message.n - 1, 1);
	assert_int_equal(tls_hello_parse(stream.b, stream.n, scratch, &hello), PARSE_OK);
	assert_true(hello.sni > scratch && hello.sni < scratch + sizeof(scratch));
}

static void post_quantum_hello(void **state)
{
	(void)state;
	build(&(struct hello_spec){
		.pq = 1263, .ech = true, .grease = 30, .padding = 100, .alpn = "h2 http/1.1", .session = 32 });
	assert_true(message.n > 1700);
	split(HELLO_RECORD_MAX, HELLO_RECORD_MAX);
	assert_parses("ok.test", "h2,http/1.1", true);
	assert_more_before_end(1);
	for (size_t first = 1; first < message.n; first += 3) {
		split(first, HELLO_RECORD_MAX);
		assert_parses("ok.test", "h2,http/1.1", true);
	}
	split(1, 1);
	assert_parses("ok.test", "h2,http/1.1", true);
	assert_more_before_end(7);
}

static void seventeen_kilobytes(void **state)
{
	static const size_t sizes[] = { 16384, 9000, 4096, 1000, 17, 2 };

	(void)state;
	build(&(struct hello_spec){ .padding = 17000, .alpn = "h2" });
	for (size_t i = 0; i < COUNT(sizes); i++) {
		split(sizes[i], sizes[i]);
		assert_parses("ok.test", "h2", false);
	}
	split(4096, 4096);
	assert_more_before_end(101);
}

/* Builds a hello whose stream, in the largest records, is exactly `len` bytes long. */
static void build_stream(size_t len)
{
	struct hello_spec s = { .padding = 1 };

	build(&s);
	split(HELLO_RECORD_MAX, HELLO_RECORD_MAX);
	s.padding += len - stream.n - (len - 1) / (HELLO_RECORD_MAX + 5) * 5;
	build(&s);
	split(HELLO_RECORD_MAX, HELLO_RECORD_MAX);
	assert_int_equal(stream.n, len);
}

static void largest_hello(void **state)
{
	struct tls_hello hello;

	(void)state;
	build_stream(TLS_HELLO_MAX);
	assert_parses("ok.test", "", false);
	assert_more_before_end(509);
	/* What is behind it does not count. */
	hello_put_record(&stream, "x", 1);
	assert_parses("ok.test", "", false);

	build_stream(TLS_HELLO_MAX + 1);
	for (size_t len = TLS_HELLO_MAX; len <= stream.n; len++)
		assert_int_equal(parse(len, &hello), PARSE_BAD);
	assert_int_equal(parse(TLS_HELLO_MAX - 1, &hello), PARSE_MORE);
}

/* One-byte records take six times the space: such a hello reaches the cap, and never stays undecided there. */
static void small_records_reach_the_cap(void **state)
{
	struct tls_hello hello;

	(void)state;
	build(&(struct hello_spec){ .padding = 10700 });
	split(1, 1);
	assert_in_range(stream.n, TLS_HELLO_MAX - 2000, TLS_HELLO_MAX);
	assert_parses("ok.test", "", false);
	build(&(struct hello_spec){ .padding = 11000 });
	split(1, 1);
	assert_int_equal(parse(TLS_HELLO_MAX - 1, &hello), PARSE_MORE);
	assert_int_equal(parse(TLS_HELLO_MAX, &hello), PARSE_BAD);
	assert_int_equal(parse(stream.n, &hello), PARSE_BAD);
}

static void too_long_is_bad_at_once(void **state)
{
	struct tls_hello hello;

	(void)state;
	stream.n = 0;
	hello_put(&stream, "\x16\x03\x01\x40\x00\x01\x00\xff\xfc", 9);
	assert_int_equal(parse(8, &hello), PARSE_MORE);
	assert_int_equal(parse(9, &hello), PARSE_BAD);
	stream.b[8] = 0xfb; /* 4 + 0xfffb + 5 is one above the cap, 0xfff7 fits */
	assert_int_equal(parse(9, &hello), PARSE_BAD);
	stream.b[8] = 0xf7;
	assert_int_equal(parse(9, &hello), PARSE_MORE);
}

static void valid_oddities(void **state)
{
	static const struct {
		struct hello_spec s;
		const char *sni, *alpn;
		bool ech;
	} cases[] = {
		{ .s = { .no_extensions = true }, .sni = NULL, .alpn = "" },
		{ .s = { .sni = "" }, .sni = NULL, .alpn = "" },
		{ .s = { .session = 32 }, .sni = "ok.test", .alpn = "" },
		{ .s = { .ech = true }, .sni = "ok.test", .alpn = "", .ech = true },
		{ .s = { .grease = 253 }, .sni = "ok.test", .alpn = "" },
		{ .s = { .sni = "bad.test\x01\xff" }, .sni = "bad.test\x01\xff", .alpn = "" },
		{ .s = { .alpn = "h2" }, .sni = "ok.test", .alpn = "h2" },
		{ .s = { .alpn = "a,b \x1f\x80\x7f c" }, .sni = "ok.test", .alpn = "a?b,???,c" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		build(&cases[i].s);
		split(HELLO_RECORD_MAX, HELLO_RECORD_MAX);
		assert_parses(cases[i].sni, cases[i].alpn, cases[i].ech);
		assert_more_before_end(1);
		split(3, 1);
		assert_parses(cases[i].sni, cases[i].alpn, cases[i].ech);
	}
}

static void long_alpn_is_cut(void **state)
{
	static const char names[] = "0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789";
	char want[TLS_ALPN_MAX];

	(void)state;
	for (size_t i = 0; i < TLS_ALPN_MAX - 1; i++)
		want[i] = names[i] == ' ' ? ',' : names[i];
	want[TLS_ALPN_MAX - 1] = '\0';
	build(&(struct hello_spec){ .alpn = names });
	split(HELLO_RECORD_MAX, HELLO_RECORD_MAX);
	assert_parses("ok.test", want, false);
}

static const struct {
	const char *what;
	struct hello_spec s;
} malformed[] = {
	{ "not a ClientHello", { .type = 2 } },
	{ "version", { .version = 2 } },
	{ "DTLS version", { .version = 0xfe } },
	{ "session id of 33 bytes", { .session = 33 } },
	{ "session id too long", { .lie_session = 1 } },
	{ "session id too long for the message", { .lie_session = 32 } },
	{ "no ciphers", { .no_ciphers = true } },
	{ "odd ciphers", { .ciphers_odd = 1 } },
	{ "ciphers too short", { .lie_ciphers = -2 } },
	{ "ciphers too long", { .lie_ciphers = 2 } },
	{ "ciphers far too long", { .lie_ciphers = 0x7000 } },
	{ "no compression", { .no_compression = true } },
	{ "no null compression", { .compression = 1 } },
	{ "compression too long", { .lie_compression = 1 } },
	{ "extensions one too long", { .lie_extensions = 1 } },
	{ "extensions one too short", { .lie_extensions = -1 } },
	{ "a byte behind the extensions", { .behind_extensions = 1 } },
	{ "a byte where extensions should be", { .no_extensions = true, .behind_extensions = 1 } },
	{ "extension one too long", { .lie_ext = 1 } },
	{ "extension one too short", { .lie_ext = -1 } },
	{ "extension as long as it gets", { .lie_ext = 0xfff0 } },
	{ "name list one too long", { .lie_list = 1 } },
	{ "name list one too short", { .lie_list = -1 } },
	{ "name one too long", { .lie_name = 1 } },
	{ "name one too short", { .lie_name = -1 } },
	{ "name as long as it gets", { .lie_name = 0xfff0 } },
	{ "empty name", { .sni = "EMPTY" } },
	{ "name of another type", { .name_type = 1 } },
	{ "two names", { .names_twice = true } },
	{ "a byte behind the name", { .behind_list = 1 } },
	{ "three bytes behind the name", { .behind_list = 3 } },
	{ "a byte behind the list", { .behind_sni = 1 } },
	{ "two server_name extensions", { .sni_twice = true } },
	{ "an extension twice", { .grease_twice = true } },
	{ "an extension twice, far apart", { .grease = 200, .grease_twice = true } },
	{ "too many extensions", { .grease = 254 } },
	{ "empty ALPN", { .alpn = "" } },
	{ "ALPN list one too long", { .alpn = "h2", .lie_alpn_list = 1 } },
	{ "ALPN list one too short", { .alpn = "h2", .lie_alpn_list = -1 } },
	{ "a byte behind the ALPN list", { .alpn = "h2", .behind_alpn = 1 } },
	{ "ALPN name too long", { .alpn = "h2", .lie_alpn = 1 } },
	{ "ALPN name too short", { .alpn = "h2", .lie_alpn = -1 } },
	{ "empty ALPN name", { .alpn = "h2  x" } },
	{ "ALPN name far too long", { .alpn = "h2", .lie_alpn = 200 } },
};

/* Each of these is refused in one record, in two and in records of one byte. */
static void malformed_messages(void **state)
{
	static const struct tls_hello none;

	(void)state;
	for (size_t i = 0; i < COUNT(malformed); i++) {
		struct tls_hello hello;

		build(&malformed[i].s);
		for (size_t way = 0; way < 3; way++) {
			split(way == 2 ? 1 : way ? 60 : HELLO_RECORD_MAX, way == 2 ? 1 : HELLO_RECORD_MAX);
			if (parse(stream.n, &hello) != PARSE_BAD)
				fail_msg("not refused: %s, way %zu", malformed[i].what, way);
			assert_memory_equal(&hello, &none, sizeof(none));
		}
	}
}

/* A message that claims fewer bytes than its record has is bad; one that claims more waits for them. */
static void headers_lie(void **state)
{
	struct tls_hello hello;

	(void)state;
	build(&(struct hello_spec){ .lie_message = -1 });
	split(HELLO_RECORD_MAX, HELLO_RECORD_MAX);
	assert_int_equal(parse(stream.n, &hello), PARSE_BAD);
	assert_int_equal(parse(9, &hello), PARSE_BAD); /* already known from the two headers */
	build(&(struct hello_spec){ .lie_message = 1 });
	split(HELLO_RECORD_MAX, HELLO_RECORD_MAX);
	assert_int_equal(parse(stream.n, &hello), PARSE_MORE);
	hello_put_record(&stream, "", 1);
	assert_int_equal(parse(stream.n, &hello), PARSE_BAD);
	build(&(struct hello_spec){ 0 });
	message.n = 4;
	memcpy(message.b, "\x01\x00\x00\x00", 4);
	split(HELLO_RECORD_MAX, HELLO_RECORD_MAX);
	assert_int_equal(parse(stream.n, &hello), PARSE_BAD);
	/* A record of another major version is none. */
	build(&(struct hello_spec){ 0 });
	split(20, HELLO_RECORD_MAX);
	stream.b[26] = 2;
	assert_int_equal(parse(stream.n, &hello), PARSE_BAD);
}

static void records_behind_are_left_alone(void **state)
{
	(void)state;
	build(&(struct hello_spec){ 0 });
	split(HELLO_RECORD_MAX, HELLO_RECORD_MAX);
	hello_put(&stream, "\x14\x03\x03\x00\x01\x01\x17\x03\x03\xff\xff", 11);
	assert_parses("ok.test", "", false);
	split(20, 20);
	hello_put(&stream, "\x16\x03\x03\x00\x00 garbage", 13);
	assert_parses("ok.test", "", false);
}

/* Puts `n` bytes at `p` between the first and the second record of a hello. */
static enum parse with_between(const void *p, size_t n)
{
	struct tls_hello hello;

	build(&(struct hello_spec){ 0 });
	stream.n = 0;
	hello_put_record(&stream, message.b, 50);
	hello_put(&stream, p, n);
	hello_put_record(&stream, message.b + 50, message.n - 50);
	return parse(stream.n, &hello);
}

static void malformed_records(void **state)
{
	static const struct {
		uint8_t b[6];
		size_t n;
	} begins[] = {
		{ { 0x15 }, 1 },			   /* an alert */
		{ { 0x17 }, 1 },			   /* application data */
		{ { 0x80 }, 1 },			   /* SSLv2 framing */
		{ { 'G' }, 1 },				   /* HTTP */
		{ { 0x16, 0x02 }, 2 },			   /* SSL 2 */
		{ { 0x16, 0xfe }, 2 },			   /* DTLS */
		{ { 0x16, 0x03, 0x01, 0x00, 0x00 }, 5 },   /* empty */
		{ { 0x16, 0x03, 0x01, 0x40, 0x01 }, 5 },   /* above 2^14 */
		{ { 0x16, 0x03, 0x01, 0x00, 0x01, 2 }, 6 } /* ServerHello */
	};
	struct tls_hello hello;

	(void)state;
	for (size_t i = 0; i < COUNT(begins); i++) {
		stream.n = 0;
		hello_put(&stream, begins[i].b, begins[i].n);
		assert_int_equal(parse(stream.n, &hello), PARSE_BAD);
		assert_int_equal(parse(stream.n - 1, &hello), PARSE_MORE);
	}
	for (int type = 0; type < 256; type++) {
		enum parse want = type == 0x16 ? PARSE_OK : PARSE_BAD;

		build(&(struct hello_spec){ 0 });
		split(50, HELLO_RECORD_MAX);
		stream.b[0] = (uint8_t)type;
		assert_int_equal(parse(stream.n, &hello), want);
		stream.b[0] = 0x16;
		stream.b[55] = (uint8_t)type;
		assert_int_equal(parse(stream.n, &hello), want);
	}
	assert_int_equal(with_between("", 0), PARSE_OK);
	assert_int_equal(with_between("\x16\x03\x01\x00\x00", 5), PARSE_BAD);
	assert_int_equal(with_between("\x15\x03\x01\x00\x02\x01\x00", 7), PARSE_BAD);
	assert_int_equal(with_between("\x14\x03\x01\x00\x01\x01", 6), PARSE_BAD);
	/* A second message in the hello's record. */
	build(&(struct hello_spec){ 0 });
	hello_put(&message, message.b, message.n);
	split(HELLO_RECORD_MAX, HELLO_RECORD_MAX);
	assert_int_equal(parse(stream.n, &hello), PARSE_BAD);
	split(message.n / 2 + 1, HELLO_RECORD_MAX);
	assert_int_equal(parse(stream.n, &hello), PARSE_BAD);
	split(message.n / 2, HELLO_RECORD_MAX);
	assert_parses("ok.test", "", false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_hellos_cut_at_every_byte),
		cmocka_unit_test(real_hellos_in_two_records),
		cmocka_unit_test(real_hellos_in_small_records),
		cmocka_unit_test(one_record_is_read_in_place),
		cmocka_unit_test(post_quantum_hello),
		cmocka_unit_test(seventeen_kilobytes),
		cmocka_unit_test(largest_hello),
		cmocka_unit_test(small_records_reach_the_cap),
		cmocka_unit_test(too_long_is_bad_at_once),
		cmocka_unit_test(valid_oddities),
		cmocka_unit_test(long_alpn_is_cut),
		cmocka_unit_test(malformed_messages),
		cmocka_unit_test(headers_lie),
		cmocka_unit_test(records_behind_are_left_alone),
		cmocka_unit_test(malformed_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
