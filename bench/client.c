/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs in the sandbox (or, for comparison, in a namespace that is routed):
 *
 *   client ADDRESS
 *
 * Takes orders from its standard input, a line each, and answers each with a line of JSON:
 *
 *   get|put PORT BYTES              one transfer, raw: see server.c
 *   http-get|http-put HOST BYTES    one transfer as the body of a request to port 80
 *   hellos HOST COUNT AT_ONCE       connections to port 443: a ClientHello there, a byte back, close
 *   hold HOST COUNT AT_ONCE         the same without the close
 *
 * Ends with its standard input.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench/hello.h"

#define PIECE	   (128 * 1024) /* bytes of one send() or recv() */
#define WAIT_MS	   20000	/* nothing happened for so long: give up */
#define EVENTS_MAX 256
#define TEXT_MAX   512

static struct in_addr server;
static uint8_t piece[PIECE];

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int start_connect(uint16_t port, int flags)
{
	const struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = server };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	if (fd >= 0 && connect(fd, (const struct sockaddr *)&sin, sizeof(sin)) && errno != EINPROGRESS) {
		close(fd);
		return -1;
	}
	return fd;
}

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
			return strncmp(head, "HTTP/1.1 200 ", 13) == 0;
	}
	return false;
}

static bool request(int fd, bool put, const char *host, uint64_t bytes)
{
	char text[TEXT_MAX];

	if (!host)
		snprintf(text, sizeof(text), "%s %llu\n", put ? "put" : "get", (unsigned long long)bytes);
	else if (put)
		snprintf(text, sizeof(text), "PUT /%llu HTTP/1.1\r\nHost: %s\r\nContent-Length: %llu\r\n\r\n",
			 (unsigned long long)bytes, host, (unsigned long long)bytes);
	else
		snprintf(text, sizeof(text), "GET /%llu HTTP/1.1\r\nHost: %s\r\n\r\n", (unsigned long long)bytes, host);
	return send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text);
}

/* `host`: as HTTP; NULL: raw. An upload ends when the server says that it has everything. */
static void transfer(bool put, uint16_t port, const char *host, uint64_t bytes)
{
	int64_t start = now_ns();
	int fd = start_connect(port, 0);
	bool ok = fd >= 0 && request(fd, put, host, bytes);

	if (ok && put)
		ok = send_bytes(fd, bytes) && (host ? take_head(fd) : take_bytes(fd, 1));
	else if (ok)
		ok = (!host || take_head(fd)) && take_bytes(fd, bytes);
	printf("{\"ok\":%s,\"ns\":%lld}\n", ok ? "true" : "false", (long long)(now_ns() - start));
	if (fd >= 0)
		close(fd);
}

/* ---- many connections ---- */

struct slot {
	int fd;
	bool asked; /* the hello is sent */
};

struct crowd {
	int loop;
	bool keep;
	uint8_t hello[HELLO_MAX];
	size_t n_hello;
	unsigned long to_start, open, done, failed;
};

static void open_one(struct crowd *c, struct slot *s)
{
	struct epoll_event ev = { .events = EPOLLOUT, .data.ptr = s };

	while (c->to_start > 0) {
		c->to_start--;
		*s = (struct slot){ .fd = start_connect(443, SOCK_NONBLOCK) };
		if (s->fd >= 0 && epoll_ctl(c->loop, EPOLL_CTL_ADD, s->fd, &ev) == 0) {
			c->open++;
			return;
		}
		c->failed++;
	}
}

static void close_one(struct crowd *c, struct slot *s, bool good)
{
	if (good)
		c->done++;
	else
		c->failed++;
	c->open--;
	if (!good || !c->keep)
		close(s->fd);
	else
		epoll_ctl(c->loop, EPOLL_CTL_DEL, s->fd, NULL);
	open_one(c, s);
}

static void step(struct crowd *c, struct slot *s)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = s };
	char byte;

	if (s->asked) {
		close_one(c, s, recv(s->fd, &byte, 1, 0) == 1 && byte == '.');
		return;
	}
	s->asked = send(s->fd, c->hello, c->n_hello, MSG_NOSIGNAL) == (ssize_t)c->n_hello;
	if (!s->asked || epoll_ctl(c->loop, EPOLL_CTL_MOD, s->fd, &ev))
		close_one(c, s, false);
}

static void connections(const char *host, unsigned long count, unsigned long at_once, bool keep)
{
	struct crowd c = { .loop = epoll_create1(EPOLL_CLOEXEC), .keep = keep, .to_start = count };
	struct slot *slots = calloc(at_once, sizeof(*slots));
	struct epoll_event events[EVENTS_MAX];
	int64_t start;
	int n = 1;

	c.n_hello = hello_make(host, c.hello);
	start = now_ns();
	for (unsigned long i = 0; slots && i < at_once; i++)
		open_one(&c, &slots[i]);
	while (c.open > 0 && n > 0) {
		n = epoll_wait(c.loop, events, EVENTS_MAX, WAIT_MS);
		for (int i = 0; i < n; i++)
			step(&c, events[i].data.ptr);
	}
	printf("{\"ok\":%s,\"ns\":%lld,\"done\":%lu}\n", c.done == count ? "true" : "false",
	       (long long)(now_ns() - start), c.done);
	close(c.loop);
	free(slots);
}

/* ---- orders ---- */

static void obey(const char *line)
{
	char order[16], where[128];
	unsigned long long amount;
	unsigned long at_once = 0;
	int n = sscanf(line, "%15s %127s %llu %lu", order, where, &amount, &at_once);

	if (n == 3 && strncmp(order, "http-", 5) == 0)
		transfer(strcmp(order, "http-put") == 0, 80, where, amount);
	else if (n == 3)
		transfer(strcmp(order, "put") == 0, (uint16_t)strtoul(where, NULL, 10), NULL, amount);
	else if (n == 4 && at_once > 0)
		connections(where, (unsigned long)amount, at_once, strcmp(order, "hold") == 0);
	else
		puts("{\"ok\":false,\"ns\":0}");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[256];
	struct rlimit limit;

	if (argc != 2 || inet_pton(AF_INET, argv[1], &server) != 1) {
		fputs("usage: client ADDRESS\n", stderr);
		return 2;
	}
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
