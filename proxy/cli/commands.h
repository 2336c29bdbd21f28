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
int command_help(int argc, char **argv);    /* netgate help [check|explain|verify] */

/* "netgate: …" on stderr; returns `status`. */
int command_fail(int status, const struct err *err);

/* The help for a subcommand, one of the four; or for all of netgate when `command` is NULL or "help". On standard output. */
void help_print(const char *command);

/* How to call a subcommand that has arguments, on standard error; returns the exit status 2. */
int help_misused(const char *command);

#endif
