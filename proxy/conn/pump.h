/* SPDX-License-Identifier: Apache-2.0 */
/* Moves one HTTP/1 body through a flow: looks only at its framing, splices what lies between. */
#ifndef PROXY_CONN_PUMP_H
#define PROXY_CONN_PUMP_H

#include "proxy/conn/flow.h"
#include "proxy/wire/http1.h"

enum pump_result {
	PUMP_DONE,	 /* the body is complete and delivered */
	PUMP_WAIT,	 /* needs an event: `from` readable, or `to` writable while flow_pending() */
	PUMP_EOF,	 /* `from` ended; for HTTP1_BODY_UNTIL_CLOSE that is its end, else the body is cut short */
	PUMP_BAD,	 /* the framing is wrong */
	PUMP_LIMIT,	 /* more of the body is there than may be sent */
	PUMP_FROM_ERROR, /* reset by the sender */
	PUMP_TO_ERROR	 /* the receiver is gone */
};

/* `in` holds bytes of f->from that were read already; what lies behind the body stays in it. `quiet`: of f->from, see quiet.h. */
enum pump_result pump(struct flow *f, struct bytes *in, struct http1_body *body, struct pipe_pool *pool, bool *quiet);

#endif
