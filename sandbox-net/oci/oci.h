/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers of an OCI runtime: the ways into `sandbox-net attach` that a
 * container engine calls by itself. Each takes its argv, its own name first, and returns the exit status;
 * any other status than 0 keeps the container from starting, and what was said on stderr is shown by the engine.
 */
#ifndef SANDBOX_NET_OCI_H
#define SANDBOX_NET_OCI_H

#define OCI_FAILED 1

/* A createRuntime hook: gives the container that the state on stdin describes a gate. */
int oci_hook_main(int argc, char **argv);

/* A runtime that adds the hook to each container, and has another runtime do the rest. */
int oci_runtime_main(int argc, char **argv);

/* podman's precreate hook: the config.json on stdin, prepared, to stdout. */
int oci_precreate_main(int argc, char **argv);

/* A service of root's that attaches the containers of users who aren't. */
int oci_service_main(int argc, char **argv);

#endif
