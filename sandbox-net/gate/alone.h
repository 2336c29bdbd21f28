/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A container engine may add an interface after the gate is there (podman does
 * for a container with a user namespace of its own), when nobody looks any more. Where no process in S has CAP_NET_ADMIN there,
 * rules can see to it that such an interface carries nothing.
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
