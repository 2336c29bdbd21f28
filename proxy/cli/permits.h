/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What somebody who isn't trusted may choose: whoever labels a container, or
 * asks a service of root's for a gate. The administrator has a directory of policies:
 *
 *   NAME.yaml     may be chosen by name (--choose NAME)
 *   permit.yaml   may be chosen from, entry by entry (--narrow ENTRY), when no name is given
 *   default.yaml  is for who asks for nothing; without it nothing is allowed
 *
 * A choice only ever narrows one of these files. Each must belong to root, or to whom netgate
 * runs as, and be writable by nobody else; so must the directory.
 */
#ifndef PROXY_CLI_PERMITS_H
#define PROXY_CLI_PERMITS_H

struct err;
struct options;
struct policy_builder;

/* Adds what `o` asks of the directory o->permits. Returns 0 or -1. */
int permits_add(struct policy_builder *b, const struct options *o, struct err *err);

#endif
