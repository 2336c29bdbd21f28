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
 * A resolv.conf that names the gate, the same for every container: makes it in the runtime directory (of root, or of the user
 * by XDG_RUNTIME_DIR) and says where it is. Returns 0 or -1.
 */
int place_resolv_conf(char path[static PATH_MAX], struct err *err);

#endif
