/* SPDX-License-Identifier: Apache-2.0 */
/* netgate: which subcommand is meant. */
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
};

int command_fail(int status, const struct err *err)
{
	fprintf(stderr, "netgate: %s\n", err->text);
	return status;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(*commands); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc, argv);
	return command_run(argc, argv);
}
