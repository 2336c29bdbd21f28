/* SPDX-License-Identifier: Apache-2.0 */
/* netgate verify LOG... [--job NAME] [--head HASH]: is the log whole, and as it was written? */
#include "proxy/audit/verify.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/cli/commands.h"

struct arguments {
	char *const *logs;
	size_t n;
	const char *job, *head;
};

/* In any order; each once. "--job NAME" or "--job=NAME". Returns 0 or -1. */
static int read_arguments(struct arguments *a, int argc, char **argv)
{
	static const struct option table[] = { { "job", required_argument, NULL, 'j' },
					       { "head", required_argument, NULL, 'h' },
					       { NULL, 0, NULL, 0 } };
	int code;

	*a = (struct arguments){ .logs = NULL };
	opterr = 0;
	optind = 2;
	while ((code = getopt_long(argc, argv, "", table, NULL)) != -1) {
		const char **slot = code == 'j' ? &a->job : code == 'h' ? &a->head : NULL;

		if (!slot || *slot)
			return -1;
		*slot = optarg;
	}
	if (argc - optind < 1)
		return -1;
	a->logs = argv + optind;
	a->n = (size_t)(argc - optind);
	return 0;
}

/* Opens them all. Returns how many are open: fewer than there are with an error. */
static size_t open_files(const struct arguments *a, struct verify_file *files, struct err *err)
{
	for (size_t i = 0; i < a->n; i++) {
		files[i].name = a->logs[i];
		files[i].in = strcmp(a->logs[i], "-") == 0 ? stdin : fopen(a->logs[i], "re");
		if (!files[i].in) {
			err_set_errno(err, errno, "cannot read the log %s", a->logs[i]);
			return i;
		}
	}
	return a->n;
}

int command_verify(int argc, char **argv)
{
	enum verify_result r = VERIFY_ERROR;
	struct verify_file *files;
	struct err err = { "" };
	struct arguments a;
	size_t open = 0;

	if (read_arguments(&a, argc, argv))
		return help_misused("verify");
	files = calloc(a.n, sizeof(*files));
	if (!files)
		err_set(&err, "out of memory");
	else
		open = open_files(&a, files, &err);
	if (files && open == a.n)
		r = verify_log(files, a.n, stdout, a.job, a.head, &err);
	while (open-- > 0)
		if (files[open].in != stdin)
			fclose(files[open].in);
	free(files);
	if (r == VERIFY_ERROR)
		return command_fail(2, &err);
	return r == VERIFY_BROKEN ? 1 : r == VERIFY_UNFINISHED ? 3 : 0;
}
