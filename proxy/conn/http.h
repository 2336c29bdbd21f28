/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP session on a connection; the theory of operation is in http.c. Private to proxy/conn. */
#ifndef PROXY_CONN_HTTP_H
#define PROXY_CONN_HTTP_H

#include "proxy/conn/conn.h"
#include "proxy/wire/http1.h"

#define HTTP_READ   16384
#define HTTP_AHEAD  4096 /* bytes of a pipelined request that are read before their turn */
#define METHOD_KEEP 16

enum phase { PHASE_HEAD, PHASE_EXCHANGE };

struct http_session {
	struct bytes rin; /* from upstream, not framed yet */
	struct http1_body req, res;
	uint8_t phase;
	bool keep;		  /* both sides keep the connection after this exchange */
	bool res_final;		  /* the final response head went to the client */
	bool up_dead;		  /* upstream takes no more of the request */
	bool websocket;		  /* the request asks for it */
	bool client_fin;	  /* the client ended its side while it awaited the answer */
	bool client_closes;	  /* the client asked for the connection's end */
	size_t scanned;		  /* bytes of `in` in which no end of a head was found */
	char method[METHOD_KEEP]; /* decides how the response is framed; a longer one frames like any other */
	size_t method_len;
};

/* EXCHANGE's step (http_exchange.c). */
enum step http_exchange_step(struct conn *c);

/* True while the answer is awaited and the client is read on, a little: to notice that it is gone. */
bool http_wants_ahead(const struct conn *c);

/* Records a denial that needs no policy, ends the leg and answers. */
enum step http_refuse(struct conn *c, const struct conn_seen *seen, enum reason reason);

#endif
