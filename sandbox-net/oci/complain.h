/* SPDX-License-Identifier: Apache-2.0 */
/* Why a container is kept from starting, where somebody can read it. */
#ifndef SANDBOX_NET_OCI_COMPLAIN_H
#define SANDBOX_NET_OCI_COMPLAIN_H

struct err;

/*
 * Says it on standard error, and to syslog(3) as "netgate": some engines drop what their hooks say, and a container that never was has no log
 * of netgate's. Returns OCI_FAILED.
 */
int complain(const struct err *err);

#endif
