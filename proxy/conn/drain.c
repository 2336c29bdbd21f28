/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DRAIN: the last bytes to the client, FIN, and the wait for its own end.
 *
 * The record of the leg is written by now; what is left is that the client
 * gets what it was sent. close() with SO_LINGER {1,0} would throw away what it
 * has not acknowledged.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "proxy/conn/charge.h"
#include "proxy/conn/conn.h"

#define DRAIN_LOOK_MIN_US 2000u	  /* between two looks at what the client has acknowledged, */
#define DRAIN_LOOK_MAX_US 500000u /* doubling while nothing happens */

enum step conn_drain(struct conn *c)
{
	conn_set_state(c, CONN_DRAIN);
	bytes_free(&c->in);
	c->undelivered = UINT64_MAX;
	c->look_us = DRAIN_LOOK_MIN_US;
	return STEP_AGAIN;
}

/*
 * Sets the deadline by what is left: a client that still takes bytes, however
 * slowly, has the idle limit from the last one it took; one that has all of them
 * has CONN_DRAIN_S to close. Nothing tells of an acknowledgement, so it is looked at now and then.
 */
static void drain_deadline(struct conn *c)
{
	uint64_t left = c->down.in_pipe + bytes_len(&c->down.head);
	uint64_t now;
	int unacked = 0;

	if (ioctl(c->client_fd, SIOCOUTQ, &unacked) == 0 && unacked > 0)
		left += (uint64_t)unacked;
	if (left < c->undelivered) {
		conn_deadline(c, left > 0 ? charge_idle_us(c) : (uint64_t)CONN_DRAIN_S * US_PER_S);
		c->look_us = DRAIN_LOOK_MIN_US;
	} else if (c->look_us < DRAIN_LOOK_MAX_US) {
		c->look_us *= 2;
	}
	c->undelivered = left;
	now = clock_mono_us();
	conn_arm(c, left > 0 ? c->look_us : c->deadline_us > now ? c->deadline_us - now : 0);
}

enum step drain_step(struct conn *c)
{
	uint8_t discard[4096];
	uint64_t none = 0;
	enum flow_result r = flow_run(&c->down, c->env->pool, &none);
	ssize_t n;

	if (r == FLOW_TO_ERROR)
		return STEP_CLOSE;
	drain_deadline(c);
	if (r == FLOW_WAIT_WRITE)
		return STEP_WAIT;
	if (!c->client_shut && shutdown(c->client_fd, SHUT_WR) < 0)
		return STEP_CLOSE;
	c->client_shut = true;
	for (int i = 0; i < 16 && !c->client_eof; i++) {
		n = recv(c->client_fd, discard, sizeof(discard), MSG_DONTWAIT);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? STEP_WAIT : STEP_CLOSE;
		c->client_eof = n == 0;
	}
	/* With SO_LINGER {1,0}, close() would throw away what is not acknowledged yet. */
	return c->client_eof && c->undelivered == 0 ? STEP_CLOSE : STEP_WAIT;
}
