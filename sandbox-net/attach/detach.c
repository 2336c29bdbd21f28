/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox-net detach. */
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/attach/attach.h"
#include "sandbox-net/attach/client.h"
#include "sandbox-net/attach/options.h"

static int detach(const struct attach_options *o, struct err *err)
{
	int sock = client_connect(o->job, err);
	struct attach_msg msg = { 0 };
	int rc;

	if (sock < 0)
		return -1;
	snprintf(msg.name, sizeof(msg.name), "%s", o->name ? o->name : "");
	rc = client_send(sock, &msg, ATTACH_DETACH, -1, err) || client_wait(sock, &msg, ATTACH_DONE, NULL, err);
	close(sock);
	return rc ? -1 : 0;
}

int detach_main(int argc, char **argv)
{
	static struct attach_options options;
	struct err err = { "" };

	if (!detach_options_parse(argc, argv, &options, &err) && options.help) {
		fputs(detach_help, stdout);
		return 0;
	}
	if (!err.text[0] && !detach(&options, &err))
		return 0;
	fprintf(stderr, "sandbox-net: %s\n", err.text);
	return ATTACH_FAILED;
}
