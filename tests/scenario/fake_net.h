/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's sockets and pipes, replaced: the system calls that proxy/conn and its neighbours make
 * are linked to functions of this file (ld --wrap), which know no descriptor but their own.
 *
 * A tube is one TCP connection: netgate holds one end as a descriptor, the test is the peer. What TCP does
 * is kept: a FIN behind the last byte; a reset that leaves what was received readable and then is an error once;
 * close() as a reset when SO_LINGER {1,0} is set or something was left unread, and then without what the peer had
 * not taken; SIOCOUTQ. Delivery and acknowledgement take no time. Descriptors are
 * never used again, so that an old one is always noticed.
 */
#ifndef TESTS_SCENARIO_FAKE_NET_H
#define TESTS_SCENARIO_FAKE_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/bytes.h"

#define NET_OPEN_WINDOW UINT64_MAX
#define NET_SENT_MAX	(8 * 1024 * 1024) /* bytes that are kept of what was sent into one tube */

struct tube {
	struct tube *next;
	int fd; /* netgate's; -1: not accepted yet, or closed */
	bool upstream;
	struct endpoint local, remote; /* of netgate's end */

	/* from the peer */
	struct bytes rx; /* not read yet */
	bool rx_fin;
	uint64_t taken; /* bytes that netgate read */

	/* to the peer */
	struct bytes tx; /* sent and not taken by the peer */
	bool tx_fin;	 /* netgate's FIN is behind that */
	uint64_t put;	 /* bytes that netgate sent */
	uint64_t put_in_turn;
	uint64_t window;   /* bytes that the peer will still take */
	struct bytes got;  /* what it took, and nobody looked at yet */
	struct bytes sent; /* all that netgate sent, up to NET_SENT_MAX */
	bool got_fin, got_reset;

	bool peer_closed; /* the peer is gone: what is sent is answered by a reset */
	bool dead;	  /* reset by the peer, or never connected */
	int error;	  /* SO_ERROR */
	bool linger_reset;
	bool accepted, connecting, connected;
	uint64_t connect_us; /* when connecting ends */
	int connect_error;
	uint64_t conn; /* whose it is, once it is on record (ledger.h); 0: nobody's */
};

/* Forgets everything. */
void net_reset(void);

/* A listening descriptor for listener_new(), and one that takes the log's lines. Both are closed by net_close(). */
int net_listen(void);
int net_log(void);
void net_close(int fd);

/* What the log does: writes fail with this errno; 0: they work. */
void net_log_error(int error);

/* Bytes that one send takes in a turn of the loop; 0: as many as there are. */
void net_narrow(size_t bytes);

/* How connect() to an address ends: after `us`, with an errno or 0. LOOP_FOREVER: never. */
void net_route(const struct addr *a, uint64_t us, int error);

/* A client of the sandbox connects from `src` to `dst`. */
struct tube *net_client(const struct endpoint *src, const struct endpoint *dst);

/* The last upstream connection that netgate asked for SO_ERROR of; NULL: none. */
struct tube *net_last_checked(void);

/* All tubes, the oldest first. */
struct tube *net_tubes(void);

/* The peer's side. */
void tube_send(struct tube *t, const void *p, size_t n);
void tube_shut(struct tube *t);
void tube_close(struct tube *t);
void tube_abort(struct tube *t);
void tube_window(struct tube *t, uint64_t bytes);

/* For the loop: is the descriptor one; EV_READ and EV_WRITE; a turn begins; the next time that something happens by itself. */
bool net_is_open(int fd);
short net_ready(int fd);
void net_turn(void);
uint64_t net_due(void);

/* Descriptors that are open. */
size_t net_open(void);

#endif
