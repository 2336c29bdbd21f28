/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OCI bundle's config.json (OCI runtime specification 1.0): what netgate needs to know of
 * it, and what it changes in it. jansson objects; borrowed unless said otherwise.
 */
#ifndef SANDBOX_NET_OCI_CONFIG_H
#define SANDBOX_NET_OCI_CONFIG_H

#include <jansson.h>
#include <stdbool.h>

#include "sandbox-net/attach/vet.h"

struct err;

/* Reads one JSON object from `fd` up to its end; `what` is for messages. A new reference, or NULL. */
json_t *config_read(int fd, const char *what, struct err *err);

/* The same from a file. */
json_t *config_load(const char *path, struct err *err);

/* Writes the object to a descriptor. Returns 0; or -1 with errno. */
int config_write(int fd, const json_t *config);

/* Replaces a file by the object, or leaves it as it is. Returns 0 or -1. */
int config_save(const char *path, const json_t *config, struct err *err);

/* What the container's first process will be: its capabilities, whether it can gain any, whether AF_VSOCK is kept from it. */
struct vet_known config_process(const json_t *config);

/* The capabilities of a process as one set, bits as in capability.h: everything that it has or may gain. */
uint64_t config_capabilities(const json_t *process);

/* The value of an environment variable of the container's first process, or NULL. */
const char *config_env(const json_t *config, const char *name);

/*
 * Refuses AF_VSOCK, io_uring, the key calls and socketcall(2) to the container, whatever its profile says: they lead past every network
 * namespace, past seccomp itself, to a resolver of the host's, and past what a filter sees. Takes away the annotations by which crun
 * would run something else than the profile. Returns 0 or -1.
 */
int config_forbid_calls(json_t *config, struct err *err);

/* Whether its profile, and no annotation against it, keeps AF_VSOCK from the container, as it does after that. False where it can't be told. */
bool config_forbids_vsock(const json_t *config);

/*
 * Lets the container's /etc/resolv.conf name the gate: an engine's own is a bind mount of the host's text, or the image's file. `file` is
 * mounted in its place, read-only, since it is the same for every container. Returns 0 or -1.
 */
int config_resolv_conf(json_t *config, const char *file, struct err *err);

/* Appends a hook of this stage ("createRuntime", …): `path` with `argv` (its own name first, NULL-terminated). Returns 0 or -1. */
int config_add_hook(json_t *config, const char *stage, const char *path, const char *const *argv, struct err *err);

/* Sets an annotation. Returns 0 or -1. */
int config_annotate(json_t *config, const char *key, const char *value, struct err *err);

#endif
