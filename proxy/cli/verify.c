/* SPDX-License-Identifier: Apache-2.0 */
/* netgate verify LOG [--job NAME] [--head HASH]: is the log whole, and as it was written? */
#include "proxy/audit/verify.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "proxy/cli/commands.h"

struct arguments {
	const char *log, *job, *head;
};

/* In any order; each once. "--job NAME" or "--job=NAME". Returns 0 or -1. */
static int read_arguments(struct arguments *a, int argc, char **argv)
{
	static const struct option table[] = { { "job", required_argument, NULL, 'j' },
					       { "head", required_argument, NULL, 'h' },
					       { NULL, 0, NULL, 0 } };
	int code;

	*a = (struct arguments){ .log = NULL };
	opterr = 0;
	optind = 2;
	while ((code = getopt_long(argc, argv, "", table, NULL)) != -1) {
		const char **slot = code == 'j' ? &a->job : code == 'h' ? &a->head : NULL;

		if (!slot || *slot)
			return -1;
		*slot = optarg;
	}
	if (argc - optind != 1)
		return -1;
	a->log = argv[optind];
	return 0;
}

int command_verify(int argc, char **argv)
{
	struct err err = { "" };
	struct arguments a;
	FILE *in;
	enum verify_result r;

	if (read_arguments(&a, argc, argv))
		return help_misused("verify");
	in = strcmp(a.log, "-") == 0 ? stdin : fopen(a.log, "re");
	if (!in) {
		err_set_errno(&err, errno, "cannot read the log %s", a.log);
		return command_fail(2, &err);
	}
	r = verify_log(in, stdout, a.job, a.head, &err);
	fclose(in);
	if (r == VERIFY_ERROR)
		return command_fail(2, &err);
	return r == VERIFY_BROKEN ? 1 : r == VERIFY_UNFINISHED ? 3 : 0;
}
