/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the launcher and the sandbox's init say to each other (SOCK_SEQPACKET):
 *
 *   init → launcher   BUILT     the tree stands, init is in S; text: a note for the summary, or "";
 *                               value: 1 where the command may put files beside what is hidden from it
 *                     FAILED    it could not be done; text: why
 *   launcher → init   GO        start the command; value: 1 with the terminal, 0 without
 *   command → launcher STARTED  sent before exec, with the sender's credentials: its pid as seen outside
 *                     EXEC      it could not be executed; value: errno; text: why, or ""
 *   init → launcher   STOPPED   the command was stopped; value: the signal
 *                     ENDED     value: wait status
 *   launcher → init   SIGNAL    value: a signal for the command
 *
 * The end of the stream means to init: end everything. To the launcher it means that init is gone.
 * Nothing that the command can reach holds either end.
 */
#ifndef SANDBOX_NET_CHANNEL_H
#define SANDBOX_NET_CHANNEL_H

#include <stdint.h>
#include <sys/types.h>

#define CHANNEL_TEXT_MAX 1024

struct err;

enum channel_type {
	CHANNEL_BUILT = 1,
	CHANNEL_FAILED,
	CHANNEL_GO,
	CHANNEL_STARTED,
	CHANNEL_EXEC,
	CHANNEL_STOPPED,
	CHANNEL_ENDED,
	CHANNEL_SIGNAL
};

struct channel_msg {
	uint32_t type;
	int32_t value;
	char text[CHANNEL_TEXT_MAX];
};

/* A pair of connected ends, CLOEXEC: [0] is the launcher's, which receives credentials. Returns 0 or -1. */
int channel_open(int ends[2], struct err *err);

/* Sends a message; `text` may be NULL. Returns 0 or -errno. */
int channel_send(int end, enum channel_type type, int32_t value, const char *text);

/*
 * Waits for a message; *pid (may be NULL) gets the sender's as seen here, 0 where unknown.
 * Returns 1; 0 at the end of the stream; -errno. The text is NUL-terminated.
 */
int channel_recv(int end, struct channel_msg *msg, pid_t *pid);

#endif
