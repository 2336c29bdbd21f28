/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's beginning: directly, or to a proxy that is asked for the server. */
#include "bench/net.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int start_connect(const struct way *way, uint16_t port, int flags)
{
	const struct sockaddr_in sin = { .sin_family = AF_INET,
					 .sin_port = htons(way->proxy ? way->proxy : port),
					 .sin_addr = way->address };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	if (fd >= 0 && connect(fd, (const struct sockaddr *)&sin, sizeof(sin)) && errno != EINPROGRESS) {
		close(fd);
		return -1;
	}
	return fd;
}

size_t connect_text(const char *host, uint16_t port, char text[static TEXT_MAX])
{
	return (size_t)snprintf(text, TEXT_MAX, "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n\r\n", host, port, host,
				port);
}

size_t request_text(const struct way *way, const char *host, bool put, uint64_t bytes, char text[static TEXT_MAX])
{
	char length[64] = "";

	if (put)
		snprintf(length, sizeof(length), "Content-Length: %llu\r\n", (unsigned long long)bytes);
	return (size_t)snprintf(text, TEXT_MAX, "%s %s%s/%llu HTTP/1.1\r\nHost: %s\r\n%s\r\n", put ? "PUT" : "GET",
				way->proxy ? "http://" : "", way->proxy ? host : "", (unsigned long long)bytes, host,
				length);
}
