/* SPDX-License-Identifier: Apache-2.0 */
/* Reports to the monitor. One that is gone is noticed elsewhere (watch.h), so a report that can't be sent is dropped. */
#include "sandbox-net/run/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fdpass.h"
#include "base/report.h"
#include "sandbox-net/run/exec.h"

static void report_send(const struct report *r, enum report_type type, int32_t value, const char *text)
{
	struct report_msg msg = { .type = type, .value = value };

	if (r->fd < 0) {
		if (text)
			fprintf(stderr, "sandbox-net: %s\n", text);
		return;
	}
	snprintf(msg.text, sizeof(msg.text), "%s", text ? text : "");
	if (send(r->fd, &msg, sizeof(msg), MSG_NOSIGNAL) < 0 && text && (errno == EBADF || errno == ENOTSOCK))
		fprintf(stderr, "sandbox-net: %s\n", text); /* not from netgate */
}

void report_note(const struct report *r, const char *text)
{
	report_send(r, REPORT_NOTE, 0, text);
}

void report_fixed(const struct report *r)
{
	report_send(r, REPORT_FIXED, 0, NULL);
}

void report_failed(const struct report *r, const char *text)
{
	report_send(r, REPORT_FAILED, 0, text);
}

void report_sandbox(const struct report *r, pid_t init, int user_ns, int net_ns)
{
	const struct report_msg msg = { .type = REPORT_SANDBOX, .value = init };
	const int fds[REPORT_FDS] = { [REPORT_USER] = user_ns, [REPORT_NET] = net_ns };

	if (r->fd >= 0)
		(void)fdpass_send(r->fd, &msg, sizeof(msg), fds, REPORT_FDS);
}

void report_started(const struct report *r, pid_t pid)
{
	report_send(r, REPORT_STARTED, pid, NULL);
}

void report_exec(const struct report *r, const char *command, int errnum, const char *why)
{
	char text[REPORT_TEXT_MAX];

	snprintf(text, sizeof(text), "%s: %s", command, why[0] ? why : strerror(errnum));
	report_send(r, REPORT_EXEC, exec_status(errnum), text);
}

void report_stopped(const struct report *r)
{
	report_send(r, REPORT_STOPPED, 0, NULL);
}

void report_ended(const struct report *r, int status, const struct resource_hits *hits)
{
	const struct report_msg msg = { .type = REPORT_ENDED, .value = status, .hits = *hits };

	if (r->fd >= 0)
		(void)send(r->fd, &msg, sizeof(msg), MSG_NOSIGNAL);
}
