/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox-net detach. */
#include <stdio.h>

#include "base/err.h"
#include "sandbox-net/attach/attach.h"
#include "sandbox-net/attach/jobs.h"
#include "sandbox-net/attach/options.h"

int detach_main(int argc, char **argv)
{
	static struct attach_options options;
	struct err err = { "" };

	if (!detach_options_parse(argc, argv, &options, &err) && options.help) {
		fputs(detach_help, stdout);
		return 0;
	}
	if (!err.text[0] && !jobs_detach(options.job, options.name ? options.name : "", &err))
		return 0;
	fprintf(stderr, "sandbox-net: %s\n", err.text);
	return ATTACH_FAILED;
}
