/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy/conn/flow and pipe_pool over real TCP sockets on loopback: bytes
 * arrive whole and in order whatever the sizes, budgets and pipes are.
 *
 * links: proxy/conn/flow.c proxy/conn/pipe_pool.c base/bytes.c
 */
#include "proxy/conn/flow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* Two connected TCP sockets on loopback. */
static void tcp_pair(int out[2])
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(sa);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&sa, &len), 0);
	out[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(out[0], (struct sockaddr *)&sa, sizeof(sa)), 0);
	out[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(out[1] >= 0);
	close(listener);
}

struct fixture {
	int client[2], server[2]; /* [0]: the far end; [1]: the relay's end */
	struct pipe_pool *pool;
	struct flow flow;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const int on = 1;

	tcp_pair(f->client);
	tcp_pair(f->server);
	setsockopt(f->client[1], SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
	fcntl(f->client[1], F_SETFL, O_NONBLOCK);
	fcntl(f->server[1], F_SETFL, O_NONBLOCK);
	f->pool = pipe_pool_new();
	flow_init(&f->flow, f->client[1], f->server[1]);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	flow_release(&f->flow, f->pool);
	pipe_pool_free(f->pool);
	for (int i = 0; i < 2; i++) {
		close(f->client[i]);
		close(f->server[i]);
	}
	free(f);
	return 0;
}

static void wait_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 60000), 1);
}

static uint8_t pattern(size_t i)
{
	return (uint8_t)(i * 31 + i / 251);
}

/* Sends `total` patterned bytes through the flow and checks what arrives; `budget` limits each call. */
static void transfer(struct fixture *f, size_t total, uint64_t budget)
{
	uint8_t *buf = malloc(65536);
	size_t sent = 0, got = 0;
	bool ended = false;
	ssize_t n;

	fcntl(f->client[0], F_SETFL, O_NONBLOCK);
	fcntl(f->server[0], F_SETFL, O_NONBLOCK);
	while (!ended || got < total) {
		uint64_t left = budget;
		enum flow_result r;

		if (sent < total) {
			size_t chunk = total - sent < 65536 ? total - sent : 65536;

			for (size_t i = 0; i < chunk; i++)
				buf[i] = pattern(sent + i);
			n = send(f->client[0], buf, chunk, MSG_NOSIGNAL);
			if (n > 0)
				sent += (size_t)n;
			if (sent == total)
				shutdown(f->client[0], SHUT_WR);
		}
		r = flow_run(&f->flow, f->pool, &left);
		assert_true(r != FLOW_FROM_ERROR && r != FLOW_TO_ERROR);
		ended = r == FLOW_EOF;
		while ((n = recv(f->server[0], buf, 65536, 0)) > 0) {
			for (ssize_t i = 0; i < n; i++)
				assert_int_equal(buf[i], pattern(got + (size_t)i));
			got += (size_t)n;
		}
	}
	assert_int_equal(got, total);
	assert_int_equal(f->flow.sent, total);
	assert_int_equal(f->flow.received, total);
	assert_int_equal(f->flow.pipe.rd, -1);
	free(buf);
}

static void test_small(void **state)
{
	transfer(*state, 100, FLOW_UNLIMITED);
}

static void test_bulk(void **state)
{
	transfer(*state, 20 * 1024 * 1024 + 7, FLOW_UNLIMITED);
}

static void test_bulk_in_budgets(void **state)
{
	transfer(*state, 3 * 1024 * 1024 + 11, 40001);
}

static void test_bulk_without_pipes(void **state)
{
	struct fixture *f = *state;
	struct pipe_loan loans[PIPE_POOL_MAX], more;

	for (int i = 0; i < PIPE_POOL_MAX; i++)
		assert_true(pipe_pool_lend(f->pool, &loans[i]));
	assert_false(pipe_pool_lend(f->pool, &more));
	transfer(f, 3 * 1024 * 1024 + 13, FLOW_UNLIMITED);
	for (int i = 0; i < PIPE_POOL_MAX; i++)
		pipe_pool_return(f->pool, &loans[i], false);
}

/* Whether the next run begins with splice goes by what came last; one that took nothing because it was not to changes nothing. */
static void test_bulk_goes_by_what_comes(void **state)
{
	static char data[65536];
	struct fixture *f = *state;
	uint64_t left, none = 0;

	for (int round = 0; round < 2; round++) {
		left = 40000;
		assert_int_equal(send(f->client[0], data, 40000, MSG_NOSIGNAL), 40000);
		while (left > 0)
			(void)flow_run(&f->flow, f->pool, &left);
		assert_true(f->flow.bulk);
		assert_int_equal(flow_run(&f->flow, f->pool, &none), FLOW_DONE);
		assert_true(f->flow.bulk);
		left = FLOW_UNLIMITED;
		if (round == 0)
			assert_int_equal(send(f->client[0], data, 100, MSG_NOSIGNAL), 100);
		assert_int_equal(flow_run(&f->flow, f->pool, &left), FLOW_WAIT_READ);
		assert_false(f->flow.bulk);
	}
}

static void test_budget_is_exact(void **state)
{
	struct fixture *f = *state;
	uint64_t budget = 10;
	char buf[64];

	assert_int_equal(send(f->client[0], "0123456789abcdef", 16, 0), 16);
	wait_readable(f->client[1]);
	assert_int_equal(flow_run(&f->flow, f->pool, &budget), FLOW_DONE);
	assert_int_equal(budget, 0);
	assert_int_equal(f->flow.received, 10);
	assert_int_equal(recv(f->server[0], buf, sizeof(buf), 0), 10);
	assert_memory_equal(buf, "0123456789", 10);
	/* What is behind the budget was not touched. */
	assert_int_equal(recv(f->client[1], buf, sizeof(buf), 0), 6);
	assert_memory_equal(buf, "abcdef", 6);
}

static void test_head_goes_first(void **state)
{
	struct fixture *f = *state;
	uint64_t budget = FLOW_UNLIMITED;
	char buf[64];

	assert_int_equal(bytes_append(&f->flow.head, "judged ", 7, 64), 0);
	assert_true(flow_pending(&f->flow));
	assert_int_equal(send(f->client[0], "unseen", 6, 0), 6);
	wait_readable(f->client[1]);
	assert_int_equal(flow_run(&f->flow, f->pool, &budget), FLOW_WAIT_READ);
	assert_false(flow_pending(&f->flow));
	assert_int_equal(recv(f->server[0], buf, sizeof(buf), MSG_WAITALL | MSG_DONTWAIT), 13);
	assert_memory_equal(buf, "judged unseen", 13);
	assert_int_equal(f->flow.sent, 13);
	assert_int_equal(f->flow.received, 6);
}

/* An urgent byte in mid-stream, then bytes, then FIN: nothing is lost and the end is seen. */
static void test_urgent_byte(void **state)
{
	struct fixture *f = *state;
	enum flow_result r = FLOW_WAIT_READ;
	uint64_t budget = FLOW_UNLIMITED;
	char buf[64];
	size_t got = 0;

	f->flow.bulk = true; /* begin with splice, which the urgent byte confuses */
	assert_int_equal(send(f->client[0], "before", 6, 0), 6);
	assert_int_equal(send(f->client[0], "!", 1, MSG_OOB), 1);
	assert_int_equal(send(f->client[0], "after", 5, 0), 5);
	shutdown(f->client[0], SHUT_WR);
	for (int turns = 0; r != FLOW_EOF && turns < 100; turns++) {
		wait_readable(f->client[1]);
		r = flow_run(&f->flow, f->pool, &budget);
		f->flow.bulk = true;
	}
	assert_int_equal(r, FLOW_EOF);
	shutdown(f->server[1], SHUT_WR);
	for (ssize_t n; (n = recv(f->server[0], buf + got, sizeof(buf) - got, 0)) > 0;)
		got += (size_t)n;
	assert_int_equal(got, 12);
	assert_memory_equal(buf, "before!after", 12);
}

static void test_reset_is_an_error(void **state)
{
	struct fixture *f = *state;
	const struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	uint64_t budget = FLOW_UNLIMITED;

	setsockopt(f->client[0], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(f->client[0]);
	f->client[0] = -1;
	wait_readable(f->client[1]);
	assert_int_equal(flow_run(&f->flow, f->pool, &budget), FLOW_FROM_ERROR);
}

static void test_slow_receiver_holds(void **state)
{
	struct fixture *f = *state;
	uint64_t budget = FLOW_UNLIMITED;
	uint8_t buf[65536];
	enum flow_result r = FLOW_WAIT_READ;

	memset(buf, 'x', sizeof(buf));
	fcntl(f->client[0], F_SETFL, O_NONBLOCK);
	/* Nobody reads at the far end: at some point the flow must hold and say so. */
	for (int turns = 0; turns < 10000 && r != FLOW_WAIT_WRITE; turns++) {
		(void)!send(f->client[0], buf, sizeof(buf), 0);
		r = flow_run(&f->flow, f->pool, &budget);
	}
	assert_int_equal(r, FLOW_WAIT_WRITE);
	assert_true(flow_pending(&f->flow));
	assert_true(f->flow.received > f->flow.sent);
}

/* More than may be sent is there, by every way of moving it: exactly what may arrives, and the flow says so. */
static void limited(struct fixture *f, uint64_t allowed, size_t head)
{
	uint64_t left = allowed, budget = FLOW_UNLIMITED;
	enum flow_result r = FLOW_WAIT_READ;
	uint8_t buf[65536] = { 0 };
	size_t got = 0;
	ssize_t n;

	fcntl(f->client[0], F_SETFL, O_NONBLOCK);
	fcntl(f->server[0], F_SETFL, O_NONBLOCK);
	f->flow.allowed[FLOW_BY_JOB] = &left;
	assert_int_equal(bytes_append(&f->flow.head, buf, head, sizeof(buf)), 0);
	while (r != FLOW_LIMIT || got < allowed) {
		(void)!send(f->client[0], buf, sizeof(buf), MSG_NOSIGNAL);
		r = flow_run(&f->flow, f->pool, &budget);
		assert_true(r == FLOW_WAIT_READ || r == FLOW_WAIT_WRITE || r == FLOW_LIMIT);
		while ((n = recv(f->server[0], buf, sizeof(buf), 0)) > 0)
			got += (size_t)n;
	}
	assert_int_equal(got, allowed);
	assert_int_equal(f->flow.sent, allowed);
	assert_int_equal(left, 0);
	assert_int_equal(flow_run(&f->flow, f->pool, &budget), FLOW_LIMIT);
	assert_int_equal(recv(f->server[0], buf, sizeof(buf), 0), -1);
}

static void test_limit_by_splice(void **state)
{
	limited(*state, 5 * 1024 * 1024 + 3, 0);
}

static void test_limit_by_copy(void **state)
{
	limited(*state, 1001, 0);
}

static void test_limit_in_head(void **state)
{
	limited(*state, 999, 1000);
}

static void test_limit_behind_head(void **state)
{
	limited(*state, 1000, 1000);
}

/* Several flows share what may be sent: what one holds in its pipe may be too much by the time it goes. */
static void test_limit_is_shared(void **state)
{
	struct fixture *f = *state;
	uint64_t left = UINT32_MAX, budget = FLOW_UNLIMITED;
	uint8_t buf[65536] = { 0 };
	enum flow_result r = FLOW_WAIT_READ;
	size_t got = 0;
	uint64_t sent;
	ssize_t n;

	fcntl(f->client[0], F_SETFL, O_NONBLOCK);
	fcntl(f->server[0], F_SETFL, O_NONBLOCK);
	f->flow.allowed[FLOW_BY_JOB] = &left;
	while (r != FLOW_WAIT_WRITE) {
		(void)!send(f->client[0], buf, sizeof(buf), 0);
		r = flow_run(&f->flow, f->pool, &budget);
	}
	sent = f->flow.sent;
	assert_true(f->flow.received - sent > 5);
	left = 5;
	do {
		while ((n = recv(f->server[0], buf, sizeof(buf), 0)) > 0)
			got += (size_t)n;
		r = flow_run(&f->flow, f->pool, &budget);
	} while (r != FLOW_LIMIT || got < sent + 5);
	assert_int_equal(f->flow.sent, sent + 5);
	assert_int_equal(got, sent + 5);
}

/* Of two counters the smaller one binds, and both go down by what was sent, however it went. */
static void test_two_limits(void **state)
{
	struct fixture *f = *state;
	uint64_t rule = 3 * 1024 * 1024 + 7;

	f->flow.allowed[FLOW_BY_RULE] = &rule;
	limited(f, 1001, 1);
	assert_int_equal(rule, 3 * 1024 * 1024 + 7 - 1001);
	rule = 0;
	f->flow.allowed[FLOW_BY_JOB] = NULL;
	assert_int_equal(flow_run(&f->flow, f->pool, &(uint64_t){ FLOW_UNLIMITED }), FLOW_LIMIT);
}

static void test_two_limits_by_splice(void **state)
{
	struct fixture *f = *state;
	uint64_t rule = UINT32_MAX;

	f->flow.allowed[FLOW_BY_RULE] = &rule;
	limited(f, 5 * 1024 * 1024 + 3, 10);
	assert_int_equal(rule, UINT32_MAX - (5 * 1024 * 1024 + 3));
}

/* Exactly what may be sent and then the end is no excess. */
static void test_limit_met_exactly(void **state)
{
	struct fixture *f = *state;
	uint64_t left = 6, budget = FLOW_UNLIMITED;

	f->flow.allowed[FLOW_BY_JOB] = &left;
	assert_int_equal(send(f->client[0], "abcdef", 6, 0), 6);
	wait_readable(f->client[1]);
	assert_int_equal(flow_run(&f->flow, f->pool, &budget), FLOW_WAIT_READ);
	assert_int_equal(left, 0);
	assert_int_equal(flow_run(&f->flow, f->pool, &budget), FLOW_WAIT_READ);
	shutdown(f->client[0], SHUT_WR);
	wait_readable(f->client[1]);
	assert_int_equal(flow_run(&f->flow, f->pool, &budget), FLOW_EOF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_small, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bulk, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bulk_in_budgets, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bulk_goes_by_what_comes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bulk_without_pipes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_budget_is_exact, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_head_goes_first, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_urgent_byte, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reset_is_an_error, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_slow_receiver_holds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_limit_by_splice, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_limit_by_copy, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_limit_in_head, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_limit_behind_head, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_limit_is_shared, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_two_limits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_two_limits_by_splice, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_limit_met_exactly, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
