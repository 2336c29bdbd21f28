/* SPDX-License-Identifier: Apache-2.0 */
/* "netgate explain": what would happen to a request, which rule decides, and what would change it. */
#ifndef RULES_EXPLAIN_H
#define RULES_EXPLAIN_H

#include <stdio.h>

struct err;
struct policy;

/*
 * `what` is a URL whose scheme has a known port (or that names one), HOST,
 * HOST:PORT, ADDR, ADDR:PORT or [IP6]:PORT. A URL's user name is ignored; udp: and quic: are denied. Without a port it stands for TLS
 * on 443 and HTTP on 80. Writes lines for a person to `out`. Returns 0 when
 * (one of) the requests would be allowed, 1 when none would, -1 with an error when `what`
 * is none of these.
 */
int explain(const struct policy *p, const char *what, FILE *out, struct err *err);

#endif
