/* SPDX-License-Identifier: Apache-2.0 */
/* Where the audit log goes. */
#ifndef PROXY_CLI_LOG_OPEN_H
#define PROXY_CLI_LOG_OPEN_H

#include <limits.h>
#include <stdbool.h>

struct err;

struct log_place {
	int fd;		     /* O_APPEND, CLOEXEC */
	char path[PATH_MAX]; /* absolute; "" for standard output */
	char hide
		[PATH_MAX]; /* what the sandbox must not see: the state directory, or the file; "" for standard output */
	bool created;	    /* a new file, under a name of netgate's own choice */
};

/*
 * Opens `log`: a path, "-" for standard output, or NULL for a new file of this
 * job in the state directory: /var/log/netgate as root, else
 * $XDG_STATE_HOME/netgate or ~/.local/state/netgate. Directories are made 0700, files 0600. Returns 0 or -1.
 */
int log_open(const char *log, const char *job, struct log_place *place, struct err *err);

/*
 * Gives this process a description of its own of the log, where it is a file: writers that were forked from one another would share
 * its lock and offset, by which each knows whether it writes alone (log_file.h). Returns 0 or -1.
 */
int log_split(struct log_place *place, struct err *err);

/* True when there is something in it to be read later: not in an empty file, nor in a device. */
bool log_is_worth_reading(const struct log_place *place);

/* Closes it. A file of netgate's own that stayed empty is removed. */
void log_close(struct log_place *place);

#endif
