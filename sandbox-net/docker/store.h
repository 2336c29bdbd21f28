/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must outlive the driver: a network's options and gateways, which docker tells only once, when the network is made. A file
 * for each, NETWORK_ID.json, in a directory of root's alone.
 */
#ifndef SANDBOX_NET_DOCKER_STORE_H
#define SANDBOX_NET_DOCKER_STORE_H

#include <jansson.h>

struct err;

/* Makes the directory and locks it: one driver at a time. Returns 0 or -1. */
int store_open(const char *dir, struct err *err);

/* Replaces what is kept for this id (attach_name_ok()). Returns 0 or -1. */
int store_save(const char *id, const json_t *network, struct err *err);

/* A new reference, or NULL. */
json_t *store_load(const char *id, struct err *err);

/* Forgets it; also what was never there. */
void store_remove(const char *id);

#endif
