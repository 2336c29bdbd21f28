/* SPDX-License-Identifier: Apache-2.0 */
/* The command lines of `sandbox-net attach`, `detach` and `ls`. */
#ifndef SANDBOX_NET_ATTACH_OPTIONS_H
#define SANDBOX_NET_ATTACH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sandbox-net/attach/target.h"
#include "sandbox-net/attach/vet.h"
#include "sandbox-net/gate/gate.h"

struct err;

#define ATTACH_GATE_OPTIONS_MAX 1024

/* All text is borrowed from argv. */
struct attach_options {
	enum target_kind kind;
	const char *what;
	const char *job, *name;			 /* NULL: not given */
	struct gate_tap tap;			 /* sandbox-net tap; .name NULL: S has a stack of its own */
	uint32_t risks;				 /* bits of enum attach_risk */
	char *gate[ATTACH_GATE_OPTIONS_MAX + 1]; /* what is netgate's, unseen */
	size_t n_gate;
	bool json, help;
	bool quiet; /* nothing for a person but errors */

	/* Of containers, whose engine knows more about them than can be seen. */
	const char *to;		       /* what it is, for a person; NULL: made from `what` */
	const struct vet_known *known; /* what its first process will be; NULL: as it is */
	const char *link;	       /* the name of its link; NULL: the usual one */
	bool alone;		       /* nobody in it will have CAP_NET_ADMIN, whoever has it now */
	bool has_owner;		       /* S must belong to a user namespace of this user's: */
	uid_t owner;
	const char *permits, *runtime; /* --permits, --runtime; NULL: not given */
	const char *choose; /* --choose: the administrator's choice among those policies; NULL: the container's */
};

/*
 * Parses argv[1..] of attach or of tap. Words that are not attach's own are netgate's, in their order; then a gate is started with
 * them, and --job is its name. Returns 0, or -1 with what is wrong and what to type instead.
 */
int attach_options_parse(int argc, char **argv, struct attach_options *o, struct err *err);
int tap_options_parse(int argc, char **argv, struct attach_options *o, struct err *err);

/* The same for detach and for ls: --job and --name; --json. */
int detach_options_parse(int argc, char **argv, struct attach_options *o, struct err *err);
int list_options_parse(int argc, char **argv, struct attach_options *o, struct err *err);

/*
 * The same for the commands that a container engine calls: --permits, --choose, --accept-risk and netgate's options; with `runtime`
 * also --runtime. No more than `argc` words, of which the first is the command's name.
 */
int hook_options_parse(int argc, char **argv, bool runtime, struct attach_options *o, struct err *err);

/* One more word that is netgate's. Returns 0 or -1. */
int attach_pass_on(struct attach_options *o, char *word, struct err *err);

/* What --help prints. */
extern const char attach_help[], tap_help[], detach_help[], list_help[];

#endif
