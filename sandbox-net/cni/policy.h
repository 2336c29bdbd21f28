/* SPDX-License-Identifier: Apache-2.0 */
/* What a network's configuration allows, as netgate's options. */
#ifndef SANDBOX_NET_CNI_POLICY_H
#define SANDBOX_NET_CNI_POLICY_H

#include <jansson.h>

struct attach_options;
struct err;

/*
 * From the members "allow" (entries), "policy" (a file or several), "options" (words) and "acceptRisk" (words); the texts stay
 * the configuration's, or are never freed. *permits gets the member of this name, or NULL. Returns 0 or -1.
 */
int policy_of_config(const json_t *config, struct attach_options *o, const char **permits, struct err *err);

#endif
