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

#define REQUEST_MAGIC	  0x6e670201u
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
};

struct answer_msg {
	uint32_t magic;
	uint32_t refused;
	char text[ERR_TEXT_MAX]; /* why */
};

/* Asks the service to attach the container with this id, whose process has this number. Returns 0 or -1. */
int request_service(const char *pid, const char *id, const struct choice *choice, bool alone, struct err *err);

#endif
