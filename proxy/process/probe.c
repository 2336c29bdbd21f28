/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. The launcher probes the gate's own address, which is also where an unbound answer comes from. */
#include "proxy/process/probe.h"

#include <event2/event.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/handoff.h"

struct probe {
	struct event *ev[2];
	const uint8_t *nonce;
	uint64_t answered;
};

static void on_datagram(evutil_socket_t fd, short what, void *arg)
{
	struct probe *p = arg;
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);
	uint8_t byte;

	(void)what;
	if (recvfrom((int)fd, &byte, 1, MSG_DONTWAIT | MSG_TRUNC, (struct sockaddr *)&peer, &len) < 0)
		return;
	p->answered++;
	(void)!sendto((int)fd, p->nonce, HANDOFF_NONCE, MSG_DONTWAIT, (struct sockaddr *)&peer, len);
}

struct probe *probe_new(struct event_base *base, int udp4, int udp6, const uint8_t *nonce)
{
	struct probe *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->nonce = nonce;
	p->ev[0] = event_new(base, udp4, EV_READ | EV_PERSIST, on_datagram, p);
	p->ev[1] = event_new(base, udp6, EV_READ | EV_PERSIST, on_datagram, p);
	if (!p->ev[0] || !p->ev[1] || event_add(p->ev[0], NULL) < 0 || event_add(p->ev[1], NULL) < 0) {
		probe_free(p);
		return NULL;
	}
	return p;
}

uint64_t probe_answered(const struct probe *p)
{
	return p->answered;
}

void probe_free(struct probe *p)
{
	if (!p)
		return;
	for (int i = 0; i < 2; i++)
		if (p->ev[i])
			event_free(p->ev[i]);
	free(p);
}
