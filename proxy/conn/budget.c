/* SPDX-License-Identifier: Apache-2.0 */
/* Accounting; see the header. The bucket of a rate holds a second's worth of new connections. */
#include "proxy/conn/budget.h"

#include <stddef.h>

struct budget budget_of(const struct limits *limits, uint64_t open_max, uint64_t now_us)
{
	uint64_t rate = limits->max[LIMIT_RATE];
	uint64_t open = limits->max[LIMIT_CONNECTIONS];
	uint64_t idle_us = limits->max[LIMIT_IDLE];

	return (struct budget){
		.upload = limits->max[LIMIT_UPLOAD] ? limits->max[LIMIT_UPLOAD] : BUDGET_UNLIMITED,
		.open_max = open && open < open_max ? open : open_max,
		.rate = bucket_full(rate, rate, now_us),
		.idle_us = idle_us ? idle_us : (uint64_t)BUDGET_IDLE_S * 1000000,
	};
}

struct budget budget_of_rule(const struct limits *limits, const struct budget *job, uint64_t now_us)
{
	struct budget b = budget_of(limits, job->open_max, now_us);

	if (limits->max[LIMIT_IDLE] == 0 || b.idle_us > job->idle_us)
		b.idle_us = job->idle_us;
	return b;
}

enum reason budget_admit(struct budget *b, bool holds, uint64_t now_us)
{
	if (holds && b->open >= b->open_max)
		return REASON_LIMIT_CONNECTIONS;
	if (b->rate.rate && !bucket_take(&b->rate, now_us))
		return REASON_LIMIT_RATE;
	b->open += holds;
	return REASON_NONE;
}

void budget_closed(struct budget *b)
{
	b->open--;
}

bool budget_has_upload(const struct budget *b, uint64_t n)
{
	return b->upload > 0 && b->upload >= n;
}

uint64_t *budget_upload(struct budget *b)
{
	return b->upload == BUDGET_UNLIMITED ? NULL : &b->upload;
}
