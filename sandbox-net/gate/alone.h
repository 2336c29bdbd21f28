/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Somebody outside of S may add an interface after the gate is there: "docker network connect", another CNI plugin, podman for a container
 * with a user namespace of its own. The proxy hears of it, and the gate ends (proxy/process/link.c); rules of S's own see to it that the interface
 * carries nothing, from its first moment on; those of a virtual machine's S (wire.h) do as well. Where a process in S has CAP_NET_ADMIN there, it may have interfaces of its own, and could remove the rules: there are
 * none then.
 */
#ifndef SANDBOX_NET_ALONE_H
#define SANDBOX_NET_ALONE_H

struct err;

/*
 * In S, the present network namespace: IP in and out over `lo` and the gate's link alone (GATE_SANDBOX_GROUP), whether that is there yet or not,
 * and no ARP. They stay when the gate ends. Frames of packet sockets (CAP_NET_RAW) are not held up. Returns 0 or -1.
 */
int alone_load(struct err *err);

#endif
