/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox-net's side of base/attach.h. */
#ifndef SANDBOX_NET_CLIENT_H
#define SANDBOX_NET_CLIENT_H

#include <sys/types.h>

#include "base/attach.h"

struct err;

#define CLIENT_WAIT_MS 30000 /* for an answer */

#define CLIENT_ABSENT (-2)

/*
 * Connects to the netgate that waits for a job, which must be the caller's own or root's; waits at most so long for room there. Returns a
 * descriptor; CLIENT_ABSENT when no netgate waits; or -1.
 */
int client_connect(const char *job, int wait_ms, struct err *err);

/* The process that listens at the other end; 0: it is in a process namespace that can't be seen from here, or not known. */
pid_t client_peer(int sock);

/* Sends a message of this type, filled in but for its head, with `fd` unless that is -1. Returns 0 or -1. */
int client_send(int sock, struct attach_msg *msg, enum attach_type type, int fd, struct err *err);

/*
 * Waits for an answer of type `want`; *fd (NULL: none is due) gets the descriptor that comes with it. Returns 0;
 * or -1, with the reason for a refusal.
 */
int client_wait(int sock, struct attach_msg *msg, enum attach_type want, int *fd, struct err *err);

/* Likewise, at most so long, for either an ATTACH_ITEM (returns 1), whose descriptor is *dir (-1: none came), or ATTACH_DONE (0). */
int client_wait_item(int sock, int wait_ms, struct attach_msg *msg, int *dir, struct err *err);

#endif
