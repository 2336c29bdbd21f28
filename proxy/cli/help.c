/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of netgate --help and of its subcommands' help. */
#include <stdio.h>
#include <string.h>

#include "proxy/cli/commands.h"
#include "rules/entry.h"

static const char text[] =
	"netgate runs a command in a sandbox whose only network is a gate: it reaches the\n"
	"names you allow and nothing else, and every attempt is on record.\n"
	"\n"
	"  netgate --allow api.example.com -- python3 job.py\n"
	"\n"
	"What it may reach\n"
	"  --allow NAME          TLS on port 443 and HTTP on port 80 of this name\n"
	"  --allow NAME:PORT     any protocol on that port (NAME:PORT/tcp: any bytes, unseen)\n"
	"  --allow '*.NAME'      every name below NAME; '.NAME' is NAME too\n"
	"  --allow CIDR:PORT     addresses, for what has no name\n"
	"  --deny ENTRY          the same forms; a denial beats every allowance\n"
	"  --policy FILE         a YAML policy; may be given with the flags above\n"
	"  --permits DIR         policies to choose from: --choose NAME, --narrow ENTRY (see policy.md)\n"
	"  --audit               let through what can be let through safely; record what would be denied\n"
	"\n"
	"How much of it\n"
	"  --max-upload SIZE     bytes sent in all, such as 20MiB; then connections are cut and refused\n"
	"  --max-connections N   open at once            --max-rate N/s   new ones a second\n"
	"  --max-names N         different names looked up or connected to\n"
	"  --idle DURATION       end a connection on which nothing moves (default: 1h)\n"
	"  --timeout DURATION    end the command after this time: 90s, 5m, 1h30m; 90 is seconds\n"
	"  --memory SIZE         of all its processes together, such as 512MiB\n"
	"  --pids N              processes and threads   --cpus N         processors, such as 0.5\n"
	"\n"
	"What it leaves behind\n"
	"  --log FILE|-          JSON Lines, appended (default: a file in the state directory;\n"
	"                        its path is printed at the end); with -, the\n"
	"                        command's own standard output goes to standard error\n"
	"  --job NAME            the job's name in each record\n"
	"  --json                the result, with the command's output, as one object on stdout\n"
	"  -q, --quiet           no warnings about the policy, no summary at the end\n"
	"  -v, --verbose         a line on stderr for each attempt; not together with --quiet\n"
	"\n"
	"The sandbox\n"
	"  --workspace DIR       the directory that is writable and real (default: this one)\n"
	"  --read PATH           also visible, read-only     --write PATH   also writable\n"
	"  --fs host             the host's file system as it is (this opens a lot)\n"
	"  --user USER           run as this user (root only)\n"
	"  --tap NAME            COMMAND runs a virtual machine: a TAP device of this name for its guest\n"
	"  --proxy-env           set http_proxy, https_proxy and all_proxy to the gate's explicit proxy\n"
	"  --resolver IP[:PORT]  the name server that netgate itself asks (up to 4)\n"
	"\n"
	"Without a command: a gate that waits for sandboxes (see man sandbox-net: attach)\n"
	"  netgate --job NAME --allow HOST [options]\n"
	"  --keep                stay when the last sandbox is gone, until a signal\n"
	"  --wait DURATION       give up when nobody was attached in this time\n"
	"  --detach              go to the background when it is ready     --pid-file FILE   its process id\n"
	"  --ready-fd N          write a line to descriptor N when it is ready, and close it\n"
	"\n"
	"Other commands\n"
	"  netgate check POLICY              load a policy, warn about it, print it canonically\n"
	"  netgate explain POLICY WHAT       what would happen to a URL or HOST[:PORT], and which rule decides\n"
	"  netgate verify LOG...             check a log's sequence numbers and hash chain\n"
	"  netgate help [check|explain|verify]   as --help; --version says which netgate this is\n"
	"\n"
	"Exit status: the command's own; 124 the time limit was reached; 125 netgate itself failed;\n"
	"126 the command can't be executed; 127 it was not found; 128+N it was ended by signal N.\n"
	"More: man netgate; policy.md and records.md in share/doc/netgate (docs/ of the source).\n";

static const struct {
	const char *command, *text;
} usages[] = {
	{ "check", "usage: netgate check POLICY   (\"-\": standard input)\n"
		   "prints the canonical policy, and warnings on stderr; exit status: 0 it loads, 1 it does not, 2 "
		   "wrong usage\n" },
	{ "explain", "usage: netgate explain POLICY URL|HOST[:PORT]\n"
		     "exit status: 0 allowed, 1 denied, 2 error\n" },
	{ "verify",
	  "usage: netgate verify LOG... [--job NAME] [--head HASH]   (\"-\": standard input)\n"
	  "the files of a rotated log in their order, the oldest first\n"
	  "exit status: 0 whole, 1 broken, 2 error, 3 a run has no end record, or a part of it is not here\n" },
};

/* NULL when there is no such command. */
static const char *find(const char *command)
{
	if (!command || strcmp(command, "help") == 0)
		return text;
	for (size_t i = 0; i < sizeof(usages) / sizeof(*usages); i++)
		if (strcmp(usages[i].command, command) == 0)
			return usages[i].text;
	return NULL;
}

void help_print(const char *command)
{
	fputs(find(command), stdout);
}

int help_misused(const char *command)
{
	fputs(find(command), stderr);
	return 2;
}

int command_help(int argc, char **argv)
{
	char quoted[ENTRY_QUOTE_MAX];
	struct err err = { "" };

	if (argc > 2 && (argc > 3 || !find(argv[2]))) {
		err_set(&err, "help: %s: not a command; write check, explain or verify, or nothing",
			entry_quote(argv[argc - 1], strlen(argv[argc - 1]), quoted));
		return command_fail(2, &err);
	}
	help_print(argv[2]);
	return 0;
}
