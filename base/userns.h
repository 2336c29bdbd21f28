/* SPDX-License-Identifier: Apache-2.0 */
/* Which user namespace this process is in. */
#ifndef BASE_USERNS_H
#define BASE_USERNS_H

#include <stdbool.h>

/* True in the host's own, which maps every id to itself (user_namespaces(7)). What can't be read is another one. */
bool userns_is_initial(void);

#endif
