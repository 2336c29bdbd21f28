/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a container asks for: by annotations of its bundle, which whoever
 * starts it or its image may have written. netgate holds it against what the
 * administrator permits (--permits); here it is only made into options.
 *
 *   dev.netgate.allow    entries as for --allow, separated by commas or white space
 *   dev.netgate.policy   the name of a policy
 *   dev.netgate.job      the name of a job whose netgate waits
 */
#ifndef SANDBOX_NET_OCI_CHOICE_H
#define SANDBOX_NET_OCI_CHOICE_H

#include <jansson.h>
#include <stddef.h>

#include "base/attach.h"

struct err;

#define CHOICE_PREFIX "dev.netgate." /* no other key may begin like this: it would be one of these, mistyped */
#define CHOICE_ALLOW  "dev.netgate.allow"
#define CHOICE_POLICY "dev.netgate.policy"
#define CHOICE_JOB    "dev.netgate.job"

#define CHOICE_DIRECTORY   "/etc/netgate/policies" /* what the administrator permits, unless told otherwise */
#define CHOICE_ALLOW_MAX   4096			   /* bytes of the list, with the NUL */
#define CHOICE_OPTIONS_MAX 512			   /* options that it becomes */

struct choice {
	char policy[ATTACH_NAME_MAX + 8]; /* "": none */
	char job[ATTACH_NAME_MAX + 8];	  /* "": none */
	char allow[CHOICE_ALLOW_MAX];	  /* "": none */
};

/* Whether each annotation whose key begins with CHOICE_PREFIX is one of the three. Returns 0 or -1. */
int choice_check_keys(const json_t *annotations, struct err *err);

/* The error for one that is there and says nothing, however it was given. Returns -1. */
int choice_empty(const char *key, struct err *err);

/* From annotations (NULL: there are none). Returns 0; or -1 for what can't be meant, such as a job and a policy, or an empty one. */
int choice_read(const json_t *annotations, struct choice *c, struct err *err);

/* True when all texts end and names are names; for one that came over a socket. */
int choice_check(const struct choice *c, struct err *err);

/*
 * Takes the administrator's choice of a policy in: what the container asks for may narrow it, and may not be another policy, or a
 * job. Returns 0 or -1.
 */
int choice_fix(struct choice *c, const char *policy, struct err *err);

/* netgate's options; the texts live in `c` and `text`. */
struct choice_options {
	char *v[CHOICE_OPTIONS_MAX];
	size_t n;
	char text[2 * CHOICE_ALLOW_MAX + 12 * CHOICE_OPTIONS_MAX];
	size_t used;
};

/*
 * Appends what was chosen from the policies in `permits`, each option as one word "--narrow=ENTRY", so that no entry can
 * pass for another option. Returns 0 or -1.
 */
int choice_options(const struct choice *c, const char *permits, struct choice_options *o, struct err *err);

/*
 * Whether the container may join the job that it names: the administrator says so with a file JOB.job in `permits` that is
 * root's, and so is the directory, both writable by nobody else. Returns 0 or -1.
 */
int choice_may_join(const struct choice *c, const char *permits, struct err *err);

#endif
