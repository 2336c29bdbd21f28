/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/oci/complain.h"

#include <ctype.h>
#include <stdio.h>
#include <syslog.h>

#include "base/err.h"
#include "sandbox-net/oci/oci.h"

int complain(const struct err *err)
{
	struct err shown = *err;

	/* Parts of it may be what a container asks for, and what root's service says has lines. */
	for (char *c = shown.text; *c; c++)
		*c = *c != '\n' && iscntrl((unsigned char)*c) ? '?' : *c;
	fprintf(stderr, "netgate: %s\n", shown.text);
	for (char *c = shown.text; *c; c++)
		*c = *c == '\n' ? ' ' : *c;
	openlog("netgate", LOG_PID, LOG_DAEMON);
	syslog(LOG_ERR, "%s", shown.text);
	closelog();
	return OCI_FAILED;
}
