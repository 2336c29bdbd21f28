/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of libnetwork's remote driver protocol: a JSON object in, one out. */
#ifndef SANDBOX_NET_DOCKER_METHODS_H
#define SANDBOX_NET_DOCKER_METHODS_H

#include <jansson.h>

struct err;

struct method_answer {
	json_t *reply; /* a new reference */
	int wait;      /* -1; or the reply counts when task_read() of this descriptor says that it worked */
};

/*
 * Answers a call such as "/NetworkDriver.Join". Returns 0; or -1 with the error's text, which docker shows to whoever asked for the container.
 */
int method_call(const char *path, const json_t *request, struct method_answer *answer, struct err *err);

#endif
