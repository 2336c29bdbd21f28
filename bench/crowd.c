/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each slot is one connection after the other. A connection goes through its stages in order, and
 * waits in each for what the other side sends:
 *
 *   CONNECT   to be connected                  then sends CONNECT, a ClientHello or a request
 *   TUNNEL    the answer to CONNECT            then sends the ClientHello
 *   HELLO     the server's byte                then it is done: closed, or kept
 *   ANSWER    a response                       then it is done: the next request
 *
 * The time of a connection runs from connect() to the server's byte, that of a request from it to the end of its response.
 */
#include "bench/crowd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/hello.h"
#include "bench/net.h"

#define WAIT_MS	    20000 /* nothing happened for so long: give up */
#define EVENTS_MAX  256
#define SAMPLES_MAX (1u << 20) /* of later ones no time is kept */
#define PORT_TLS    443
#define PORT_HTTP   80

enum stage { STAGE_CONNECT, STAGE_TUNNEL, STAGE_HELLO, STAGE_ANSWER };

struct slot {
	int fd; /* -1: none */
	enum stage stage;
	int64_t since;
	size_t n;
	char text[TEXT_MAX]; /* of an answer, as far as it is there */
};

struct crowd {
	const struct crowd_job *job;
	int loop;
	int64_t start;
	unsigned long begun, open, done, failed;
	uint32_t *us; /* of the first SAMPLES_MAX */
	uint8_t hello[HELLO_MAX];
	size_t n_hello;
};

/* A busy machine may need longer than the given time for the first: it is waited for. */
static bool is_over(const struct crowd *c)
{
	if (c->job->count)
		return c->begun == c->job->count;
	return now_ns() - c->start >= c->job->ns && c->done + c->failed > 0;
}

static bool wait_for(const struct crowd *c, struct slot *s, uint32_t events, int what)
{
	struct epoll_event ev = { .events = events, .data.ptr = s };

	return epoll_ctl(c->loop, what, s->fd, &ev) == 0;
}

static void open_one(struct crowd *c, struct slot *s)
{
	const struct crowd_job *job = c->job;

	s->fd = -1;
	while (!is_over(c)) {
		c->begun++;
		s->stage = STAGE_CONNECT;
		s->n = 0;
		s->since = now_ns();
		s->fd = start_connect(job->way, job->http ? PORT_HTTP : PORT_TLS, SOCK_NONBLOCK);
		if (s->fd >= 0 && wait_for(c, s, EPOLLOUT, EPOLL_CTL_ADD)) {
			c->open++;
			return;
		}
		c->failed++;
		if (s->fd >= 0)
			close(s->fd);
		s->fd = -1;
	}
}

/* Ends a connection, unless it is to stay, and begins the next. */
static void end_one(struct crowd *c, struct slot *s, bool keep)
{
	c->open--;
	if (keep)
		epoll_ctl(c->loop, EPOLL_CTL_DEL, s->fd, NULL);
	else
		close(s->fd);
	open_one(c, s);
}

static void fail_one(struct crowd *c, struct slot *s)
{
	c->failed++;
	end_one(c, s, false);
}

static void sample(struct crowd *c, const struct slot *s)
{
	if (c->done < SAMPLES_MAX)
		c->us[c->done] = (uint32_t)((now_ns() - s->since) / 1000);
	c->done++;
}

/* Sends what the next stage waits for the answer to. */
static bool send_next(const struct crowd *c, struct slot *s)
{
	const struct crowd_job *job = c->job;
	char text[TEXT_MAX];
	const void *p = text;
	size_t n;

	if (job->http) {
		n = request_text(job->way, job->host, false, 1, text);
		s->stage = STAGE_ANSWER;
	} else if (job->way->proxy && s->stage == STAGE_CONNECT) {
		n = connect_text(job->host, PORT_TLS, text);
		s->stage = STAGE_TUNNEL;
	} else {
		p = c->hello;
		n = c->n_hello;
		s->stage = STAGE_HELLO;
	}
	s->n = 0;
	return send(s->fd, p, n, MSG_NOSIGNAL) == (ssize_t)n;
}

/* Takes what has come of a response with a body of so many bytes. 1: all of a good one is there; 0: not yet; -1: it is none. */
static int take_answer(struct slot *s, size_t body)
{
	ssize_t got = recv(s->fd, s->text + s->n, sizeof(s->text) - 1 - s->n, 0);
	const char *end;

	if (got < 0 && errno == EAGAIN)
		return 0;
	if (got <= 0)
		return -1;
	s->n += (size_t)got;
	s->text[s->n] = '\0';
	end = strstr(s->text, "\r\n\r\n");
	if (!end || s->n < (size_t)(end - s->text) + 4 + body)
		return s->n < sizeof(s->text) - 1 ? 0 : -1;
	return strncmp(s->text, "HTTP/1.1 200 ", 13) == 0 || strncmp(s->text, "HTTP/1.0 200 ", 13) == 0 ? 1 : -1;
}

static void hello_answered(struct crowd *c, struct slot *s)
{
	const struct crowd_job *job = c->job;
	char text[TEXT_MAX], byte;
	int n;

	if (recv(s->fd, &byte, 1, 0) != 1 || byte != '.') {
		fail_one(c, s);
		return;
	}
	sample(c, s);
	if (job->unread) {
		n = snprintf(text, sizeof(text), "get %llu\n", (unsigned long long)job->unread);
		if (send(s->fd, text, (size_t)n, MSG_NOSIGNAL) != n) {
			fail_one(c, s);
			return;
		}
	}
	end_one(c, s, job->count > 0);
}

static void request_answered(struct crowd *c, struct slot *s)
{
	sample(c, s);
	if (is_over(c)) {
		end_one(c, s, false);
		return;
	}
	s->since = now_ns();
	if (!send_next(c, s))
		fail_one(c, s);
}

static void step(struct crowd *c, struct slot *s)
{
	int answer;

	switch (s->stage) {
	case STAGE_CONNECT:
		if (c->job->http)
			s->since = now_ns();
		if (!send_next(c, s) || !wait_for(c, s, EPOLLIN, EPOLL_CTL_MOD))
			fail_one(c, s);
		break;
	case STAGE_HELLO:
		hello_answered(c, s);
		break;
	case STAGE_TUNNEL:
	case STAGE_ANSWER:
		answer = take_answer(s, s->stage == STAGE_ANSWER ? 1 : 0);
		if (answer < 0)
			fail_one(c, s);
		else if (answer > 0 && s->stage == STAGE_ANSWER)
			request_answered(c, s);
		else if (answer > 0 && !send_next(c, s))
			fail_one(c, s);
		break;
	}
}

/* How long nothing may happen. */
static int patience_ms(const struct crowd *c)
{
	int64_t left = c->job->ns - (now_ns() - c->start);

	if (c->job->count || c->done + c->failed == 0)
		return WAIT_MS;
	return left > 0 ? (int)(left / 1000000) + 1 : 0;
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void print(const struct crowd *c)
{
	size_t n = c->done < SAMPLES_MAX ? c->done : SAMPLES_MAX;
	int64_t ns = now_ns() - c->start;

	qsort(c->us, n, sizeof(*c->us), ascending);
	printf("{\"ok\":%s,\"ns\":%lld,\"done\":%lu,\"failed\":%lu,\"p50_us\":%u,\"p99_us\":%u}\n",
	       n > 0 && (!c->job->count || c->done == c->job->count) ? "true" : "false", (long long)ns, c->done,
	       c->failed, n ? c->us[n / 2] : 0, n ? c->us[n * 99 / 100] : 0);
}

void crowd_run(const struct crowd_job *job)
{
	struct crowd c = { .job = job, .loop = epoll_create1(EPOLL_CLOEXEC), .start = now_ns() };
	struct slot *slots = calloc(job->at_once, sizeof(*slots));
	struct epoll_event events[EVENTS_MAX];
	int n = 1;

	c.us = malloc(SAMPLES_MAX * sizeof(*c.us));
	if (!slots || !c.us || c.loop < 0) {
		perror("client");
		exit(1);
	}
	c.n_hello = hello_make(job->host, c.hello);
	for (unsigned long i = 0; i < job->at_once; i++)
		open_one(&c, &slots[i]);
	while (c.open > 0 && n > 0 && (job->count || !is_over(&c))) {
		n = epoll_wait(c.loop, events, EVENTS_MAX, patience_ms(&c));
		for (int i = 0; i < n; i++)
			step(&c, events[i].data.ptr);
	}
	/* What was not answered in time is not counted, and kept connections are in no slot any more. */
	for (unsigned long i = 0; i < job->at_once; i++)
		if (slots[i].fd >= 0)
			close(slots[i].fd);
	print(&c);
	close(c.loop);
	free(slots);
	free(c.us);
}
