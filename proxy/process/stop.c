/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. A process that is stopped can do nothing, so the kernel sends it SIGCONT. */
#include "proxy/process/stop.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

#include "base/clock.h"

#define AGAIN_S 1 /* should the first one come before the stop */

void stop_until(uint64_t until_us)
{
	struct sigevent wake = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT };
	const struct itimerspec when = { .it_value = { .tv_sec = (time_t)(until_us / US_PER_S),
						       .tv_nsec = (long)(until_us % US_PER_S * 1000) },
					 .it_interval = { .tv_sec = AGAIN_S } };
	timer_t timer;

	if (until_us == 0) {
		raise(SIGSTOP);
		return;
	}
	/* Without the timer it goes on: the shell does not see its job stop, and the time limit holds. */
	if (timer_create(CLOCK_MONOTONIC, &wake, &timer) < 0)
		return;
	if (timer_settime(timer, TIMER_ABSTIME, &when, NULL) == 0)
		raise(SIGSTOP);
	timer_delete(timer);
}

void stop_never_by_writing(void)
{
	sigset_t ttou;

	sigemptyset(&ttou);
	sigaddset(&ttou, SIGTTOU);
	sigprocmask(SIG_BLOCK, &ttou, NULL);
}
