/* SPDX-License-Identifier: Apache-2.0 */
/* `sandbox-net run`: the launcher, from start to exit status. */
#ifndef SANDBOX_NET_RUN_H
#define SANDBOX_NET_RUN_H

#define RUN_FAILED 125 /* exit status: the sandbox could not be built, or had to be ended */

struct options;

/* Runs the command of `o` in a sandbox and returns the launcher's exit status. */
int run_command(const struct options *o);

#endif
