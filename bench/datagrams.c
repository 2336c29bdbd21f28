/* SPDX-License-Identifier: Apache-2.0 */
/* UDP: questions that wait for their answers, and datagrams that wait for nothing. */
#include "bench/datagrams.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/net.h"

#define PORT_DOMAIN 53
#define AT_ONCE_MAX 64
#define DNS_MAX	    512
#define LOST_MS	    1000 /* a question without an answer for so long is asked again */
#define LOST_MAX    20	 /* on a socket, without any answer: there will be none */
#define DATAGRAM    32	 /* bytes */

static int connected(struct in_addr address, uint16_t port, int flags)
{
	const struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = address };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | flags, 0);

	if (fd >= 0 && connect(fd, (const struct sockaddr *)&sin, sizeof(sin))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* A question for A records. Returns its length. `host`: of labels of at most 63 bytes. */
static size_t question(const char *host, uint8_t msg[static DNS_MAX])
{
	static const uint8_t head[] = { 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0 }, tail[] = { 0, 0, 1, 0, 1 };
	size_t n = sizeof(head);

	memcpy(msg, head, n);
	while (*host && n < DNS_MAX - 64 - sizeof(tail)) {
		size_t label = strcspn(host, ".");

		msg[n++] = (uint8_t)label;
		memcpy(msg + n, host, label);
		n += label;
		host += label + (host[label] == '.');
	}
	memcpy(msg + n, tail, sizeof(tail));
	return n + sizeof(tail);
}

/* An answer without error and with a record. */
static bool take_reply(int fd)
{
	uint8_t msg[DNS_MAX];
	ssize_t n = recv(fd, msg, sizeof(msg), 0);

	return n > 12 && (msg[3] & 0xf) == 0 && msg[7] > 0;
}

void dns_run(struct in_addr server, const char *host, int64_t ns, unsigned long at_once)
{
	unsigned long done = 0, lost = 0;
	struct pollfd fds[AT_ONCE_MAX];
	uint8_t msg[DNS_MAX];
	size_t n_msg = question(host, msg);
	int64_t start = now_ns();

	if (at_once > AT_ONCE_MAX)
		at_once = AT_ONCE_MAX;
	for (unsigned long i = 0; i < at_once; i++) {
		fds[i] = (struct pollfd){ .fd = connected(server, PORT_DOMAIN, 0), .events = POLLIN };
		(void)!send(fds[i].fd, msg, n_msg, 0);
	}
	while (now_ns() - start < ns || (done == 0 && lost < LOST_MAX * at_once)) {
		bool quiet = poll(fds, at_once, LOST_MS) == 0;

		for (unsigned long i = 0; i < at_once; i++) {
			if (!quiet && !fds[i].revents)
				continue;
			if (!quiet && take_reply(fds[i].fd))
				done++;
			else
				lost++;
			(void)!send(fds[i].fd, msg, n_msg, 0);
		}
	}
	printf("{\"ok\":%s,\"ns\":%lld,\"done\":%lu,\"failed\":%lu}\n", done ? "true" : "false",
	       (long long)(now_ns() - start), done, lost);
	for (unsigned long i = 0; i < at_once; i++)
		close(fds[i].fd);
}

void flood_run(struct in_addr address, uint16_t port, int64_t ns)
{
	static const uint8_t datagram[DATAGRAM];
	int fd = connected(address, port, 0);
	int64_t start = now_ns();
	unsigned long sent = 0;

	/* An error that a refusal left behind is reported by the next send(), which then sends nothing. */
	while (now_ns() - start < ns)
		if (send(fd, datagram, sizeof(datagram), 0) == (ssize_t)sizeof(datagram))
			sent++;
	printf("{\"ok\":%s,\"ns\":%lld,\"done\":%lu,\"failed\":0}\n", sent ? "true" : "false",
	       (long long)(now_ns() - start), sent);
	close(fd);
}
