/* SPDX-License-Identifier: Apache-2.0 */
/* A container and what it chose, brought together. */
#ifndef SANDBOX_NET_OCI_CONNECT_H
#define SANDBOX_NET_OCI_CONNECT_H

struct attach_options;
struct choice;
struct err;

/*
 * Attaches the container that `o` names: to the job that it chose, or to a gate of its own with what it chose from the
 * policies in `permits` (of that which o->choose names, if it is not NULL: `choice` is changed accordingly) and the options for netgate that are in `o`. Returns 0 or -1.
 */
int connect_container(struct attach_options *o, struct choice *choice, const char *permits, struct err *err);

/* Ends the gate of the container that has, or had, this name and made this choice, if its process has ended. */
void connect_end(const char *name, const struct choice *choice);

/*
 * Whether a container that chooses nothing could be connected: starts the gate that it would get (`permits`: NULL, or as above) as job
 * o->job, and ends it. Returns 0; or -1 with what would be wrong.
 */
int connect_rehearse(struct attach_options *o, const char *permits, struct err *err);

#endif
