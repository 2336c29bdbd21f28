/* SPDX-License-Identifier: Apache-2.0 */
/* Loading the rules: the batch that was made when netgate was built, with this gate's values in it, in one message. */
#include "sandbox-net/gate/rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/netlink.h>

#include "base/err.h"
#include "base/layout.h"
#include "sandbox-net/gate/netlink.h"
#include "sandbox-net/gate/rules_batch.h"
#include "sandbox-net/gate/sysctl.h"

static void set_addr(struct rules_values *values, enum rules_variable variable, const struct addr *addr)
{
	memcpy(values->v[variable], addr->b, addr_size(addr));
}

void rules_set_layout(struct rules_values *values, const struct gate_layout *l)
{
	const struct addr network4 = layout_network(&l->sandbox4, l->plen4);
	const struct addr broadcast4 = layout_broadcast(&l->sandbox4, l->plen4);

	set_addr(values, RULES_GATE4, &l->gate4);
	set_addr(values, RULES_GATE6, &l->gate6);
	set_addr(values, RULES_SANDBOX4, &l->sandbox4);
	set_addr(values, RULES_SANDBOX6, &l->sandbox6);
	set_addr(values, RULES_NETWORK4, &network4);
	set_addr(values, RULES_BROADCAST4, &broadcast4);
}

void rules_set_name(struct rules_values *values, enum rules_variable variable, const char *name)
{
	memset(values->v[variable], 0, RULES_VALUE_MAX);
	snprintf((char *)values->v[variable], RULES_VALUE_MAX, "%s", name);
}

void rules_set_index(struct rules_values *values, enum rules_variable variable, int index)
{
	memcpy(values->v[variable], &index, sizeof(index));
}

int rules_load(enum rules_set set, const struct rules_values *values, struct err *err)
{
	__attribute__((cleanup(netlink_close))) struct netlink nl = { .fd = -1 };
	const struct rules_batch *batch = &rules_batches[set];
	uint8_t *bytes = malloc(batch->len);
	int r;

	if (!bytes)
		return err_set(err, "out of memory");
	memcpy(bytes, batch->bytes, batch->len);
	for (size_t i = 0; i < batch->n_places; i++) {
		const enum rules_variable variable = batch->places[i].variable;

		memcpy(bytes + batch->places[i].offset, values->v[variable], rules_value_size(variable));
	}
	r = netlink_open(&nl, NETLINK_NETFILTER);
	if (!r)
		r = netlink_send_batch(&nl, bytes, batch->len);
	free(bytes);
	return r ? err_set_errno(err, -r,
				 "the kernel refused the gate's rules (is nf_tables with tproxy, log and reject "
				 "available?)")
		 : 0;
}

void rules_lift_icmp_limit(int proc)
{
	/*
	 * The types that are limited: the default without "destination unreachable" (icmp(7); 3 in IPv4, 1 in IPv6).
	 * Without effect the limit stays, which the caller can do nothing about.
	 */
	(void)sysctl_write(proc, "net/ipv4/icmp_ratemask", "6160");
	(void)sysctl_write(proc, "net/ipv6/icmp/ratemask", "0,3-127");
}
