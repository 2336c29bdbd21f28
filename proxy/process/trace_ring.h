/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel program (trace.bpf.c) notes and the finder reads: a ring of
 * the last attempts that left the sandbox's link, in memory that both have.
 *
 * A slot is written under `seq`: odd while it is, and another number afterwards. So a reader that
 * finds the same even number before and after has read one attempt whole (trace_find()).
 */
#ifndef PROXY_PROCESS_TRACE_RING_H
#define PROXY_PROCESS_TRACE_RING_H

#define TRACE_SLOTS 256 /* attempts that are remembered; a power of two */
#define TRACE_EXE   256 /* bytes of the program's path; a power of two */
#define TRACE_NAME  256 /* bytes of one name in it, with its NUL: the longest that there is */
#define TRACE_ARGS  512 /* bytes of the arguments */

/*
 * What stands in the program where the loader puts in the address of the ring, that of the
 * program's other memory (of TRACE_PRIVATE bytes), and that of its second function.
 */
#define TRACE_IS_RING  0x52494e47
#define TRACE_IS_PIDNS 0x4e554d53
#define TRACE_IS_STEP  0x53544550
#define TRACE_PRIVATE  8

#define TRACE_READY 100 /* what its first run returns, when it went well */

struct trace_key {
	unsigned char src[16], dst[16]; /* network order; of an IPv4 address the first four bytes */
	unsigned short sport, dport;	/* network order */
	unsigned char version;		/* 4 or 6 */
	unsigned char protocol;		/* IPPROTO_TCP or IPPROTO_UDP */
	unsigned short zero;
};

struct trace_slot {
	unsigned int seq;
	unsigned int host_pid; /* in the PID namespace of the finder; 0: the sender could not be told */
	unsigned int pid;      /* in the one below; 0: it has none there */
	unsigned int uid;      /* effective */
	struct trace_key key;
	unsigned short exe_len;	    /* bytes in `exe` */
	unsigned short args_len;    /* bytes in `args` */
	unsigned char exe_cut;	    /* the path has more names than there was room for */
	unsigned char exe_unlinked; /* the file has no path any more */
	unsigned char zero[6];
	char exe[TRACE_EXE + TRACE_NAME]; /* the names of the path, the last one first, each with a NUL */
	char args[TRACE_ARGS];		  /* what the process has there now: each with a NUL */
};

struct trace_ring {
	unsigned long long next; /* attempts so far: the next one's slot is this one, modulo TRACE_SLOTS */
	struct trace_slot slots[TRACE_SLOTS];
};

#endif
