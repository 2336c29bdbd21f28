/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor's dealings with the finder: the socket between it and the proxy, its start and its end. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fdpass.h"
#include "base/report.h"
#include "proxy/process/finder.h"
#include "proxy/process/monitor_impl.h"

void monitor_offer_finder(struct run *r)
{
	const struct monitor_msg msg = { .type = MONITOR_FINDER };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	if (fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0 && fdpass_send(r->m->proxy_fd, &msg, sizeof(msg), pair, 1) == 0)
		r->finder_fd = pair[1];
	else
		close(pair[1]);
	close(pair[0]);
}

static void close_finder_fd(struct run *r)
{
	if (r->finder_fd >= 0)
		close(r->finder_fd);
	r->finder_fd = -1;
}

void monitor_start_finder(struct run *r, const struct finder_sandbox *sandbox)
{
	pid_t self = getpid();

	if (r->finder_fd < 0 || sandbox->init < 0 || (sandbox->init == 0 && !sandbox->place))
		return;
	r->finder = fork();
	if (r->finder == 0)
		finder_run(r->finder_fd, sandbox, self);
	if (r->finder < 0)
		r->finder = 0;
	close_finder_fd(r);
}

void monitor_end_finder(struct run *r)
{
	close_finder_fd(r);
	if (!r->finder)
		return;
	kill(r->finder, SIGKILL);
	while (waitpid(r->finder, NULL, 0) < 0 && errno == EINTR)
		;
	r->finder = 0;
}
