/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the byte queue, over socketpairs where it sends and receives.
 * links: base/bytes.c
 */
#include "base/bytes.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void append_and_consume(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	assert_int_equal(bytes_len(&b), 0);
	assert_null(bytes_data(&b));
	assert_int_equal(bytes_append(&b, NULL, 0, 10), 0);
	assert_int_equal(bytes_append(&b, "hello", 5, 10), 0);
	assert_int_equal(bytes_append(&b, "world", 5, 10), 0);
	assert_int_equal(bytes_len(&b), 10);
	assert_memory_equal(bytes_data(&b), "helloworld", 10);
	bytes_consume(&b, 3);
	assert_memory_equal(bytes_data(&b), "loworld", 7);
	bytes_consume(&b, 0);
	assert_int_equal(bytes_len(&b), 7);
	bytes_consume(&b, 1000);
	assert_int_equal(bytes_len(&b), 0);
	bytes_free(&b);
	assert_null(b.mem);
	bytes_free(&b);
}

static void maximum_holds(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	assert_int_equal(bytes_append(&b, "12345", 5, 4), -ENOBUFS);
	assert_int_equal(bytes_len(&b), 0);
	assert_int_equal(bytes_append(&b, "1234", 4, 4), 0);
	assert_int_equal(bytes_append(&b, "5", 1, 4), -ENOBUFS);
	assert_int_equal(bytes_append(&b, "5", SIZE_MAX, SIZE_MAX), -ENOBUFS);
	assert_memory_equal(bytes_data(&b), "1234", 4);
	/* A maximum below what is held already. */
	assert_int_equal(bytes_append(&b, "5", 1, 2), -ENOBUFS);
	assert_int_equal(bytes_append(&b, "", 0, 2), -ENOBUFS);
	bytes_consume(&b, 1);
	assert_int_equal(bytes_append(&b, "5", 1, 4), 0);
	assert_memory_equal(bytes_data(&b), "2345", 4);
	bytes_free(&b);
}

static void memory_is_bounded(void **state)
{
	static uint8_t block[3000];
	struct bytes b = { 0 };
	size_t max = 10000;

	(void)state;
	/* Far more than the maximum goes through, a part at a time. */
	for (int i = 0; i < 1000; i++) {
		while (bytes_append(&b, block, sizeof(block), max) == 0)
			continue;
		assert_int_equal(bytes_len(&b) > max - sizeof(block), 1);
		assert_true(b.cap <= max);
		bytes_consume(&b, 1777);
	}
	bytes_consume(&b, max);
	assert_null(b.mem);
	/* A small buffer is kept while it is empty. */
	assert_int_equal(bytes_append(&b, "x", 1, max), 0);
	bytes_consume(&b, 1);
	assert_non_null(b.mem);
	assert_true(b.cap <= 4096);
	bytes_free(&b);
}

/* A long random run against a plain buffer. */
static void agrees_with_a_plain_buffer(void **state)
{
	uint8_t model[600];
	struct bytes b = { 0 };
	size_t held = 0;
	uint32_t x = 12345;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		uint8_t in[256];
		size_t n;

		x = x * 1664525 + 1013904223;
		n = x >> 24;
		for (size_t k = 0; k < n; k++)
			in[k] = (uint8_t)(x >> 8) + (uint8_t)k;
		if (x >> 16 & 1) {
			assert_int_equal(bytes_append(&b, in, n, sizeof(model)),
					 n > sizeof(model) - held ? -ENOBUFS : 0);
			if (n <= sizeof(model) - held) {
				memcpy(model + held, in, n);
				held += n;
			}
		} else {
			bytes_consume(&b, n);
			n = n < held ? n : held;
			memmove(model, model + n, held - n);
			held -= n;
		}
		assert_int_equal(bytes_len(&b), held);
		if (held)
			assert_memory_equal(bytes_data(&b), model, held);
	}
	bytes_free(&b);
}

static void receives(void **state)
{
	struct bytes b = { 0 };
	int sv[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	/* The socket blocks, the call does not. */
	assert_int_equal(bytes_recv(&b, sv[0], 100, 100), -EAGAIN);
	assert_null(b.mem);
	assert_int_equal(bytes_recv(&b, sv[0], 0, 100), -EINVAL);
	assert_int_equal(send(sv[1], "abcdefghij", 10, 0), 10);
	assert_int_equal(bytes_recv(&b, sv[0], 3, 100), 3);
	assert_memory_equal(bytes_data(&b), "abc", 3);
	assert_int_equal(bytes_recv(&b, sv[0], 100, 8), 5);
	assert_memory_equal(bytes_data(&b), "abcdefgh", 8);
	assert_int_equal(bytes_recv(&b, sv[0], 100, 8), -ENOBUFS);
	assert_int_equal(bytes_recv(&b, sv[0], SIZE_MAX, SIZE_MAX), 2);
	assert_memory_equal(bytes_data(&b), "abcdefghij", 10);
	close(sv[1]);
	assert_int_equal(bytes_recv(&b, sv[0], 100, 100), 0);
	assert_int_equal(bytes_len(&b), 10);
	close(sv[0]);
	assert_int_equal(bytes_recv(&b, sv[0], 100, 100), -EBADF);
	bytes_free(&b);
}

static void sends(void **state)
{
	static uint8_t block[4 * 1024 * 1024], back[sizeof(block)];
	struct bytes b = { 0 };
	size_t got = 0;
	ssize_t held;
	int sv[2];

	(void)state;
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (uint8_t)(i * 7 + (i >> 9));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	assert_int_equal(bytes_send(&b, sv[0]), 0);
	assert_int_equal(bytes_append(&b, block, sizeof(block), sizeof(block)), 0);
	/* More than a socket takes: the rest is held, and nothing blocks. */
	held = bytes_send(&b, sv[0]);
	assert_true(held > 0 && held < (ssize_t)sizeof(block));
	assert_int_equal(bytes_send(&b, sv[0]), held);
	while (got < sizeof(block)) {
		ssize_t n = recv(sv[1], back + got, sizeof(back) - got, MSG_DONTWAIT);

		assert_true(n > 0);
		got += (size_t)n;
		held = bytes_send(&b, sv[0]);
		assert_int_equal(held, bytes_len(&b));
	}
	assert_int_equal(held, 0);
	assert_memory_equal(back, block, sizeof(block));
	/* A closed peer is an error, not a signal. */
	close(sv[1]);
	assert_int_equal(bytes_append(&b, "x", 1, 10), 0);
	assert_int_equal(bytes_send(&b, sv[0]), -EPIPE);
	assert_int_equal(bytes_len(&b), 1);
	close(sv[0]);
	bytes_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(append_and_consume), cmocka_unit_test(maximum_holds),
		cmocka_unit_test(memory_is_bounded),  cmocka_unit_test(agrees_with_a_plain_buffer),
		cmocka_unit_test(receives),	      cmocka_unit_test(sends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
