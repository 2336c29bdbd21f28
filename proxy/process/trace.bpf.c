/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The kernel program on the sandbox's end of its link, for packets that leave: which process sends this one?
 *
 * It notes the first packet of a TCP connection and DNS queries over UDP, which connect(2) and sendto(2) send in the
 * context of the process that called them, with the addresses as the gate sees them. It lets every packet pass as it is.
 *
 * Structures of the kernel are described with the fields that are read; where those are in the running kernel, the kernel puts in
 * when the program is loaded (CO-RE).
 */
#include <stdbool.h>

#include "proxy/process/trace_ring.h"

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define PASS	 (-1) /* TC_ACT_UNSPEC: what the next filter says */
#define IP4	 __builtin_bswap16(0x0800)
#define IP6	 __builtin_bswap16(0x86dd)
#define TCP	 6
#define UDP	 17
#define DNS_PORT __builtin_bswap16(53)
#define SYN	 0x02
#define ACK	 0x10

#define ETHERNET   14 /* bytes of the header before IP's */
#define PID_LEVELS 4  /* PID namespaces within each other */
#define PATH_STEPS 24 /* names and mounts on the way up to the root */

/* ---- the kernel's ---- */

/* Both functions are in one section, in the order of the file. */
#define SECTION __attribute__((section("tc"), used))
#define KERNEL	__attribute__((preserve_access_index))

struct net;
struct pid_namespace;
/* As it is in every kernel: an element of an array is found by its size. */
struct upid {
	int nr;
	struct pid_namespace *ns;
};
struct pid {
	u32 level;
	struct upid numbers[1];
} KERNEL;
struct nsproxy {
	struct net *net_ns;
} KERNEL;
typedef struct {
	u32 val;
} kuid_t;
struct cred {
	kuid_t euid;
} KERNEL;
struct qstr {
	u32 len;
	u8 *name;
} KERNEL;
struct hlist_bl_node {
	struct hlist_bl_node **pprev;
} KERNEL;
struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
} KERNEL;
struct vfsmount {
	struct dentry *mnt_root;
} KERNEL;
struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
} KERNEL;
struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
} KERNEL;
struct file {
	struct path f_path;
} KERNEL;
struct mm_struct {
	unsigned long arg_start, arg_end;
	struct file *exe_file;
} KERNEL;
struct task_struct {
	struct mm_struct *mm;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct cred *cred;
	struct nsproxy *nsproxy;
} KERNEL;
typedef struct {
	struct net *net;
} possible_net_t;
struct sock_common {
	possible_net_t skc_net;
} KERNEL;
typedef struct {
	int owned;
} KERNEL socket_lock_t;
struct sock {
	struct sock_common __sk_common;
	socket_lock_t sk_lock;
} KERNEL;
/* The packet, as the kernel shows it to such programs (linux/bpf.h): the last field is `sk`. */
struct __sk_buff {
	u32 len, pkt_type, mark, queue_mapping, protocol, others[37];
	struct bpf_sock *sk;
};

static u64 (*const get_current_task)(void) = (void *)35;
static long (*const load_bytes)(const struct __sk_buff *skb, u32 offset, void *to, u32 len) = (void *)26;
static long (*const read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*const read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*const loop)(u32 times, void *step, void *context, u64 flags) = (void *)181;
static long (*const read_kernel_string)(void *to, u32 size, const void *from) = (void *)115;

/* Where a field is in its structure, where it is in memory, and what is in it; 0 when it can't be read. */
#define OFFSET(type, field) __builtin_preserve_field_info(((type *)0)->field, 0)
#define AT(p, field)	    __builtin_preserve_access_index(&(p)->field)
#define GET(p, field) \
	({ \
		__typeof__(p) base_ = (p); \
		__typeof__(base_->field) value_ = { 0 }; \
		read_kernel(&value_, sizeof(value_), AT(base_, field)); \
		value_; \
	})

/* What only the loader knows: it puts these in where their numbers stand (trace_load.c). */
static __inline struct trace_ring *the_ring(void)
{
	struct trace_ring *ring;

	__asm__ volatile("%0 = %1 ll" : "=r"(ring) : "i"(TRACE_IS_RING));
	return ring;
}

/* The finder's PID namespace; 0 before the first run. Not in the ring: an address of the kernel is nobody else's business. */
static __inline struct pid_namespace **our_pidns(void)
{
	struct pid_namespace **pidns;

	__asm__ volatile("%0 = %1 ll" : "=r"(pidns) : "i"(TRACE_IS_PIDNS));
	return pidns;
}

static __inline void *walk_step_function(void)
{
	void *function;

	__asm__ volatile("%0 = %1 ll" : "=r"(function) : "i"(TRACE_IS_STEP));
	return function;
}

/* ---- who sends ---- */

static __inline struct upid number(struct pid *pid, u32 level)
{
	struct upid n = { 0 };

	read_kernel(&n, sizeof(n), (char *)AT(pid, numbers[0]) + level * sizeof(n));
	return n;
}

/* The process as a number in the finder's PID namespace, and in the one below. */
static __inline void put_pids(struct trace_slot *slot, struct task_struct *task)
{
	struct task_struct *leader = GET(task, group_leader);
	struct pid *pid = GET(leader, thread_pid);
	struct pid_namespace *ours = *our_pidns();
	u32 level = GET(pid, level);
	struct upid above = { 0 };

	for (u32 i = 0; i < PID_LEVELS && i <= level && above.ns != ours; i++) {
		above = number(pid, i);
		if (above.ns != ours)
			continue;
		slot->host_pid = above.nr;
		slot->pid = i < level ? number(pid, i + 1).nr : 0;
	}
}

struct walk {
	struct dentry *at;
	struct vfsmount *in;
	struct trace_slot *slot;
	u32 len;
	bool done;
};

/* The names of the program's path (walk_step()), from the file up through every mount to the root, as d_path() of the kernel walks. */
static __inline void put_exe(struct trace_slot *slot, struct mm_struct *mm)
{
	struct file *file = GET(mm, exe_file);
	struct walk w = { .at = GET(file, f_path.dentry), .in = GET(file, f_path.mnt), .slot = slot };

	slot->exe_unlinked = w.at != GET(w.at, d_parent) && !GET(w.at, d_hash.pprev);
	loop(PATH_STEPS, walk_step_function(), &w, 0);
	slot->exe_cut = !w.done;
	slot->exe_len = (u16)w.len;
}

static __inline void put_args(struct trace_slot *slot, struct mm_struct *mm)
{
	u64 start = GET(mm, arg_start);
	u64 len = GET(mm, arg_end) - start;

	if (len > TRACE_ARGS)
		len = TRACE_ARGS;
	slot->args_len = read_user(slot->args, (u32)len, (const void *)start) == 0 ? (u16)len : 0;
}

/*
 * Whether the packet is sent by a process for itself, and not beside it, for a socket of another network namespace. Of TCP that is
 * known already (begins()), and there the process may have gone to a network namespace of its own meanwhile.
 */
static __inline bool is_senders(struct sock *sk, struct task_struct *task)
{
	struct nsproxy *nsproxy = GET(task, nsproxy);
	struct net *net = GET(nsproxy, net_ns);

	return net && GET(sk, __sk_common.skc_net.net) == net;
}

/*
 * Every attempt has a slot, also one whose sender can't be told: the newest with some addresses is the one that counts. A slot
 * that is being written still, after TRACE_SLOTS others, is left to whoever writes it.
 */
static __inline void note(struct trace_ring *ring, const struct trace_key *key, struct sock *sk)
{
	struct trace_slot *slot = &ring->slots[__sync_fetch_and_add(&ring->next, 1) & (TRACE_SLOTS - 1)];
	struct task_struct *task = (void *)get_current_task();
	struct mm_struct *mm = GET(task, mm);
	struct cred *cred = GET(task, cred);
	u32 seq = slot->seq;

	if ((seq & 1) || __sync_val_compare_and_swap(&slot->seq, seq, seq + 1) != seq)
		return;
	slot->key = *key;
	slot->host_pid = slot->pid = 0;
	slot->exe_len = slot->args_len = 0;
	slot->exe_cut = slot->exe_unlinked = false;
	if (mm && (key->protocol == TCP || is_senders(sk, task))) {
		slot->uid = GET(cred, euid.val);
		put_pids(slot, task);
		put_exe(slot, mm);
		put_args(slot, mm);
	}
	__sync_lock_test_and_set(&slot->seq, seq + 2);
}

/* ---- which packets ---- */

/* The addresses and the protocol; returns where its header begins, or 0 for what is not TCP or UDP. */
static __inline u32 parse_ip(const struct __sk_buff *skb, struct trace_key *key)
{
	u8 h[40] = { 0 };
	u32 len;

	if (skb->protocol == IP4) {
		/* All but the first fragment are without a header of the protocol. */
		if (load_bytes(skb, ETHERNET, h, 20) < 0 || (h[6] & 0x1f) || h[7])
			return 0;
		key->version = 4;
		key->protocol = h[9];
		__builtin_memcpy(key->src, h + 12, 4);
		__builtin_memcpy(key->dst, h + 16, 4);
		len = (h[0] & 15) * 4;
	} else if (skb->protocol == IP6) {
		if (load_bytes(skb, ETHERNET, h, 40) < 0)
			return 0;
		key->version = 6;
		key->protocol = h[6];
		__builtin_memcpy(key->src, h + 8, 16);
		__builtin_memcpy(key->dst, h + 24, 16);
		len = 40;
	} else {
		return 0;
	}
	return key->protocol == TCP || key->protocol == UDP ? ETHERNET + len : 0;
}

/*
 * The first SYN is sent while connect(2) holds the socket. One that is sent again is sent by a timer, beside whatever
 * process happens to run, which has nothing to do with it.
 */
static __inline bool begins(const struct __sk_buff *skb, u32 at, const struct trace_key *key, struct sock *sk)
{
	u8 flags = 0;

	if (key->protocol == UDP)
		return key->dport == DNS_PORT;
	return load_bytes(skb, at + 13, &flags, 1) == 0 && (flags & (SYN | ACK)) == SYN && GET(sk, sk_lock.owned);
}

/* The kernel's own structure. The pointer that may be had is to the part of it that is shown, so it is taken as a number. */
static __inline struct sock *socket_of(const struct __sk_buff *skb)
{
	struct bpf_sock *shown = skb->sk;
	struct sock *sk = 0;

	read_kernel(&sk, sizeof(sk), &shown);
	return sk;
}

/* The first run is the loader's, in its own context and without a packet of anybody's: it says whose numbers are wanted. */
static __inline int first_run(struct pid_namespace **ours)
{
	struct task_struct *task = (void *)get_current_task();
	struct pid *pid = GET(task, thread_pid);

	*ours = number(pid, GET(pid, level)).ns;
	return *ours ? TRACE_READY : PASS;
}

SECTION int trace(struct __sk_buff *skb)
{
	struct pid_namespace **ours = our_pidns();
	struct trace_key key = { 0 };
	struct sock *sk;
	u32 at;

	if (!*ours)
		return first_run(ours);
	at = parse_ip(skb, &key);
	if (!at || load_bytes(skb, at, &key.sport, 4) < 0)
		return PASS;
	sk = socket_of(skb);
	if (sk && begins(skb, at, &key, sk))
		note(the_ring(), &key, sk);
	return PASS;
}

/* ---- the second function ---- */

/* One step up: a name, or from the root of a mount to where it is mounted. Returns 1 at the end. */
SECTION static long walk_step(u32 i, struct walk *w)
{
	struct dentry *parent = GET(w->at, d_parent);
	bool top = w->at == parent || w->at == GET(w->in, mnt_root);
	long n;

	if (top) {
		struct mount *mount = (void *)((char *)w->in - OFFSET(struct mount, mnt));
		struct mount *below = GET(mount, mnt_parent);

		if (below != mount) {
			w->at = GET(mount, mnt_mountpoint);
			w->in = AT(below, mnt);
			return 0;
		}
		/* The root. A file without any path, such as a memfd, is a root itself. */
		w->done = true;
		if (i > 0)
			return 1;
		w->slot->exe_unlinked = true;
	}
	if (w->len >= TRACE_EXE)
		return 1;
	n = read_kernel_string(&w->slot->exe[w->len & (TRACE_EXE - 1)], TRACE_NAME, GET(w->at, d_name.name));
	if (n <= 0)
		return 1;
	/* Its bounds are said again, so that the verifier need not follow every length through every step. */
	w->len = (w->len + (u32)n) & (TRACE_EXE + TRACE_NAME - 1);
	w->at = parent;
	return top;
}
