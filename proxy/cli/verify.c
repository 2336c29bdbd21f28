/* SPDX-License-Identifier: Apache-2.0 */
/* netgate verify LOG [--job NAME] [--head HASH]: is the log whole, and as it was written? */
#include "proxy/audit/verify.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "proxy/cli/commands.h"

int command_verify(int argc, char **argv)
{
	const char *job = NULL, *head = NULL;
	struct err err = { "" };
	bool bad = argc < 3 || argc % 2 == 0;
	FILE *in;
	enum verify_result r;

	for (int i = 3; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--job") == 0)
			job = argv[i + 1];
		else if (strcmp(argv[i], "--head") == 0)
			head = argv[i + 1];
		else
			bad = true;
	}
	if (bad) {
		fprintf(stderr, "usage: netgate verify LOG [--job NAME] [--head HASH]\n"
				"exit status: 0 whole, 1 broken, 2 error, 3 a run has no end record\n");
		return 2;
	}
	in = strcmp(argv[2], "-") == 0 ? stdin : fopen(argv[2], "re");
	if (!in) {
		err_set_errno(&err, errno, "cannot read the log %s", argv[2]);
		return command_fail(2, &err);
	}
	r = verify_log(in, stdout, job, head, &err);
	fclose(in);
	if (r == VERIFY_BROKEN)
		return command_fail(1, &err);
	return r == VERIFY_UNFINISHED ? 3 : 0;
}
