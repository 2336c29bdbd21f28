/* SPDX-License-Identifier: Apache-2.0 */
/* Where this process is: what it may do there, and where it can leave a file for containers. */
#ifndef SANDBOX_NET_OCI_PLACE_H
#define SANDBOX_NET_OCI_PLACE_H

#include <limits.h>
#include <stdbool.h>

struct err;

/* True for root in the host's user namespace; false in one of an ordinary user's, where he is only called root. */
bool place_is_host(void);

/*
 * Where a resolv.conf that names the gate is, the same for every container: for root in the runtime directory, where it is made;
 * for others where root's service has put it, since podman tells its precreate hooks nothing about the user. Returns 0 or -1.
 */
int place_resolv_conf(char path[static PATH_MAX], struct err *err);

/* Makes that file in a directory, readable for everybody. Returns 0 or -1. */
int place_write_resolv_conf(const char *dir, char path[static PATH_MAX], struct err *err);

#endif
