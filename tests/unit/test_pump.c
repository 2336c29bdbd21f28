/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy/conn/pump: one framed body goes through byte for byte, and what
 * follows it on the connection is left alone.
 *
 * links: proxy/conn/pump.c proxy/conn/quiet.c proxy/conn/flow.c proxy/conn/pipe_pool.c base/bytes.c proxy/wire/http1_body.c
 * links: proxy/wire/http1_head.c proxy/wire/http1_frame.c proxy/wire/http1_host.c proxy/wire/http1_text.c base/addr.c
 */
#include "proxy/conn/pump.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
	int from[2], to[2]; /* [0]: the far end; [1]: the relay's end */
	struct pipe_pool *pool;
	struct flow flow;
	struct bytes in, out;
	struct http1_body body;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, f->from), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, f->to), 0);
	f->pool = pipe_pool_new();
	flow_init(&f->flow, f->from[1], f->to[1]);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	flow_release(&f->flow, f->pool);
	pipe_pool_free(f->pool);
	bytes_free(&f->in);
	bytes_free(&f->out);
	for (int i = 0; i < 2; i++) {
		close(f->from[i]);
		close(f->to[i]);
	}
	free(f);
	return 0;
}

static void begin(struct fixture *f, enum http1_body_kind kind, uint64_t len)
{
	struct http1_head *head = calloc(1, sizeof(*head));

	head->body = kind;
	head->body_len = len;
	http1_body_begin(&f->body, head);
	free(head);
}

/* Feeds `wire` in pieces of `piece` bytes and pumps until the body is done or nothing moves any more. */
static enum pump_result run(struct fixture *f, const char *wire, size_t len, size_t piece)
{
	enum pump_result r = PUMP_WAIT;
	char buf[65536];
	size_t sent = 0;
	bool moved = true;
	ssize_t n;

	while (r == PUMP_WAIT && moved) {
		moved = false;
		if (sent < len) {
			n = send(f->from[0], wire + sent, len - sent < piece ? len - sent : piece, 0);
			if (n > 0) {
				sent += (size_t)n;
				moved = true;
			}
		}
		r = pump(&f->flow, &f->in, &f->body, f->pool, &(bool){ false });
		while ((n = recv(f->to[0], buf, sizeof(buf), 0)) > 0) {
			assert_int_equal(bytes_append(&f->out, buf, (size_t)n, 64 << 20), 0);
			moved = true;
		}
	}
	return r;
}

static void assert_out(const struct fixture *f, const char *wire, size_t len)
{
	assert_int_equal(bytes_len(&f->out), len);
	assert_memory_equal(bytes_data(&f->out), wire, len);
}

/* `n` chunks of `size` bytes and the last chunk; the caller frees. */
static char *chunked(size_t n, size_t size, size_t *len)
{
	char *wire = malloc(n * (size + 32) + 32), *p = wire;

	for (size_t i = 0; i < n; i++) {
		p += snprintf(p, 32, "%zx\r\n", size);
		for (size_t j = 0; j < size; j++)
			*p++ = (char)(i * 7 + j);
		p += snprintf(p, 32, "\r\n");
	}
	p += snprintf(p, 32, "0\r\n\r\n");
	*len = (size_t)(p - wire);
	return wire;
}

static void check_chunked(struct fixture *f, size_t n, size_t size, size_t piece)
{
	size_t len;
	char *wire = chunked(n, size, &len);

	begin(f, HTTP1_BODY_CHUNKED, 0);
	assert_int_equal(run(f, wire, len, piece), PUMP_DONE);
	assert_true(f->body.done);
	assert_out(f, wire, len);
	assert_int_equal(f->flow.sent, len);
	free(wire);
}

static void test_tiny_chunks(void **state)
{
	check_chunked(*state, 3000, 5, 1000);
}

static void test_chunks_byte_by_byte(void **state)
{
	check_chunked(*state, 40, 3, 1);
}

static void test_large_chunks(void **state)
{
	check_chunked(*state, 3, 1 << 20, 65536);
}

static void test_length(void **state)
{
	struct fixture *f = *state;
	size_t len = 1 << 20;
	char *wire = malloc(len + 20);

	memset(wire, 'b', len);
	memcpy(wire + len, "GET /next HTTP/1.1\r\n", 20);
	begin(f, HTTP1_BODY_LENGTH, len);
	assert_int_equal(run(f, wire, len + 20, 50000), PUMP_DONE);
	assert_out(f, wire, len);
	free(wire);
}

/* What follows the body stays in `in` or in the socket: not a byte of it goes out. */
static void test_next_request_is_left(void **state)
{
	static const char wire[] = "4\r\nabcd\r\n0\r\n\r\nGET /next HTTP/1.1\r\n";
	struct fixture *f = *state;

	begin(f, HTTP1_BODY_CHUNKED, 0);
	assert_int_equal(run(f, wire, sizeof(wire) - 1, sizeof(wire)), PUMP_DONE);
	assert_out(f, wire, 14);
	assert_int_equal(bytes_len(&f->in), 20);
	assert_memory_equal(bytes_data(&f->in), "GET /next HTTP/1.1\r\n", 20);
}

static void test_bad_framing(void **state)
{
	static const char wire[] = "4\r\nabcdX\r\n0\r\n\r\n";
	struct fixture *f = *state;

	begin(f, HTTP1_BODY_CHUNKED, 0);
	assert_int_equal(run(f, wire, sizeof(wire) - 1, sizeof(wire)), PUMP_BAD);
}

static void test_cut_short(void **state)
{
	struct fixture *f = *state;

	begin(f, HTTP1_BODY_LENGTH, 100);
	assert_int_equal(run(f, "abc", 3, 3), PUMP_WAIT);
	shutdown(f->from[0], SHUT_WR);
	assert_int_equal(pump(&f->flow, &f->in, &f->body, f->pool, &(bool){ false }), PUMP_EOF);
	assert_false(f->body.done);
}

static void test_until_close(void **state)
{
	struct fixture *f = *state;
	size_t len = 300000;
	char *wire = malloc(len);

	memset(wire, 'u', len);
	begin(f, HTTP1_BODY_UNTIL_CLOSE, 0);
	assert_int_equal(run(f, wire, len, 30000), PUMP_WAIT);
	shutdown(f->from[0], SHUT_WR);
	assert_int_equal(pump(&f->flow, &f->in, &f->body, f->pool, &(bool){ false }), PUMP_EOF);
	assert_out(f, wire, len);
	free(wire);
}

static void test_no_body(void **state)
{
	struct fixture *f = *state;

	begin(f, HTTP1_BODY_NONE, 0);
	assert_int_equal(send(f->from[0], "GET ", 4, 0), 4);
	assert_int_equal(pump(&f->flow, &f->in, &f->body, f->pool, &(bool){ false }), PUMP_DONE);
	assert_int_equal(f->flow.sent, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_tiny_chunks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_chunks_byte_by_byte, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_large_chunks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_length, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_next_request_is_left, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bad_framing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cut_short, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_until_close, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_body, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
