/* SPDX-License-Identifier: Apache-2.0 */
/* The two clocks: one that never jumps, for durations; one for records. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

#define US_PER_S	  1000000u /* microseconds a second */
#define CLOCK_WALL_STRLEN 28	   /* "2026-05-04T10:11:12.123456Z" and the NUL */

/* Microseconds of CLOCK_MONOTONIC. */
uint64_t clock_mono_us(void);

/* The same as of the kernel's last tick: some milliseconds behind, as libevent's timers are, for a fraction of the cost. */
uint64_t clock_tick_us(void);

/* The present UTC time as RFC 3339 with microseconds; returns `buf`. */
const char *clock_wall(char buf[static CLOCK_WALL_STRLEN]);

#endif
