/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error object of set-up and loading code: one message for a person,
 * wrapped with context on the way up. It owns its text and needs no freeing.
 * Event code uses 0 or -errno instead.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#define ERR_TEXT_MAX 1024

struct err {
	char text[ERR_TEXT_MAX]; /* "" while nothing failed; NUL-terminated, cut at the end if too long */
};

/* Replaces the message. Always returns -1, so that callers can write `return err_set(err, …)`. */
int err_set(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* As err_set(), and appends ": " and the text of errno value `errnum` (positive). Always returns -1. */
int err_set_errno(struct err *err, int errnum, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "<context>: " before the present message. Always returns -1. */
int err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
