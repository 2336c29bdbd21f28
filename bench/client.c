/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs in the sandbox, or behind a peer, or in a namespace that is routed:
 *
 *   client ADDRESS [PROXY_PORT]
 *
 * With PROXY_PORT, ADDRESS is that of a proxy that is asked to CONNECT, else that of the server or of what stands in for it.
 * Takes orders from its standard input, a line each, and answers each with a line of JSON:
 *
 *   get|put PORT BYTES              one transfer, raw: see server.c
 *   http-get|http-put HOST BYTES    one transfer as the body of a request to port 80
 *   tls-get|tls-put HOST BYTES      one transfer behind a ClientHello to port 443
 *   hellos HOST MS AT_ONCE          connections to port 443: a ClientHello there, a byte back, close
 *   requests HOST MS AT_ONCE        requests to port 80, on connections that stay
 *   hold HOST COUNT AT_ONCE         connections as of `hellos` that stay open
 *   stall HOST COUNT AT_ONCE        the same, and each has asked for STALLED bytes that it does not read
 *   release - 0                     the connections that stayed open are closed
 *   dns HOST MS AT_ONCE SERVER      questions to a name server
 *   flood ADDRESS MS PORT           datagrams
 *
 * Ends with its standard input.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/crowd.h"
#include "bench/datagrams.h"
#include "bench/hello.h"
#include "bench/net.h"

#define PIECE	(128 * 1024) /* bytes of one send() or recv() */
#define STALLED (256 * 1024)
#define WAIT_S	5 /* a transfer that stands still for so long has failed */

static struct way way;
static uint8_t piece[PIECE];

/* ---- transfers ---- */

static bool send_bytes(int fd, uint64_t left)
{
	while (left > 0) {
		ssize_t n = send(fd, piece, left < PIECE ? (size_t)left : PIECE, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		left -= (uint64_t)n;
	}
	return true;
}

static bool take_bytes(int fd, uint64_t left)
{
	while (left > 0) {
		ssize_t n = recv(fd, piece, left < PIECE ? (size_t)left : PIECE, 0);

		if (n <= 0)
			return false;
		left -= (uint64_t)n;
	}
	return true;
}

/* Reads a response head byte by byte (it is short) and says whether it is a 200. */
static bool take_head(int fd)
{
	char head[TEXT_MAX];
	size_t n = 0;

	while (n < sizeof(head) - 1) {
		if (recv(fd, head + n, 1, 0) != 1)
			return false;
		head[++n] = '\0';
		if (n >= 4 && memcmp(head + n - 4, "\r\n\r\n", 4) == 0)
			return strncmp(head, "HTTP/1.", 7) == 0 && strncmp(head + 8, " 200 ", 5) == 0;
	}
	return false;
}

static bool send_text(int fd, const char *text, size_t n)
{
	return send(fd, text, n, MSG_NOSIGNAL) == (ssize_t)n;
}

/* Everything up to the first byte of the transfer itself. */
static bool begin_tls(int fd, const char *host)
{
	uint8_t hello[HELLO_MAX];
	char text[TEXT_MAX];

	if (way.proxy && !(send_text(fd, text, connect_text(host, 443, text)) && take_head(fd)))
		return false;
	return send_text(fd, (const char *)hello, hello_make(host, hello)) && take_bytes(fd, 1);
}

struct transfer {
	enum { RAW, HTTP, TLS } as;
	bool put;
	const char *where; /* a port or a host */
	uint64_t bytes;
};

/* An upload ends when the server says that it has everything. */
static bool transfer(int fd, const struct transfer *t)
{
	char text[TEXT_MAX];
	size_t n;

	if (t->as == TLS && !begin_tls(fd, t->where))
		return false;
	if (t->as == HTTP)
		n = request_text(&way, t->where, t->put, t->bytes, text);
	else
		n = (size_t)snprintf(text, sizeof(text), "%s %llu\n", t->put ? "put" : "get",
				     (unsigned long long)t->bytes);
	if (!send_text(fd, text, n))
		return false;
	if (t->put)
		return send_bytes(fd, t->bytes) && (t->as == HTTP ? take_head(fd) : take_bytes(fd, 1));
	return (t->as != HTTP || take_head(fd)) && take_bytes(fd, t->bytes);
}

static void run_transfer(const char *order, const char *where, uint64_t bytes)
{
	const struct transfer t = { .as = strncmp(order, "http-", 5) == 0  ? HTTP
					  : strncmp(order, "tls-", 4) == 0 ? TLS
									   : RAW,
				    .put = strcmp(order + strlen(order) - 3, "put") == 0,
				    .where = where,
				    .bytes = bytes };
	uint16_t port = t.as == HTTP ? 80 : t.as == TLS ? 443 : (uint16_t)strtoul(where, NULL, 10);
	const struct timeval wait = { .tv_sec = WAIT_S };
	int64_t start = now_ns();
	int fd = start_connect(&way, port, 0);
	bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) == 0 &&
		  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) == 0 && transfer(fd, &t);

	printf("{\"ok\":%s,\"ns\":%lld}\n", ok ? "true" : "false", (long long)(now_ns() - start));
	if (fd >= 0)
		close(fd);
}

/* ---- orders ---- */

static void run_crowd(const char *order, const char *host, unsigned long long amount, unsigned long at_once)
{
	bool stay = strcmp(order, "hold") == 0 || strcmp(order, "stall") == 0;
	const struct crowd_job job = { .way = &way,
				       .host = host,
				       .http = strcmp(order, "requests") == 0,
				       .at_once = at_once,
				       .count = stay ? (unsigned long)amount : 0,
				       .unread = strcmp(order, "stall") == 0 ? STALLED : 0,
				       .ns = (int64_t)amount * 1000000 };

	crowd_run(&job);
}

static void obey(const char *line)
{
	char order[16], where[128], to[INET_ADDRSTRLEN] = "";
	unsigned long at_once = 0;
	unsigned long long amount;
	struct in_addr address;
	int n = sscanf(line, "%15s %127s %llu %lu %15s", order, where, &amount, &at_once, to);

	if (n == 3 && strcmp(order, "release") == 0) {
		close_range(STDERR_FILENO + 1, ~0u, 0);
		puts("{\"ok\":true,\"ns\":0}");
	} else if (n == 3) {
		run_transfer(order, where, amount);
	} else if (n == 4 && at_once > 0 && strcmp(order, "flood") == 0 && inet_pton(AF_INET, where, &address) == 1) {
		flood_run(address, (uint16_t)at_once, (int64_t)amount * 1000000);
	} else if (n == 5 && at_once > 0 && inet_pton(AF_INET, to, &address) == 1) {
		dns_run(address, where, (int64_t)amount * 1000000, at_once);
	} else if (n == 4 && at_once > 0) {
		run_crowd(order, where, amount, at_once);
	} else {
		puts("{\"ok\":false,\"ns\":0}");
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[256];
	struct rlimit limit;

	if (argc < 2 || argc > 3 || inet_pton(AF_INET, argv[1], &way.address) != 1) {
		fputs("usage: client ADDRESS [PROXY_PORT]\n", stderr);
		return 2;
	}
	way.proxy = argc == 3 ? (uint16_t)strtoul(argv[2], NULL, 10) : 0;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	puts("{\"ok\":true,\"ns\":0}");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		obey(line);
	return 0;
}
