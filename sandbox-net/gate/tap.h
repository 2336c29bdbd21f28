/* SPDX-License-Identifier: Apache-2.0 */
/* TAP devices (Documentation/networking/tuntap.rst of the kernel). */
#ifndef SANDBOX_NET_TAP_H
#define SANDBOX_NET_TAP_H

#include <sys/types.h>

struct err;

#define TAP_DEFAULT "tap0"

/* Whether this can be the name of a TAP device beside the gate's link: letters, digits, '-' and '_'. Returns 0 or -1. */
int tap_check_name(const char *name, struct err *err);

/*
 * Makes a TAP device that stays when nobody has it open, with one queue, which
 * processes of `owner` (and no others without a capability) may open; or, where one of this name is left from before, makes
 * it that. Returns 0 or -1.
 */
int tap_make(const char *name, uid_t owner, struct err *err);

/*
 * Opens the TAP device `name` of the present network namespace as its monitor would, or makes one that lives as
 * long as the descriptor: whole Ethernet frames, non-blocking, CLOEXEC. Returns the descriptor or -1.
 */
int tap_open(const char *name, struct err *err);

#endif
