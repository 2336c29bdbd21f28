/* SPDX-License-Identifier: Apache-2.0 */
/* netgate: which subcommand is meant. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "proxy/cli/commands.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "check", command_check },
	{ "explain", command_explain },
	{ "verify", command_verify },
	{ "help", command_help },
};

int command_fail(int status, const struct err *err)
{
	fprintf(stderr, "netgate: %s\n", err->text);
	return status;
}

/* "netgate check --help" */
static bool asks_for_help(int argc, char **argv)
{
	for (int i = 2; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	/* Ignored, as a supervisor may have left it, children would vanish without a word. */
	signal(SIGCHLD, SIG_DFL);
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(*commands); i++) {
		if (strcmp(argv[1], commands[i].name) != 0)
			continue;
		if (asks_for_help(argc, argv)) {
			help_print(argv[1]);
			return 0;
		}
		return commands[i].run(argc, argv);
	}
	return command_run(argc, argv);
}
