/* SPDX-License-Identifier: Apache-2.0 */
/* An attached sandbox, as its monitor knows it. */
#ifndef PROXY_PROCESS_SESSION_H
#define PROXY_PROCESS_SESSION_H

#include "base/attach.h"
#include "proxy/process/place.h"

struct session {
	struct attach_msg request; /* what sandbox-net asked for */
	struct place place;
	int connection; /* to sandbox-net, until the gate is armed */
	int keeper_fd;	/* to the keeper: its orders (keeper.h), and its end */
};

#endif
