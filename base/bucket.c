/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "base/bucket.h"

#define TOKEN 1000000u /* in millionths: a rate in tokens a second is one in millionths a microsecond */

struct bucket bucket_full(uint64_t rate, uint64_t burst, uint64_t now_us)
{
	return (struct bucket){ .rate = rate, .burst = burst, .credit = burst * TOKEN, .at_us = now_us };
}

bool bucket_take(struct bucket *b, uint64_t now_us)
{
	uint64_t missing = b->burst * TOKEN - b->credit;
	uint64_t elapsed = now_us - b->at_us;

	/* Divided rather than multiplied: after a long pause the product would overflow. */
	if (elapsed > missing / b->rate)
		b->credit += missing;
	else
		b->credit += elapsed * b->rate;
	b->at_us = now_us;
	if (b->credit < TOKEN)
		return false;
	b->credit -= TOKEN;
	return true;
}
