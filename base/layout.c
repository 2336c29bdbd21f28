/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "base/layout.h"

#include <string.h>

#include "base/handoff.h"
#include "base/prefix.h"

static struct addr parse(const char *text)
{
	struct addr a = { .family = ADDR_NONE };

	(void)addr_parse(text, strlen(text), &a);
	return a;
}

void layout_usual(struct gate_layout *l)
{
	*l = (struct gate_layout){ .gate4 = parse(GATE_ADDR4),
				   .sandbox4 = parse(GATE_SANDBOX4),
				   .gate6 = parse(GATE_ADDR6),
				   .sandbox6 = parse(GATE_SANDBOX6),
				   .plen4 = GATE_PLEN4,
				   .plen6 = GATE_PLEN6 };
}

/* The address with every bit behind the prefix `ones` or not. */
static struct addr edge(const struct addr *a, unsigned plen, bool ones)
{
	struct addr out = *a;

	for (unsigned bit = plen; bit < 8 * addr_size(a); bit++) {
		const uint8_t mask = (uint8_t)(0x80 >> bit % 8);

		out.b[bit / 8] = (uint8_t)(ones ? out.b[bit / 8] | mask : out.b[bit / 8] & ~mask);
	}
	return out;
}

struct addr layout_network(const struct addr *a, unsigned plen)
{
	return edge(a, plen, false);
}

struct addr layout_broadcast(const struct addr *a, unsigned plen)
{
	return edge(a, plen, true);
}

/* In one of these, an address is nobody's, everybody's, or a name. */
static bool is_taken(const struct addr *a)
{
	static const char *const ranges[] = { "0.0.0.0/8",     "127.0.0.0/8", "224.0.0.0/3", GATE_POOL4, "::/96",
					      "::ffff:0:0/96", "fe80::/10",   "ff00::/8",    GATE_POOL6 };
	struct prefix range;

	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++)
		if (prefix_parse(ranges[i], strlen(ranges[i]), &range) || prefix_contains(&range, a))
			return true;
	return false;
}

/* Two hosts of one network. */
static bool are_neighbours(const struct addr *a, const struct addr *b, unsigned plen)
{
	const struct addr first = edge(a, plen, false), last = edge(a, plen, true), other = edge(b, plen, false);

	return addr_equal(&first, &other) && !addr_equal(a, b) && !addr_equal(a, &first) && !addr_equal(b, &first) &&
	       !addr_equal(a, &last) && !addr_equal(b, &last) && !is_taken(a) && !is_taken(b);
}

bool layout_ok(const struct gate_layout *l)
{
	return l->gate4.family == ADDR_V4 && l->sandbox4.family == ADDR_V4 && l->gate6.family == ADDR_V6 &&
	       l->sandbox6.family == ADDR_V6 && l->plen4 > 0 && l->plen4 <= 30 && l->plen6 > 0 && l->plen6 <= 126 &&
	       are_neighbours(&l->gate4, &l->sandbox4, l->plen4) && are_neighbours(&l->gate6, &l->sandbox6, l->plen6);
}
