/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of libnetwork's remote driver protocol: a JSON object in, one out. */
#ifndef SANDBOX_NET_DOCKER_METHODS_H
#define SANDBOX_NET_DOCKER_METHODS_H

#include <jansson.h>

#include "base/attach.h"

struct err;

struct method_answer {
	json_t *reply; /* a new reference */
	int wait;      /* -1; or the reply counts when task_read() of this descriptor says that it worked */
	char network[ATTACH_NAME_MAX + 8]; /* that was made by then, for method_undo() where it did not; "": none */
};

/*
 * Answers a call such as "/NetworkDriver.Join". Returns 0; or -1 with the error's text, which docker shows to whoever asked for the container.
 */
int method_call(const char *path, const json_t *request, struct method_answer *answer, struct err *err);

/* Forgets the network, which docker has not been told of. */
void method_undo(const char *network);

#endif
