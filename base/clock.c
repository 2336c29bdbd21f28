/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two clocks. The calendar is computed here: gmtime_r() reads the time
 * zone file at its first call, which the proxy no longer may, and takes a lock.
 */
#include "base/clock.h"

#include <time.h>

static uint64_t read_us(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * US_PER_S + (uint64_t)ts.tv_nsec / 1000u;
}

uint64_t clock_mono_us(void)
{
	return read_us(CLOCK_MONOTONIC);
}

uint64_t clock_tick_us(void)
{
	return read_us(CLOCK_MONOTONIC_COARSE);
}

/* `v` in exactly `width` digits, and one byte after them. */
static char *put_padded(char *at, uint32_t v, int width, char after)
{
	for (int i = width - 1; i >= 0; i--) {
		at[i] = (char)('0' + v % 10);
		v /= 10;
	}
	at[width] = after;
	return at + width + 1;
}

const char *clock_wall(char buf[static CLOCK_WALL_STRLEN])
{
	uint32_t second_of_day, days, era_day, era_year, year_day, shifted, month;
	struct timespec ts;
	char *at = buf;

	clock_gettime(CLOCK_REALTIME, &ts);
	second_of_day = (uint32_t)((uint64_t)ts.tv_sec % 86400u);
	/*
	 * Days to a proleptic Gregorian date, in eras of 400 years (146,097
	 * days) that begin on 1 March 0000, so that the leap day is a year's last.
	 */
	days = (uint32_t)((uint64_t)ts.tv_sec / 86400u) + 719468u;
	era_day = days % 146097u;
	era_year = (era_day - era_day / 1460u + era_day / 36524u - era_day / 146096u) / 365u;
	year_day = era_day - (365u * era_year + era_year / 4u - era_year / 100u);
	shifted = (5u * year_day + 2u) / 153u;
	month = shifted < 10 ? shifted + 3 : shifted - 9;

	at = put_padded(at, days / 146097u * 400u + era_year + (month <= 2), 4, '-');
	at = put_padded(at, month, 2, '-');
	at = put_padded(at, year_day - (153u * shifted + 2u) / 5u + 1u, 2, 'T');
	at = put_padded(at, second_of_day / 3600u, 2, ':');
	at = put_padded(at, second_of_day / 60u % 60u, 2, ':');
	at = put_padded(at, second_of_day % 60u, 2, '.');
	at = put_padded(at, (uint32_t)(ts.tv_nsec / 1000), 6, 'Z');
	*at = '\0';
	return buf;
}
