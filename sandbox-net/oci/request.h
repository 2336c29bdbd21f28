/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an ordinary user's hook asks of root's service, over the SOCK_SEQPACKET socket REQUEST_PATH: one
 * message of fixed size each way. The service believes nothing of it but the choice, which only narrows.
 */
#ifndef SANDBOX_NET_OCI_REQUEST_H
#define SANDBOX_NET_OCI_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attach.h"
#include "base/err.h"
#include "sandbox-net/oci/choice.h"

#define REQUEST_MAGIC	  0x6e670202u
#define REQUEST_DIRECTORY "/run/netgate-service"
#define REQUEST_PATH	  REQUEST_DIRECTORY "/socket"
#define REQUEST_WAIT_S	  60
#define REQUEST_NEEDED	  "a gate for an ordinary user's container needs root's service, sandbox-net oci-service"

struct request_msg {
	uint32_t magic;
	int32_t pid;
	char id[ATTACH_NAME_MAX + 8];
	struct choice choice;
	uint8_t alone; /* as in gate.h; 0 or not */
	uint8_t ended; /* 1: the container is over, and so is to be its gate. `pid` says nothing then */
};

#define REQUEST_REFUSED 1
#define REQUEST_BUSY	2 /* for now */

struct answer_msg {
	uint32_t magic;
	uint32_t refused;	 /* 0: done */
	char text[ERR_TEXT_MAX]; /* why */
};

/* Asks the service to attach the container with this id, whose process has this number. Returns 0 or -1. */
int request_service(const char *pid, const char *id, const struct choice *choice, bool alone, struct err *err);

/*
 * Asks it to end the gate of the container with this id and this choice, which is over; again for half a minute while it is busy, since nobody
 * asks another time. Returns 0 or -1.
 */
int request_end(const char *id, const struct choice *choice, struct err *err);

#endif
