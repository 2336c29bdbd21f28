/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One TCP connection from the sandbox, from accept to close.
 *
 * States (conn_set_state() checks the transitions):
 *
 *   FRONT ────┐
 *     │       ▼
 *   HELLO ──► DIAL ──► TUNNEL ──► DRAIN ──► (closed)
 *     │        ▲ │      ▲ │         ▲
 *     │        │ ▼      ▼ ▼         │
 *     └──────► HTTP ◄─────┴─────────┘ from every state
 *
 * FRONT   front.c, socks.c: the client spoke to the gate itself, as to a proxy; collects what it asks for
 * HELLO   collects the client's first bytes in `in` until they name a host
 * DIAL    a verdict allowed it and is on record; looking up and connecting
 * TUNNEL  moves bytes both ways; with `peek` set, what the client sends first is still judged;
 *         with `retry`, a second ClientHello would be
 * HTTP    http.c: each request on the connection is judged before any of it is sent
 * DRAIN   delivers the last bytes (an alert, an error page), waits for the client's end
 *
 * Invariants: no byte of the sandbox goes upstream before an allowing
 * decision is on record. What was judged is sent from netgate's own copy.
 * Event interest is derived from the state by conn_interest() alone. A step
 * answers again, wait or close; only conn_run() frees, and only at its end.
 * Each allowing decision that dialled ("leg") gets exactly one close record, from conn_end_leg().
 *
 * The client socket has SO_LINGER {1,0} from accept on: without it, a sandbox
 * that never reads would keep the gate's namespace alive through an orphaned
 * socket. So a graceful end is shutdown, wait for the client's FIN and for its
 * acknowledgements, close: DRAIN.
 */
#ifndef PROXY_CONN_CONN_H
#define PROXY_CONN_CONN_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/queue.h>

#include "proxy/audit/audit.h"
#include "proxy/conn/env.h"
#include "proxy/conn/flow.h"

struct dial;
struct http_session;
struct retry;

#define CONN_HELLO_S	  10	/* total, from accept to a complete hello; and for each HTTP head */
#define CONN_DRAIN_S	  5	/* for the client to close when it has everything */
#define CONN_PEEK_WORD_MS 1000	/* how long a first word that begins no HTTP request is held */
#define CONN_PEEK_MAX	  65536 /* bytes of a client's first flight that are held until it is clear what they are */
#define CONN_AUDIT_SNIFF_MS \
	500 /* audit mode: how long a connection without a rule may stay silent before its address decides */

enum conn_state { CONN_FRONT, CONN_HELLO, CONN_DIAL, CONN_TUNNEL, CONN_HTTP, CONN_DRAIN };

enum step { STEP_AGAIN, STEP_WAIT, STEP_CLOSE };

struct conn {
	struct conn_env *env;
	LIST_ENTRY(conn) link;
	uint64_t id;
	uint64_t accepted_us, active_us, deadline_us; /* CLOCK_MONOTONIC */
	uint64_t armed_us;			      /* when timer_ev fires; 0: it is not pending */
	struct endpoint src, local;		      /* the sandbox's side; the address that it connected to */
	struct endpoint dst; /* where it wants to go: `local`, or what a front door was asked for (ADDR_NONE: a name) */
	const struct name *dns_name; /* whose synthetic address `dst` is; NULL: another address */
	struct name asked;	     /* by CONNECT or SOCKS5; len 0: none, or an address */
	struct name host;	     /* of the present leg; len 0: an address rule */
	struct endpoint leg_dst;     /* `dst` when the leg began */
	uint64_t dial_us;	     /* when the last dial began */
	uint64_t leg_up, leg_down;   /* flow counters when the leg began */
	uint64_t moved;		     /* sum of the flow counters when last looked at: activity */
	uint64_t undelivered;	     /* DRAIN: bytes that the client has not acknowledged, when last looked at */
	uint64_t look_us;	     /* DRAIN: until the next look */
	struct event client_ev, upstream_ev, timer_ev;
	int client_fd, upstream_fd; /* -1: none */
	short client_mask, upstream_mask;
	uint8_t state;		 /* enum conn_state */
	uint8_t door;		 /* enum door: of what is being asked for */
	bool greeted;		 /* FRONT: a SOCKS5 client had its first answer */
	bool unanswered;	 /* CONNECT or SOCKS5: the client waits for the answer to its request */
	uint8_t proto;		 /* enum proto: what the last decision was about, and so how to say no */
	bool decided;		 /* some decision is on record: every connection gets one, whatever happens */
	bool leg;		 /* an allowing decision is on record and has no close record yet */
	bool peek;		 /* TUNNEL: the client's first bytes are not judged yet */
	bool up_done, down_done; /* TUNNEL: that direction has ended */
	bool up_dead;		 /* TUNNEL: upstream takes nothing any more, but may still have sent something */
	bool first_end_set;
	uint8_t first_end;		   /* enum close_end: who ended first */
	bool client_shut, client_eof;	   /* DRAIN */
	bool client_quiet, upstream_quiet; /* nothing to read there: quiet.h */
	struct bytes in;		   /* from the client, not judged yet */
	struct flow up, down;
	struct dial *dial;
	struct audit_waiter
		record; /* of an allow that is not in the log yet: until it is, the connection stands still */
	const struct policy_rule *claimed, *charged; /* rules with limits (charge.h); NULL: none */
	struct retry *retry;	   /* TUNNEL: watched for a second ClientHello (retry.h); NULL: not, or not any more */
	struct http_session *http; /* NULL until the first request */
};

/* What was seen on the connection, for one decision. Borrowed. */
struct conn_seen {
	enum proto proto;
	const struct name *sni, *host;
	const void *raw_name; /* of a name that is none */
	size_t raw_name_len;
	const char *alpn;
	bool ech;
	const char *method, *path;
	size_t method_len, path_len;
	size_t len; /* bytes that were judged and go upstream if it is allowed: all of them, or none */
};

/* The one setter of the state. */
void conn_set_state(struct conn *c, enum conn_state state);

/*
 * Asks match(), records the decision and returns it; an allow that could not
 * be recorded comes back as a LOG_UNAVAILABLE denial. `seen` must outlive the use of verdict.host.
 */
struct verdict conn_decide(struct conn *c, const struct conn_seen *seen);

/*
 * The same for a kept connection's next request, whose record may share a system call with others' (audit_decision_later()).
 * While c->record.waits, nothing is sent: conn_run() sees to that. Then the connection goes on, or http_unrecorded() ends it.
 */
struct verdict conn_decide_later(struct conn *c, const struct conn_seen *seen);

/* What becomes of an allow that can't be recorded. */
extern const struct verdict conn_unrecorded;

/* The request that match() is asked about. Borrows from both. */
struct request conn_request(const struct conn *c, const struct conn_seen *seen);

/* Records a denial that needs no policy. */
struct verdict conn_refuse(struct conn *c, const struct conn_seen *seen, enum reason reason);

/* Starts a leg for an allowing verdict: dials its host (or the client's destination). STEP_WAIT, or STEP_CLOSE when out of memory. */
enum step conn_dial(struct conn *c, const struct verdict *verdict);

/* Ends the present leg, if there is one: closes upstream (with a reset if `abort`), writes the close record. */
void conn_end_leg(struct conn *c, enum close_end end, bool abort_upstream);

/* Queues the answer that the protocol has for a denial or a failure (TLS alert, HTTP response), then drains. For PROTO_ANY: a reset. */
enum step conn_deny(struct conn *c, const struct verdict *verdict, const struct conn_seen *seen);

/* The same when an allowed name could not be reached: `reason` is what dial says. */
enum step conn_unreachable(struct conn *c, enum reason reason);

/* True when that was because its time was up. */
bool conn_dial_ran_out(const struct conn *c, enum reason reason);

/* Leaves for DRAIN: the client gets what is queued in `down`, then FIN. */
enum step conn_drain(struct conn *c);

/* (Re-)starts the deadline, `us` from now. */
void conn_deadline(struct conn *c, uint64_t us);

/* Runs the connection again in `us` at the latest, without a change of the deadline. */
void conn_arm(struct conn *c, uint64_t us);

/* The steps of the states that have a file of their own. */
enum step front_step(struct conn *c);
enum step hello_step(struct conn *c);
enum step drain_step(struct conn *c);
enum step tunnel_step(struct conn *c);
/* Upstream is connected for a tunnel: what is in `in` goes first, or is judged first. STEP_CLOSE when out of memory. */
enum step tunnel_begin(struct conn *c);
/* Ends the leg for what was denied within the tunnel, and tells the client. */
enum step tunnel_cut(struct conn *c, const struct conn_seen *seen, const struct verdict *verdict, enum close_end end);
/* True while the client's first bytes are held back, or awaited, because it is not clear yet what they are. */
bool tunnel_holds(const struct conn *c);
enum step http_step(struct conn *c);

/* The allow of a request that is queued could not be recorded: nothing was sent of it, and nothing will be. */
enum step http_unrecorded(struct conn *c);

/* Enters HTTP with what is in `in`; upstream may be connected already. From FRONT, the client takes us for its proxy. */
enum step http_begin(struct conn *c);
/* The dial that a request asked for is done; upstream is connected. */
enum step http_connected(struct conn *c);
void http_free(struct http_session *h);
/* True while a request head has begun and is not complete. */
bool http_holds(const struct conn *c);
/* True while another request, or some of one, waits behind the one that is being served. */
bool http_pipelined(const struct conn *c);
/* Records that one: it is not served, but it was an attempt. */
void http_refuse_pipelined(struct conn *c);
/* True when all requests were sent whole, so that upstream may go on with them when we are gone. */
bool http_delivered(const struct conn *c);
/* What HTTP waits for, as EV_READ and EV_WRITE. */
void http_interest(const struct conn *c, short *client, short *upstream);

#endif
