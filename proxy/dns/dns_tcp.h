/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP side of the gate's DNS (RFC 7766). */
#ifndef PROXY_DNS_DNS_TCP_H
#define PROXY_DNS_DNS_TCP_H

#include "proxy/dns/dns_reply.h"

struct dns_tcp;
struct event_base;

/* `env` is borrowed and outlives the result. NULL: ENOMEM. */
struct dns_tcp *dns_tcp_new(struct event_base *base, const struct dns_reply_env *env);

/* Closes every connection, with its record where it has none yet. */
void dns_tcp_free(struct dns_tcp *t);

/* As dns_server_tcp(). */
void dns_tcp_accept(struct dns_tcp *t, int fd, const struct dns_client *client);

#endif
