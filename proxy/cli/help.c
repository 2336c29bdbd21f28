/* SPDX-License-Identifier: Apache-2.0 */
/* The text of netgate --help. */
#include <stdio.h>

#include "proxy/cli/commands.h"

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
	"  --audit               let through what can be let through safely; record what would be denied\n"
	"\n"
	"What it leaves behind\n"
	"  --log FILE|-          JSON Lines, appended (default: a file in the state directory;\n"
	"                        its path is printed at the end); with -, the\n"
	"                        command's own standard output goes to standard error\n"
	"  --job NAME            the job's name in each record\n"
	"  -q, --quiet           no summary at the end\n"
	"  -v, --verbose         a line on stderr for each attempt\n"
	"\n"
	"The sandbox\n"
	"  --workspace DIR       the directory that is writable and real (default: this one)\n"
	"  --read PATH           also visible, read-only     --write PATH   also writable\n"
	"  --fs host             the host's file system as it is (this opens a lot)\n"
	"  --user USER           run as this user (root only)\n"
	"  --timeout DURATION    end the command after this time: 90s, 5m, 1h30m\n"
	"  --resolver IP[:PORT]  the name server that netgate itself asks (up to 4)\n"
	"\n"
	"Other commands\n"
	"  netgate check POLICY              load a policy, warn about it, print it canonically\n"
	"  netgate explain POLICY WHAT       what would happen to a URL or HOST[:PORT], and which rule decides\n"
	"  netgate verify LOG                check a log's sequence numbers and hash chain\n"
	"\n"
	"Exit status: the command's own; 124 the time limit was reached; 125 netgate itself failed;\n"
	"126 the command can't be executed; 127 it was not found; 128+N it was ended by signal N.\n"
	"More: man netgate, docs/policy.md, docs/records.md.\n";

void help_print(void)
{
	fputs(text, stdout);
}
