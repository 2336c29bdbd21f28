/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second ClientHello of a TLS connection, after a HelloRetryRequest
 * (RFC 8446 §4.1.2, §4.1.4), must carry the name of the first. Private to proxy/conn.
 *
 * Once a tunnel's ClientHello is judged, it is watched until the server has
 * shown what its answer is:
 *
 * - Of the client, what can't be a ClientHello passes as it comes, record by
 *   record: a dummy change_cipher_spec, early data (0-RTT, RFC 8446 §4.2.10), an
 *   alert. Anything else, a handshake record above all, is held. No client has
 *   a reason to send one before it knows the answer, but one that guesses that a retry is
 *   asked for could otherwise have its second hello pass unseen.
 * - Of the server, everything passes, but by copy, and up to the random of its
 *   ServerHello it is looked at. Another answer than a HelloRetryRequest, or its
 *   end: the watch is over, what was held passes, and the tunnel goes on with splice.
 * - After a HelloRetryRequest the next handshake message of the client is read
 *   as strictly as the first, behind early data that was on its way (which the server
 *   skips). It passes, from our copy, when its name is that of the first, and then the watch
 *   is over: a server asks once (§4.1.4). Else nothing of it passes, and the connection is cut.
 *
 * With ECH it is the outer name both times. In TLS 1.2 all hellos but the first are encrypted. Any TLS is watched,
 * not only what offers 1.3: it costs one look at the first 11 bytes of the answer.
 */
#ifndef PROXY_CONN_RETRY_H
#define PROXY_CONN_RETRY_H

#include "proxy/conn/hello.h"

struct retry;

/* The watch begins: `hello` was judged and passes. False: ENOMEM, and it may not pass. */
bool retry_watch(struct conn *c, const struct hello_seen *hello);

/* Ends the watch, if there is one, and forgets it. Nothing that is held is passed on. */
void retry_free(struct conn *c);

/* The judged hello, which is the beginning of `in`, goes first; what came behind it is looked at like the rest. False: ENOMEM. */
bool retry_pass_hello(struct conn *c);

/*
 * Reads from the client, while c->up holds nothing, looks at what is held and moves to c->up.head what may pass.
 * STEP_WAIT: nothing else to do than to deliver it. Another step when the connection was cut.
 */
enum step retry_client(struct conn *c);

/*
 * Reads from the server, while c->down holds nothing, moves it to c->down.head and looks at it.
 * STEP_AGAIN when the answer came and the client's side has something to do for it; STEP_CLOSE when upstream was reset.
 */
enum step retry_server(struct conn *c);

/* True while bytes of the client's are wanted, and while the server's are looked at. */
bool retry_wants_client(const struct conn *c);
bool retry_wants_server(const struct conn *c);

#endif
