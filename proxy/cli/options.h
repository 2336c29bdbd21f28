/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `netgate [options] -- COMMAND`. */
#ifndef PROXY_CLI_OPTIONS_H
#define PROXY_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "proxy/upstream/resolver.h"
#include "rules/limits.h"

struct err;

enum option_kind { OPTION_ALLOW, OPTION_DENY, OPTION_POLICY, OPTION_NARROW, OPTION_LIMIT };

/* One of --allow, --deny, --policy, --narrow and the limits, in the order given. */
struct option_entry {
	enum option_kind kind;
	const char *text;
	enum limit limit; /* OPTION_LIMIT: which, */
	const char *flag; /* and what it is called */
};

struct options {
	struct option_entry *entries; /* owned */
	size_t n_entries;
	const char *permits; /* NULL: what is allowed stands in the entries; else a directory of policies (permits.h) */
	const char *choose;  /* of those, this one: attach_name_ok(); NULL: none by name */
	char **launcher;     /* options that are the launcher's: "--user", "alice", …; the array is owned */
	size_t n_launcher;
	struct endpoint resolvers[RESOLVER_SERVERS_MAX];
	size_t n_resolvers;  /* 0: those of /etc/resolv.conf */
	const char *log;     /* NULL: a file in the state directory; "-": standard output */
	const char *job;     /* NULL: made from the command's name */
	uint64_t timeout_us; /* 0: none */
	uint64_t wait_us;    /* without a command: for the first sandbox; 0: for ever */
	const char *pid_file;
	int ready_fd; /* -1: none */
	bool keep, detach;
	bool waits; /* some option was given that is for a gate without a command only */
	bool audit, quiet, verbose;
	bool json; /* the result is one object on standard output */
	bool help, version;
	char **command; /* argv of the command, NULL-terminated; NULL: none given */
};

/* Parses argv[1…]. Texts are borrowed from argv. Returns 0; or -1 with what is wrong and what to write instead. */
int options_parse(struct options *o, int argc, char **argv, struct err *err);
void options_free(struct options *o);

/* True when --json is among the options: an error of the others is to be an object too. */
bool options_want_json(int argc, char **argv);

#endif
