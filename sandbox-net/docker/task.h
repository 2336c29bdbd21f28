/* SPDX-License-Identifier: Apache-2.0 */
/* Work that would keep dockerd waiting for its other containers, in a process of its own. It outlives the driver. */
#ifndef SANDBOX_NET_DOCKER_TASK_H
#define SANDBOX_NET_DOCKER_TASK_H

struct err;

#define TASK_ANSWER_MAX 1100 /* bytes: a sign, and an error's text */

/*
 * Runs work(arg, fd, err) in a child, which has a session of its own, no other descriptor above 2, and takes signals as by default. Its first answer goes
 * to `fd`: task_answer(), once; what comes after that, and an error, is said on stderr. Returns the
 * descriptor to read the answer from, non-blocking, or -1.
 */
int task_start(int (*work)(void *arg, int fd, struct err *err), void *arg, struct err *err);

/* In the child: it worked. */
void task_answer(int fd);

/* Reads an answer. Returns 1 when it worked, 0 when there is none yet, or -1 with the error. */
int task_read(int fd, struct err *err);

#endif
