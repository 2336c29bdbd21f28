/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other end of the measurements, as dumb and cheap as can be: one process, one loop.
 *
 *   server ADDRESS PORT…
 *
 * What a connection's first bytes are says what it gets:
 *
 *   get N\n             N bytes
 *   put N\n             reads N bytes, then answers with one
 *   GET /N HTTP/1.1     a response with a body of N bytes
 *   PUT /N HTTP/1.1     reads a body of N bytes, then answers 200
 *   a TLS record        one byte
 *
 * and then the same again. It is the name server too: every A query on UDP port 53 is answered with ADDRESS, every other with "no data".
 * Prints "ready" when it listens and ends when its standard input does.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE	    (128 * 1024) /* bytes of one send() or recv() of a body */
#define HEAD_MAX    2048
#define DNS_MAX	    512
#define EVENTS_MAX  256
#define BACKLOG	    4096
#define DNS_HEADER  12
#define TLS_RECORD  0x16
#define PORT_DOMAIN 53

enum kind { KIND_LISTENER, KIND_DNS, KIND_STDIN, KIND_CONN };

enum mode { MODE_HEAD, MODE_SEND, MODE_TAKE };

struct source {
	enum kind kind;
	int fd;
	/* of a connection */
	enum mode mode;
	bool http;
	uint64_t left; /* bytes of the body still to be sent or taken */
	size_t n_head;
	char head[HEAD_MAX];
};

static struct in_addr own;
static int loop;
static uint8_t piece[PIECE];

static void fail(const char *what)
{
	fprintf(stderr, "server: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* A source that epoll tells about; it stays the loop's. */
static struct source *watch(int fd, enum kind kind)
{
	struct source *s = calloc(1, sizeof(*s));
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = s };

	if (!s || epoll_ctl(loop, EPOLL_CTL_ADD, fd, &ev))
		fail("epoll");
	s->fd = fd;
	s->kind = kind;
	return s;
}

static void open_socket(int type, uint16_t port, enum kind kind)
{
	const struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = own };
	const int on = 1;
	int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, (const struct sockaddr *)&sin, sizeof(sin)) || (type == SOCK_STREAM && listen(fd, BACKLOG)))
		fail("socket");
	watch(fd, kind);
}

/* ---- DNS ---- */

static void answer_dns(int fd)
{
	static const uint8_t answer[] = { 0xc0, DNS_HEADER, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4 };
	uint8_t msg[DNS_MAX + sizeof(answer) + sizeof(own)];
	struct sockaddr_in peer;
	socklen_t len = sizeof(peer);
	ssize_t got;
	size_t end;

	while ((got = recvfrom(fd, msg, DNS_MAX, 0, (struct sockaddr *)&peer, &len)) > DNS_HEADER) {
		for (end = DNS_HEADER; end < (size_t)got && msg[end]; end += msg[end] + 1u)
			;
		end += 5; /* the root label, type, class */
		if (end > (size_t)got)
			continue;
		memset(msg + 6, 0, 6); /* no answer, no authority, and the question's EDNS stays away */
		msg[2] = 0x81;
		msg[3] = 0x80;
		if (msg[end - 3] == 1) {
			msg[7] = 1;
			memcpy(msg + end, answer, sizeof(answer));
			memcpy(msg + end + sizeof(answer), &own, sizeof(own));
			end += sizeof(answer) + sizeof(own);
		}
		(void)sendto(fd, msg, end, 0, (struct sockaddr *)&peer, len);
		len = sizeof(peer);
	}
}

/* ---- connections ---- */

static void wait_for(struct source *s, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = s };

	if (epoll_ctl(loop, EPOLL_CTL_MOD, s->fd, &ev))
		fail("epoll");
}

static void end(struct source *s)
{
	close(s->fd);
	free(s);
}

static void reply(struct source *s, const char *text)
{
	/* Small, and the socket's buffer is empty. */
	(void)!send(s->fd, text, strlen(text), MSG_NOSIGNAL);
}

/* Looks at a request. False when it is not complete yet. */
static bool begin(struct source *s)
{
	const char *end;
	char text[128];
	bool get;

	if ((uint8_t)s->head[0] == TLS_RECORD) {
		reply(s, ".");
		return true;
	}
	s->http = s->head[0] == 'G' || s->head[0] == 'P';
	get = s->head[0] == 'G' || s->head[0] == 'g';
	end = memmem(s->head, s->n_head, s->http ? "\r\n\r\n" : "\n", s->http ? 4 : 1);
	if (!end)
		return false;
	s->left = strtoull(s->head + (s->http ? 5 : 4), NULL, 10);
	/* What came with the head is of the body already. */
	if (!get)
		s->left -= s->n_head - (size_t)(end - s->head) - (s->http ? 4 : 1);
	s->mode = get ? MODE_SEND : MODE_TAKE;
	if (s->http && get) {
		snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %llu\r\n\r\n",
			 (unsigned long long)s->left);
		(void)!send(s->fd, text, strlen(text), MSG_NOSIGNAL | (s->left > 0 ? MSG_MORE : 0));
	}
	if (get)
		wait_for(s, EPOLLOUT);
	return true;
}

static ssize_t take_head(struct source *s)
{
	ssize_t n = recv(s->fd, s->head + s->n_head, HEAD_MAX - 1 - s->n_head, 0);

	if (n > 0) {
		s->n_head += (size_t)n;
		s->head[s->n_head] = '\0';
		if (begin(s))
			s->n_head = 0;
	}
	return n;
}

/* Moves a piece of a body. Returns what send() or recv() did. */
static ssize_t move(struct source *s)
{
	size_t want = s->left < PIECE ? (size_t)s->left : PIECE;
	ssize_t n = s->mode == MODE_SEND ? send(s->fd, piece, want, MSG_NOSIGNAL) : recv(s->fd, piece, want, 0);

	if (n <= 0)
		return n;
	s->left -= (uint64_t)n;
	if (s->left > 0)
		return n;
	if (s->mode == MODE_SEND)
		wait_for(s, EPOLLIN);
	else
		reply(s, s->http ? "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" : ".");
	s->mode = MODE_HEAD;
	return n;
}

static void serve(struct source *s)
{
	ssize_t n;

	do
		n = s->mode == MODE_HEAD ? take_head(s) : move(s);
	while (n > 0 && s->mode != MODE_HEAD);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		end(s);
}

static void take_all(int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		watch(fd, KIND_CONN);
	if (errno != EAGAIN && errno != ECONNABORTED)
		fail("accept");
}

static void handle(struct source *s)
{
	char byte;

	switch (s->kind) {
	case KIND_LISTENER:
		take_all(s->fd);
		break;
	case KIND_DNS:
		answer_dns(s->fd);
		break;
	case KIND_STDIN:
		if (read(s->fd, &byte, 1) <= 0)
			exit(0);
		break;
	case KIND_CONN:
		serve(s);
		break;
	}
}

int main(int argc, char **argv)
{
	struct epoll_event events[EVENTS_MAX];
	struct rlimit limit;
	int n;

	if (argc < 3 || inet_pton(AF_INET, argv[1], &own) != 1) {
		fputs("usage: server ADDRESS PORT...\n", stderr);
		return 2;
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	loop = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 2; i < argc; i++)
		open_socket(SOCK_STREAM, (uint16_t)strtoul(argv[i], NULL, 10), KIND_LISTENER);
	open_socket(SOCK_DGRAM, PORT_DOMAIN, KIND_DNS);
	watch(STDIN_FILENO, KIND_STDIN);
	puts("ready");
	fflush(stdout);
	while ((n = epoll_wait(loop, events, EVENTS_MAX, -1)) >= 0 || errno == EINTR)
		for (int i = 0; i < n; i++)
			handle(events[i].data.ptr);
	fail("epoll_wait");
}
