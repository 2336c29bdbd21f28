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
	bool proxy;		  /* at the front door: requests are for a proxy */
	bool keep;		  /* both sides keep the connection after this exchange */
	bool res_final;		  /* the final response head went to the client */
	bool up_dead;		  /* upstream takes no more of the request */
	bool websocket;		  /* the request asks for it */
	bool held_up;		  /* HEAD waited for the client to take the last answer */
	bool client_fin;	  /* the client ended its side while it awaited the answer */
	bool client_closes;	  /* the client asked for the connection's end */
	size_t scanned;		  /* bytes of `in` in which no end of a head was found */
	bool line_read;		  /* among them is the end of the first line, which was in order */
	char method[METHOD_KEEP]; /* decides how the response is framed; a longer one frames like any other */
	size_t method_len;
};

/* EXCHANGE's step (http_exchange.c). */
enum step http_exchange_step(struct conn *c);

/* True while the answer is awaited and the client is read on, a little: to notice that it is gone. */
bool http_wants_ahead(const struct conn *c);

/* Records a denial that needs no policy, ends the leg and answers. */
enum step http_refuse(struct conn *c, const struct conn_seen *seen, enum reason reason);

/* The same for a request that was not read to its end: what it is about is not known. */
enum step http_refuse_unread(struct conn *c, enum reason reason);

/* ---- requests to a proxy (http_proxy.c) ---- */

/* True for the method that asks for a tunnel. */
bool http_proxy_is_connect(const struct http1_head *head);

/* Leaves the session: judges and dials what CONNECT asks for. `head` lies in c->in. */
enum step http_proxy_connect(struct conn *c, const struct http1_head *head, struct conn_seen *seen);

/* The absolute target becomes the connection's destination. REASON_NONE, or why it can't; `host` gets its name, for `seen`. */
enum reason http_proxy_target(struct conn *c, const struct http1_head *head, struct name *host, struct conn_seen *seen);

/* Appends the head as a server gets it. Returns 0 or -errno. */
int http_proxy_request(struct bytes *out, const struct http1_head *head);

/* Appends the head of the answer at `p` as the client gets it; `last`: the connection ends after it. Returns 0 or -errno. */
int http_proxy_response(struct bytes *out, const uint8_t *p, const struct http1_head *head, bool last);

#endif
