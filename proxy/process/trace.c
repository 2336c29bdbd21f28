/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the ring; see the headers. */
#include "proxy/process/trace.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "proxy/process/finder.h"
#include "proxy/process/trace_ring.h"

#define DELETED " (deleted)" /* what the kernel puts behind the path of a file that has none any more */

_Static_assert(TRACE_EXE + TRACE_NAME <= PROCFS_EXE_MAX && TRACE_ARGS <= PROCFS_CMDLINE_MAX,
	       "what is noted fits into an answer");

static struct trace_key key_of(const struct finder_request *req)
{
	struct trace_key key = { .sport = htons(req->src.port),
				 .dport = htons(req->dst.port),
				 .version = req->src.addr.family,
				 .protocol = req->protocol };

	memcpy(key.src, req->src.addr.b, addr_size(&req->src.addr));
	memcpy(key.dst, req->dst.addr.b, addr_size(&req->dst.addr));
	return key;
}

/* Copies a slot. False when it is being written. */
static bool read_slot(const struct trace_slot *slot, struct trace_slot *out)
{
	unsigned int seq = __atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE);

	memcpy(out, slot, sizeof(*out));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return !(seq & 1) && __atomic_load_n(&slot->seq, __ATOMIC_RELAXED) == seq;
}

/* The path of names that begin with the last one. Where only its end is known, it has no slash before it. */
static void put_exe(const struct trace_slot *slot, struct procfs_process *out)
{
	size_t end = slot->exe_len <= sizeof(slot->exe) ? slot->exe_len : 0;

	while (end > 0) {
		size_t start = end - 1;

		while (start > 0 && slot->exe[start - 1] != '\0')
			start--;
		if (out->exe_len > 0 || !slot->exe_cut)
			out->exe[out->exe_len++] = '/';
		memcpy(out->exe + out->exe_len, slot->exe + start, end - 1 - start);
		out->exe_len += end - 1 - start;
		end = start;
	}
	out->exe_kept = out->exe_len;
	if (out->exe_len == 0 || !slot->exe_unlinked)
		return;
	for (const char *c = DELETED; *c; c++, out->exe_len++)
		if (out->exe_kept < sizeof(out->exe))
			out->exe[out->exe_kept++] = *c;
}

const struct trace_ring *trace_map(int fd)
{
	const void *ring = mmap(NULL, sizeof(struct trace_ring), PROT_READ, MAP_SHARED, fd, 0);

	return ring == MAP_FAILED ? NULL : ring;
}

bool trace_is_whole(const struct procfs_process *p)
{
	return p->exe_len > 0 && p->exe[0] == '/' && p->args_kept > 0 && p->args_kept < TRACE_ARGS;
}

bool trace_find(const struct trace_ring *ring, const struct finder_request *req, struct procfs_process *out)
{
	const struct trace_key key = key_of(req);
	struct trace_slot slot;
	uint64_t next = ring ? __atomic_load_n(&ring->next, __ATOMIC_ACQUIRE) : 0;

	for (uint64_t i = 1; i <= TRACE_SLOTS && i <= next; i++) {
		const struct trace_slot *at = &ring->slots[(next - i) % TRACE_SLOTS];

		/* A first look at what may be half written; the second is at a whole copy. */
		if (memcmp(&at->key, &key, sizeof(key)) != 0 || !read_slot(at, &slot) ||
		    memcmp(&slot.key, &key, sizeof(key)) != 0)
			continue;
		if (slot.host_pid == 0)
			return false;
		memset(out, 0, sizeof(*out));
		out->pid = (pid_t)slot.pid;
		out->host_pid = (pid_t)slot.host_pid;
		out->uid = slot.uid;
		put_exe(&slot, out);
		out->args_kept = slot.args_len <= sizeof(slot.args) ? slot.args_len : 0;
		memcpy(out->cmdline, slot.args, out->args_kept);
		return true;
	}
	return false;
}
