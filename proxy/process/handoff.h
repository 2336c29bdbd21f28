/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy's side of base/handoff.h. */
#ifndef PROXY_PROCESS_HANDOFF_H
#define PROXY_PROCESS_HANDOFF_H

#include "base/handoff.h"

struct err;

/*
 * Waits for the launcher's sockets, which become the caller's, and what it says with them; HANDOFF_GUEST is -1 where the sandbox is no virtual machine.
 * Each must be of the kind that is due and all of one network namespace, which is not the caller's. Returns 0, or -1: with an
 * error where they are not; without one, the launcher has said why, or the monitor will.
 */
int handoff_take_gate(int fd, int gate[static HANDOFF_FDS], struct handoff_msg *msg, struct err *err);

/* Says HANDOFF_READY or HANDOFF_ARMED. Returns 0 or -errno. */
int handoff_say(int fd, enum handoff_type type);

/*
 * Takes the launcher's word. Returns 1 for HANDOFF_ARM, with what holds the command to its limits in `holder`; 0 when there
 * is none yet; -1 for anything else.
 */
int handoff_take_order(int fd, uint32_t holder[static RESOURCE_COUNT]);

#endif
