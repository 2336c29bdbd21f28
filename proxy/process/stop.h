/* SPDX-License-Identifier: Apache-2.0 */
/* When the monitor stops (SIGSTOP), and when it must not: a command that chose the moment would have no time limit. */
#ifndef PROXY_PROCESS_STOP_H
#define PROXY_PROCESS_STOP_H

#include <stdint.h>

/* Stops the calling process until it gets SIGCONT, at `until_us` (CLOCK_MONOTONIC) at the latest; 0: however long that is. */
void stop_until(uint64_t until_us);

/* From here on, writing to a terminal from its background does not stop the process: the command may ask for that (stty tostop). */
void stop_never_by_writing(void);

#endif
