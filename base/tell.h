/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines for a person on standard error that never wait for long.
 *
 * The sandbox shares this descriptor. It can fill the pipe behind it, stop the
 * terminal, set or clear O_NONBLOCK; none of that may hold up a time limit, a
 * signal or the gate. So netgate writes through a description of its own,
 * non-blocking, and gives a line up that is not taken within TELL_WAIT_MS.
 */
#ifndef BASE_TELL_H
#define BASE_TELL_H

#include <stddef.h>

#define TELL_WAIT_MS  1000
#define TELL_LINE_MAX 1536

/*
 * Opens it; to be called before anything untrusted runs. Always returns a
 * descriptor that can be written to, CLOEXEC: standard error itself where it
 * can't be opened anew (a file, whose offset is shared; a socket).
 */
int tell_open(void);

/* Writes all of it, or as much as is taken without waiting longer than TELL_WAIT_MS at a time. `fd` -1: nobody listens. */
void tell_write(int fd, const char *text, size_t len);

/* One line: "netgate: ", the text, a line feed. */
void tell(int fd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Ends the text within its `cap` bytes, and makes '?' of its control bytes: parts of it may be names of files, and one
 * that holds a line feed or an escape sequence must not speak as netgate.
 */
void tell_printable(char *text, size_t cap);

#endif
