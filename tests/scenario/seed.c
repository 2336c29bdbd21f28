/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "tests/scenario/seed.h"

#include <string.h>

#include "base/bytes.h"
#include "tests/scenario/fail.h"

#define SEED_MAX      (64 * 1024)
#define SEED_SEND_MAX 8192 /* bytes of one step that a seed keeps */

#define COMMON \
	"allow a.test;allow b.test;allow raw.test:22;allow any.test:443/tcp;allow 93.184.215.80:2222;deny c.test;" \
	"deny 93.184.215.66;limit idle 60s"

const char *const seed_policies[] = {
	COMMON,		 COMMON ";limit upload 100B", COMMON ";limit connections 1;limit rate 2/s",
	COMMON ";audit", COMMON ";limit names 1",     NULL,
};
const char *const seed_places[] = {
	"a.test:443",	   "a.test:80",	 "raw.test:22",	       "any.test:443",	    "10.200.0.1:3128",
	"10.200.0.1:1080", "x.test:443", "93.184.215.80:2222", "93.184.215.99:443", "198.18.77.1:443",
	"a.test:25",	   "c.test:80",	 "93.184.215.9:80",    "127.0.0.1:8080",    NULL,
};
const char *const seed_names[] = { "a.test", "b.test", "raw.test", "any.test", "x.test", NULL };
const char *const seed_addrs[] = {
	"93.184.215.1", "93.184.215.2", "2606:2800::1", "93.184.215.80", "93.184.216.1", NULL
};
const uint64_t seed_times[] = { 1000,	 50000,	  250000,   500000,   1000000,	2000000,
				5000000, 9999000, 10000000, 20000000, 60000000, 0 };

size_t seed_count(const char *const *list)
{
	size_t n = 0;

	while (list[n])
		n++;
	return n;
}

int seed_index(const char *const *list, const char *text)
{
	for (int i = 0; list[i]; i++)
		if (strcmp(list[i], text) == 0)
			return i;
	return 0;
}

int seed_time(uint64_t us)
{
	int i = 0;

	while (seed_times[i + 1] && seed_times[i + 1] <= us)
		i++;
	return i;
}

static void put(struct bytes *seed, const void *p, size_t n)
{
	if (seed && bytes_append(seed, p, n, SEED_MAX) < 0)
		fail("too long for a seed");
}

void seed_put(struct bytes *seed, int op, int a, int b)
{
	const uint8_t out[] = { (uint8_t)op, (uint8_t)a, (uint8_t)b };

	put(seed, out, b < 0 ? 2 : 3);
}

void seed_send(struct bytes *seed, int op, int who, const void *p, size_t n)
{
	size_t kept = n < SEED_SEND_MAX ? n : SEED_SEND_MAX;
	const uint8_t head[] = { (uint8_t)op, (uint8_t)who, (uint8_t)(kept >> 8), (uint8_t)kept };

	put(seed, head, sizeof(head));
	put(seed, p, kept);
}
