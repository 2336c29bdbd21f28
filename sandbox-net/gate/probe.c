/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four probes at once, each on a non-blocking socket of its own: begun, then
 * polled until all have the nonce. The first wrong or missing answer ends it.
 */
#include "sandbox-net/gate/probe.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/err.h"

struct probe {
	const char *what;
	const char *to;
	int type;
	int fd;
	size_t len; /* bytes of the answer so far */
	uint8_t answer[HANDOFF_NONCE];
};

/* Opens and begins one. Returns 0 or -1. */
static int begin(struct probe *p, struct err *err)
{
	/* Ends with a reset: a socket of G that waited for our last word would keep G alive after its proxy. */
	static const struct linger now = { .l_onoff = 1 };
	static const char question[] = "netgate";
	struct sockaddr_storage ss;
	struct endpoint to;
	socklen_t len;

	if (endpoint_parse(p->to, strlen(p->to), 53, &to))
		return err_set(err, "%s is no address", p->to);
	len = endpoint_to_sockaddr(&to, &ss);
	p->fd = socket(ss.ss_family, p->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->fd < 0)
		return err_set_errno(err, errno, "%s socket", p->what);
	(void)setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	if (connect(p->fd, (struct sockaddr *)&ss, len) && errno != EINPROGRESS)
		return err_set_errno(err, errno, "%s to %s", p->what, p->to);
	if (p->type == SOCK_DGRAM && send(p->fd, question, sizeof(question), 0) < 0)
		return err_set_errno(err, errno, "%s to %s", p->what, p->to);
	return 0;
}

/* Reads what is there. Returns 1 when the whole nonce has come, 0 while bytes are missing, or -1. */
static int advance(struct probe *p, const uint8_t *nonce, struct err *err)
{
	ssize_t n = recv(p->fd, p->answer + p->len, sizeof(p->answer) - p->len, MSG_TRUNC * (p->type == SOCK_DGRAM));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		return err_set_errno(err, errno, "%s to %s", p->what, p->to);
	if (n == 0 || (p->type == SOCK_DGRAM && n != HANDOFF_NONCE))
		return err_set(err, "%s to %s: the answer is not the gate's", p->what, p->to);
	p->len += (size_t)n;
	if (p->len < HANDOFF_NONCE)
		return 0;
	if (memcmp(p->answer, nonce, HANDOFF_NONCE))
		return err_set(err, "%s to %s: another gate answered", p->what, p->to);
	return 1;
}

static int wait_for_all(struct probe *probes, size_t n, const uint8_t *nonce, struct err *err)
{
	uint64_t until = clock_mono_us() + PROBE_WAIT_MS * 1000;
	struct pollfd pfds[8];
	size_t done = 0;

	for (size_t i = 0; i < n; i++)
		pfds[i] = (struct pollfd){ .fd = probes[i].fd, .events = POLLIN };
	while (done < n) {
		uint64_t now = clock_mono_us();

		if (now < until && poll(pfds, n, (int)((until - now) / 1000 + 1)) < 0 && errno != EINTR)
			return err_set_errno(err, errno, "poll");
		for (size_t i = 0; i < n; i++) {
			int r = pfds[i].fd >= 0 ? advance(&probes[i], nonce, err) : 0;

			if (r < 0)
				return -1;
			if (r > 0) {
				pfds[i].fd = -1;
				done++;
			} else if (pfds[i].fd >= 0 && now >= until) {
				return err_set(err, "%s to %s: no answer in %d s", probes[i].what, probes[i].to,
					       PROBE_WAIT_MS / 1000);
			}
		}
	}
	return 0;
}

int probe_gate(const struct gate_layout *layout, const uint8_t nonce[HANDOFF_NONCE], struct err *err)
{
	char gate4[ADDR_STRLEN], gate6[ADDR_STRLEN];
	struct probe probes[] = {
		{ .what = "TCP", .to = PROBE_ADDR4 ":9", .type = SOCK_STREAM, .fd = -1 },
		{ .what = "TCP", .to = "[" PROBE_ADDR6 "]:9", .type = SOCK_STREAM, .fd = -1 },
		{ .what = "DNS", .to = addr_format(&layout->gate4, gate4), .type = SOCK_DGRAM, .fd = -1 },
		{ .what = "DNS", .to = addr_format(&layout->gate6, gate6), .type = SOCK_DGRAM, .fd = -1 },
	};
	size_t n = sizeof(probes) / sizeof(probes[0]);
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = begin(&probes[i], err);
	if (r == 0)
		r = wait_for_all(probes, n, nonce, err);
	for (size_t i = 0; i < n; i++)
		if (probes[i].fd >= 0)
			close(probes[i].fd);
	return r;
}
