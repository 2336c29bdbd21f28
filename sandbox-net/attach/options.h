/* SPDX-License-Identifier: Apache-2.0 */
/* The command lines of `sandbox-net attach`, `detach` and `ls`. */
#ifndef SANDBOX_NET_ATTACH_OPTIONS_H
#define SANDBOX_NET_ATTACH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox-net/attach/target.h"
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

/* What --help prints. */
extern const char attach_help[], tap_help[], detach_help[], list_help[];

#endif
