/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection's first bytes say. */
#ifndef PROXY_CONN_HELLO_H
#define PROXY_CONN_HELLO_H

#include "proxy/conn/conn.h"
#include "proxy/wire/tls_hello.h"

enum hello {
	HELLO_MORE,
	HELLO_TLS, /* a ClientHello, with or without SNI */
	HELLO_TLS_BAD,
	HELLO_TLS_BAD_NAME, /* its SNI is not a host name */
	HELLO_HTTP,	    /* begins like an HTTP/1 request */
	HELLO_HTTP2,	    /* the HTTP/2 preface in clear text */
	HELLO_OTHER
};

struct hello_seen {
	struct tls_hello tls;
	struct name sni;
	bool has_sni;
	struct conn_seen seen; /* points into this object and the connection's scratch */
};

/* Looks at what is in c->in. `out` is valid until the next look at any connection. */
enum hello hello_look(struct conn *c, struct hello_seen *out);

#endif
