/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Container Network Interface (CNI specification 0.4.0, 1.0.0 and 1.1.0): a plugin that
 * gives a container a gate of its own as its network. Parameters come in the environment, the configuration on stdin,
 * the result goes to stdout, in JSON also when it is an error.
 */
#ifndef SANDBOX_NET_CNI_H
#define SANDBOX_NET_CNI_H

/* The name by which it is found as a plugin: "type" of a network's configuration. */
#define CNI_PLUGIN "netgate"

/* sandbox-net cni, or this program under the plugin's name. Returns the exit status. */
int cni_main(int argc, char **argv);

#endif
