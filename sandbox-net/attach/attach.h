/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands that connect sandboxes which others made: each takes its argv, its own name first, and returns the exit status. */
#ifndef SANDBOX_NET_ATTACH_H
#define SANDBOX_NET_ATTACH_H

enum { ATTACH_FAILED = 125 };

struct attach_options;
struct err;

/* Gives the sandbox that the options name a gate, and says so on stderr unless it is to be quiet. Returns 0; or -1, and nothing is left of it. */
int attach_sandbox(const struct attach_options *o, struct err *err);

/* sandbox-net attach: gives an existing network namespace a gate. */
int attach_main(int argc, char **argv);

/* sandbox-net tap: the same with a TAP device in it, for a virtual machine's monitor. */
int tap_main(int argc, char **argv);

/* sandbox-net detach: takes gates away. */
int detach_main(int argc, char **argv);

/* sandbox-net ls: which jobs wait, and what is attached to them. */
int list_main(int argc, char **argv);

#endif
