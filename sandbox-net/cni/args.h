/* SPDX-License-Identifier: Apache-2.0 */
/* CNI_ARGS: "KEY=VALUE;KEY=VALUE". */
#ifndef SANDBOX_NET_CNI_ARGS_H
#define SANDBOX_NET_CNI_ARGS_H

#include <jansson.h>

struct err;

#define CNI_ARGS_MAX 8192 /* bytes */

struct cni_args {
	char text[CNI_ARGS_MAX]; /* in which these are; NULL: not given */
	const char *pod_namespace, *pod;
};

/*
 * Parses `text` (NULL: none). NETGATE_ALLOW, NETGATE_POLICY and NETGATE_JOB go to `asked` under the names of choice.h. A key that
 * nobody knows is an error unless IgnoreUnknown says otherwise. Returns 0 or -1.
 */
int cni_args_parse(const char *text, struct cni_args *a, json_t *asked, struct err *err);

/* Adds what is asked for; the same key with another value is an error. Returns 0 or -1. */
int cni_ask(json_t *asked, const char *key, const char *value, struct err *err);

#endif
