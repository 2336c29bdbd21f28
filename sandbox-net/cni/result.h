/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin says on stdout: one JSON object. */
#ifndef SANDBOX_NET_CNI_RESULT_H
#define SANDBOX_NET_CNI_RESULT_H

#include "sandbox-net/cni/call.h"

/* The result of ADD (section 5): the link, its addresses and routes, the gate as name server. Returns 0 or -1. */
int cni_print_result(const struct cni_call *c, struct err *err);

/* The answer to VERSION. Returns 0 or -1. */
int cni_print_versions(const char *asked, struct err *err);

/* The error object. `version` is NULL while it is not known. */
void cni_print_error(const char *version, enum cni_code code, const char *text);

/* Whether an earlier result ("prevResult") is one of ADD for this attachment. Returns 0 or -1. */
int cni_check_result(const struct cni_call *c, const json_t *result, struct err *err);

#endif
