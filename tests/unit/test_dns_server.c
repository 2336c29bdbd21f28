/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the gate's DNS serves UDP and TCP, on loopback.
 *
 * links: proxy/dns/dns_server.c proxy/dns/dns_tcp.c proxy/dns/dns_reply.c proxy/dns/dns_map.c
 * links: proxy/wire/dns_msg.c proxy/wire/dns_answer.c
 * links: rules/builder.c rules/limits.c rules/entry.c rules/hint.c rules/match.c rules/names.c rules/arrange.c rules/sort.c rules/pattern.c rules/policy.c
 * links: rules/print.c rules/reason.c rules/rule.c rules/special.c rules/store.c
 * links: base/addr.c base/bytes.c base/clock.c base/err.c base/name.c base/prefix.c
 * links: tests/unit/dns_bench.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/event.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/dns/dns_server.h"
#include "proxy/wire/dns_msg.h"
#include "tests/unit/dns_bench.h"

static void turn(struct bench *f)
{
	struct timeval tv = { .tv_usec = 5000 };

	event_base_loopexit(f->base, &tv);
	event_base_dispatch(f->base);
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Runs the loop until something is there to be read. */
static void await(struct bench *f, int fd)
{
	for (int i = 0; i < 1000 && !readable(fd); i++)
		turn(f);
	assert_true(readable(fd));
}

static void udp_exchange(struct bench *f, const char *server, uint16_t port)
{
	struct bench_message q = bench_query("ok.test", DNS_TYPE_A, PLAIN);
	struct endpoint to = { .port = port }, from;
	struct sockaddr_storage ss;
	socklen_t len;
	struct bench_message m;
	int fd;

	assert_int_equal(addr_parse(server, strlen(server), &to.addr), 0);
	len = endpoint_to_sockaddr(&to, &ss);
	fd = socket(ss.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(sendto(fd, q.b, q.len, 0, (struct sockaddr *)&ss, len), q.len);
	await(f, fd);
	m.len = (size_t)recvfrom(fd, m.b, sizeof(m.b), 0, (struct sockaddr *)&ss, &len);
	bench_has_header(&m, DNS_NOERROR, 1, 0);
	/* It comes from where it was asked. */
	endpoint_from_sockaddr((struct sockaddr *)&ss, &from);
	assert_true(addr_equal(&from.addr, &to.addr));
	assert_int_equal(from.port, to.port);
	close(fd);
	bench_recorded(f, "0 ok.test A allow rule");
}

static void test_udp(void **state)
{
	struct bench *f = *state;

	udp_exchange(f, "127.0.0.1", f->port4);
	udp_exchange(f, "127.0.0.2", f->port4);
	udp_exchange(f, "127.4.5.6", f->port4);
	udp_exchange(f, "::1", f->port6);
}

/* A burst is taken in portions; the loop has its turns between them. */
static void test_udp_burst(void **state)
{
	struct bench *f = *state;
	struct bench_message q = bench_query("ok.test", DNS_TYPE_A, PLAIN);
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	to.sin_port = htons(f->port4);
	for (int i = 0; i < DNS_UDP_BURST + 5; i++)
		assert_int_equal(sendto(fd, q.b, q.len, 0, (struct sockaddr *)&to, sizeof(to)), q.len);
	event_base_loop(f->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	assert_int_equal(f->audit.n, DNS_UDP_BURST);
	event_base_loop(f->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	assert_int_equal(f->audit.n, DNS_UDP_BURST + 5);
	/* A datagram longer than any query. */
	f->audit.n = 0;
	q.len = sizeof(q.b);
	assert_int_equal(sendto(fd, q.b, q.len, 0, (struct sockaddr *)&to, sizeof(to)), q.len);
	event_base_loop(f->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	bench_recorded(f, "0 raw:ok.test A deny dns_malformed");
	close(fd);
}

/* A TCP connection on loopback, its server end taken over as the listener of the gate leaves it. */
static int tcp_connect(struct bench *f, uint64_t conn)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	socklen_t len = sizeof(sa);
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int small = 8192;
	int server;

	/* So that both directions are soon full. */
	setsockopt(l, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	setsockopt(l, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	assert_int_equal(bind(l, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(getsockname(l, (struct sockaddr *)&sa, &len), 0);
	assert_int_equal(listen(l, 1), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, len), 0);
	server = accept4(l, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	close(l);
	setsockopt(server, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	dns_server_tcp(f->server, server, conn, &bench_src, &bench_dst);
	return fd;
}

static void frame(struct bench_message *stream, const struct bench_message *q)
{
	uint8_t len[2] = { (uint8_t)(q->len >> 8), (uint8_t)q->len };

	bench_add(stream, len, 2);
	bench_add(stream, q->b, q->len);
}

static void read_exactly(struct bench *f, int fd, uint8_t *buf, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t r;

		await(f, fd);
		r = recv(fd, buf + at, n - at, 0);
		assert_true(r > 0);
		at += (size_t)r;
	}
}

/* The next answer on a stream. */
static struct bench_message read_answer(struct bench *f, int fd)
{
	struct bench_message m = { .len = 0 };
	uint8_t len[2];

	read_exactly(f, fd, len, 2);
	m.len = (size_t)(len[0] << 8 | len[1]);
	assert_true(m.len <= DNS_REPLY_MAX);
	read_exactly(f, fd, m.b, m.len);
	return m;
}

static void at_end(struct bench *f, int fd)
{
	uint8_t b;

	await(f, fd);
	assert_int_equal(recv(fd, &b, 1, 0), 0);
	close(fd);
}

/* Several queries at once, then one a byte at a time, then half-close: every answer arrives, then the end. */
static void test_tcp(void **state)
{
	struct bench *f = *state;
	struct bench_message a = bench_query("ok.test", DNS_TYPE_A, PLAIN),
			     b = bench_query("bad.test", DNS_TYPE_A, PLAIN);
	struct bench_message stream = { .len = 0 };
	int fd = tcp_connect(f, 9);
	struct bench_message m;

	for (int i = 0; i < 3; i++) {
		frame(&stream, &a);
		frame(&stream, &b);
	}
	assert_int_equal(send(fd, stream.b, stream.len, 0), stream.len);
	for (int i = 0; i < 3; i++) {
		m = read_answer(f, fd);
		bench_has_header(&m, DNS_NOERROR, 1, 0);
		m = read_answer(f, fd);
		bench_has_header(&m, DNS_NXDOMAIN, 0, 1);
	}
	assert_int_equal(f->audit.n, 6);
	assert_string_equal(f->audit.lines[4], "9 ok.test A allow rule");
	assert_string_equal(f->audit.lines[5], "9 bad.test A deny not_allowed");
	f->audit.n = 0;
	stream.len = 0;
	frame(&stream, &a);
	for (size_t i = 0; i < stream.len; i++) {
		assert_int_equal(f->audit.n, 0);
		assert_int_equal(send(fd, stream.b + i, 1, 0), 1);
		turn(f);
	}
	m = read_answer(f, fd);
	bench_has_header(&m, DNS_NOERROR, 1, 0);
	bench_recorded(f, "9 ok.test A allow rule");
	/* The last query and the end of the stream come together. */
	assert_int_equal(send(fd, stream.b, stream.len, 0), stream.len);
	shutdown(fd, SHUT_WR);
	m = read_answer(f, fd);
	bench_has_header(&m, DNS_NOERROR, 1, 0);
	at_end(f, fd);
	bench_recorded(f, "9 ok.test A allow rule");
}

/* A client that asks and never reads: bounded, and served to the end when it does read. */
static void test_tcp_slow_reader(void **state)
{
	struct bench *f = *state;
	struct bench_message q = bench_query("ok.test", DNS_TYPE_A, PLAIN);
	struct bench_message stream = { .len = 0 };
	int fd = tcp_connect(f, 9);
	size_t sent = 0, received = 0, at = 0;

	f->audit.quiet = true;
	frame(&stream, &q);
	/* Until nothing moves any more: both directions are full. */
	for (int idle = 0; idle < 5;) {
		ssize_t n = send(fd, stream.b + at, stream.len - at, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			at += (size_t)n;
			idle = 0;
			if (at == stream.len) {
				at = 0;
				sent++;
			}
			if (sent % 64)
				continue;
		} else {
			idle++;
		}
		turn(f);
		if (sent > 1000000)
			fail_msg("it reads without bound");
	}
	/* The rest of the last one, while answers are taken. */
	while (received < sent) {
		struct bench_message m = read_answer(f, fd);
		ssize_t n = at ? send(fd, stream.b + at, stream.len - at, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;

		bench_has_header(&m, DNS_NOERROR, 1, 0);
		received++;
		if (n > 0 && (at += (size_t)n) == stream.len) {
			at = 0;
			sent++;
		}
	}
	assert_int_equal(at, 0);
	shutdown(fd, SHUT_WR);
	at_end(f, fd);
}

static void test_tcp_no_query(void **state)
{
	static const char half[] = { 0, 100, 1, 2, 3 };
	static const char huge[] = { (char)0xff, (char)0xff, 1, 2, 3 };
	static const char empty[] = { 0, 0 };
	struct bench *f = *state;
	struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	int fd = tcp_connect(f, 9);

	shutdown(fd, SHUT_WR);
	at_end(f, fd);
	bench_recorded(f, "9 - - deny client_gone");

	fd = tcp_connect(f, 10);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	for (int i = 0; i < 100 && f->audit.n == 0; i++)
		turn(f);
	bench_recorded(f, "10 - - deny client_gone");

	fd = tcp_connect(f, 11);
	assert_int_equal(send(fd, half, sizeof(half), 0), sizeof(half));
	shutdown(fd, SHUT_WR);
	at_end(f, fd);
	bench_recorded(f, "11 - - deny dns_malformed");

	fd = tcp_connect(f, 12);
	assert_int_equal(send(fd, huge, sizeof(huge), 0), sizeof(huge));
	await(f, fd);
	close(fd);
	bench_recorded(f, "12 - - deny dns_malformed");

	fd = tcp_connect(f, 13);
	assert_int_equal(send(fd, empty, sizeof(empty), 0), sizeof(empty));
	await(f, fd);
	close(fd);
	bench_recorded(f, "13 - - deny dns_malformed");
}

static void test_tcp_limit(void **state)
{
	struct bench *f = *state;
	struct bench_message q = bench_query("ok.test", DNS_TYPE_A, PLAIN), m;
	struct bench_message stream = { .len = 0 };
	int fds[DNS_TCP_CLIENTS_MAX + 1];
	uint8_t b;

	for (int i = 0; i <= DNS_TCP_CLIENTS_MAX; i++)
		fds[i] = tcp_connect(f, 100 + (unsigned)i);
	bench_recorded(f, "164 - - deny limit_connections");
	await(f, fds[DNS_TCP_CLIENTS_MAX]);
	assert_int_equal(recv(fds[DNS_TCP_CLIENTS_MAX], &b, 1, 0), -1);
	close(fds[DNS_TCP_CLIENTS_MAX]);
	/* The others still work, and one that ends makes room. */
	frame(&stream, &q);
	assert_int_equal(send(fds[5], stream.b, stream.len, 0), stream.len);
	m = read_answer(f, fds[5]);
	bench_has_header(&m, DNS_NOERROR, 1, 0);
	shutdown(fds[5], SHUT_WR);
	at_end(f, fds[5]);
	fds[5] = tcp_connect(f, 200);
	f->audit.n = 0;
	/* Each of them leaves a record, also at the end of the job. */
	dns_server_free(f->server);
	assert_int_equal(f->audit.n, DNS_TCP_CLIENTS_MAX);
	assert_non_null(strstr(f->audit.lines[0], " deny client_gone"));
	for (int i = 0; i < DNS_TCP_CLIENTS_MAX; i++)
		close(fds[i]);
	f->server = dns_server_new(
		&(struct dns_server_config){ f->base, f->policy, &f->audit, f->env.map, f->udp4, f->udp6, NULL, NULL });
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_set_up, bench_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_udp),		 TEST(test_udp_burst), TEST(test_tcp), TEST(test_tcp_slow_reader),
		TEST(test_tcp_no_query), TEST(test_tcp_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
