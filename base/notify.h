/* SPDX-License-Identifier: Apache-2.0 */
/* sd_notify(3): tells a service manager how far netgate is. */
#ifndef BASE_NOTIFY_H
#define BASE_NOTIFY_H

/* Sends `state`, such as "READY=1", to $NOTIFY_SOCKET if there is one. */
void notify(const char *state);

#endif
