/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who made an attempt, also when the process is gone: a kernel program (trace.bpf.c) on the sandbox's end of its link notes the
 * sender of each first packet, before the packet leaves.
 *
 * It is on that link alone: no other sandbox's packets and none of the host's go through it, and it goes with the link. Nothing
 * is pinned. What it notes is in memory that finder and proxy have mapped, for reading: once it is loaded, no system call is needed.
 *
 * Needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN (or CAP_SYS_ADMIN) over the machine, Linux 5.17 with its own types in
 * /sys/kernel/btf/vmlinux, and the modules sch_ingress and cls_bpf.
 */
#ifndef PROXY_PROCESS_TRACE_H
#define PROXY_PROCESS_TRACE_H

#include <stdbool.h>
#include <stdint.h>

struct finder_request;
struct procfs_process;
struct trace_ring;

/*
 * Loads the program and puts it on link `ifindex` of the caller's network namespace. Processes are noted as the caller's PID
 * namespace numbers them. Returns the ring, for the life of the process, or NULL where it can't be done. *fd gets a
 * descriptor for trace_map() in another process, the caller's; -1 with NULL.
 */
const struct trace_ring *trace_start(uint32_t ifindex, int *fd);

/* Maps the ring of another process's trace_start(), for the life of this one. `fd` stays the caller's. NULL where it can't be done. */
const struct trace_ring *trace_map(int fd);

/* Whether what was noted of a process is all that there is to say of it: there was room for its path and its arguments. */
bool trace_is_whole(const struct procfs_process *p);

/* The last sender of a first packet with these addresses. False when it was not noted (then *out is left alone), or not any more. `ring` may be NULL. */
bool trace_find(const struct trace_ring *ring, const struct finder_request *req, struct procfs_process *out);

#endif
