/* SPDX-License-Identifier: Apache-2.0 */
/* A token bucket: full at first, `rate` tokens a second, and never more than `burst` of them. Pure: the caller has the clock. */
#ifndef BASE_BUCKET_H
#define BASE_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct bucket {
	uint64_t rate, burst;
	uint64_t credit; /* millionths of a token */
	uint64_t at_us;	 /* when credit was last given */
};

/* A full bucket. */
struct bucket bucket_full(uint64_t rate, uint64_t burst, uint64_t now_us);

/* Takes one token. False when there is none; then nothing changes. `now_us` never goes back. */
bool bucket_take(struct bucket *b, uint64_t now_us);

#endif
