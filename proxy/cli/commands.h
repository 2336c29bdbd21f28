/* SPDX-License-Identifier: Apache-2.0 */
/* netgate's subcommands, one file each. */
#ifndef PROXY_CLI_COMMANDS_H
#define PROXY_CLI_COMMANDS_H

#include "base/err.h"

/* Each takes the program's argv whole and returns the exit status; on failure it has said why on stderr. */
int command_run(int argc, char **argv);	    /* netgate [options] -- COMMAND */
int command_check(int argc, char **argv);   /* netgate check POLICY */
int command_explain(int argc, char **argv); /* netgate explain POLICY WHAT */
int command_verify(int argc, char **argv);  /* netgate verify LOG */

/* "netgate: …" on stderr; returns `status`. */
int command_fail(int status, const struct err *err);

/* The text of --help, on standard output. */
void help_print(void);

#endif
