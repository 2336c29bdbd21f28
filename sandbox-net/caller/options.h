/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `sandbox-net run`, as netgate passes it on. */
#ifndef SANDBOX_NET_OPTIONS_H
#define SANDBOX_NET_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/resource.h"

#define OPTIONS_PATHS_MAX 128 /* --read, --write and --hide, each */

struct err;

enum options_fs { OPTIONS_FS_SEALED, OPTIONS_FS_HOST };

struct options_paths {
	const char *v[OPTIONS_PATHS_MAX];
	size_t n;
};

/* All text is borrowed from argv. */
struct options {
	int gate_fd;		      /* SOCK_SEQPACKET to the proxy (base/handoff.h) */
	int report_fd;		      /* SOCK_SEQPACKET to the monitor (base/report.h); -1: messages go to stderr */
	const char *user;	      /* name or number; NULL: the caller */
	const char *tap;	      /* for a virtual machine: its TAP device; NULL: none */
	const char *workspace;	      /* NULL: the current directory */
	enum options_fs fs;	      /* sealed unless said otherwise */
	struct options_paths read;    /* shown read-only */
	struct options_paths write;   /* real and writable */
	struct options_paths hide;    /* never shown */
	char **command;		      /* NULL-terminated, at least one */
	char **argv;		      /* all of it, the subcommand first */
	uint64_t max[RESOURCE_COUNT]; /* --memory, --pids, --cpus; 0: no limit */
	bool proxy_env;		      /* name the gate as a proxy in the environment */
	bool help;		      /* --help was given; nothing else is set */
};

/* Parses argv[1..] (argv[0] is the subcommand). Returns 0, or -1 with what is wrong and what to type instead. */
int options_parse(int argc, char **argv, struct options *o, struct err *err);

/* What `sandbox-net run --help` prints. */
extern const char options_help[];

#endif
