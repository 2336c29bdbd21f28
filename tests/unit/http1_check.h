/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of HTTP/1 heads share: parsing before an unreadable page, and precise complaints. */
#ifndef TESTS_UNIT_HTTP1_CHECK_H
#define TESTS_UNIT_HTTP1_CHECK_H

#include "proxy/wire/http1.h"

#define H   "Host: ok.test\r\n"
#define GET "GET / HTTP/1.1\r\n" H
#define END "\r\n"

/* What the last call below found; its texts point into a copy that lives until the next one. */
extern struct http1_head head;
extern enum http1_error error;

/* Parses `n` bytes as a request, or as the response to a `method`. */
enum parse request(const char *s, size_t n);
enum parse response(const char *s, size_t n, const char *method);

/* These very bytes. */
void assert_text(struct http1_text t, const char *want);

/* A good request, all of `s`; a bad one with this error. */
void assert_ok(const char *s);
void assert_bad(const char *s, enum http1_error want);

/*
 * Each byte value between two parts of a request that is good without it:
 * good are those of `allowed` and, with `high`, those above ASCII.
 */
void assert_each_byte(const char *before, const char *after, const char *allowed, bool high);

#endif
