/* SPDX-License-Identifier: Apache-2.0 */
/* `sandbox-net guest`: what the guest of a virtual machine must be told. */
#ifndef SANDBOX_NET_GUEST_H
#define SANDBOX_NET_GUEST_H

/* Takes its argv, its own name first, and returns the exit status. */
int guest_main(int argc, char **argv);

#endif
