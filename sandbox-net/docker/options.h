/* SPDX-License-Identifier: Apache-2.0 */
/* What is given to a network with -o KEY=VALUE, and to a container of it with driver-opt=KEY=VALUE, which replaces the network's. */
#ifndef SANDBOX_NET_DOCKER_OPTIONS_H
#define SANDBOX_NET_DOCKER_OPTIONS_H

#include <jansson.h>

struct err;
struct join_request;

/*
 * Copies the options in `from` (NULL: none) to `to`. Keys of docker's own ("com.docker…") are passed over, unknown ones and
 * values that are no text are errors. Returns 0 or -1.
 */
int options_merge(json_t *to, const json_t *from, struct err *err);

/*
 * What they mean for a container: the names of its job, its sandbox and what it is, netgate's options and the risks that are
 * accepted. The texts are allocated and never freed: for a process that ends. Returns 0 or -1.
 */
int options_apply(const json_t *options, const char *network, const char *endpoint, struct join_request *r,
		  struct err *err);

#endif
