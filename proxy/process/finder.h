/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The finder: a child of the monitor that says which process of the sandbox
 * has a connection open. It needs what the proxy must not have, the sandbox's
 * network namespace and its entries in /proc, and nothing else.
 *
 * Isolation, in order (finder_run()):
 *   bare      no descriptor but the proxy's socket; dies with the monitor
 *   enter     S's network namespace; without root also S's user namespace, the only one where it has a say
 *             should:  see the sockets of S
 *             mustn't: have a network of the host's
 *             An attached S must end without its leave. So it lives in an empty network namespace of its own, and for
 *             each look-up goes to S and comes back with a socket, which is closed after one question; for
 *             this it keeps a third capability, and the calls setns(2) and socket(2) in this one form.
 *             With root's capabilities it puts a kernel program on S's link meanwhile (trace.h), which names processes that
 *             are gone; from there on that is memory to be read. Of a sandbox that netgate made, the proxy reads it, too.
 *   give up   root of the file system at /proc; as root another uid (nobody); no capability but the two that
 *             let it look into other processes' entries there
 *             should:  read /proc/PID of the sandbox's processes
 *             mustn't: see another file
 *   seccomp   open for reading, read, send, receive
 *             mustn't: write a file, trace, execute, signal, make a socket
 *
 * Who is asked what: the proxy sends one finder_request for each answer, both of fixed size. The finder
 * trusts neither side: a request that is not in order ends it, and what an answer says of a process is that process's own text.
 */
#ifndef PROXY_PROCESS_FINDER_H
#define PROXY_PROCESS_FINDER_H

#include <stdint.h>
#include <sys/types.h>

#include "base/addr.h"
#include "proxy/process/place.h"
#include "proxy/process/procfs.h"

struct finder_request {
	uint32_t tag;
	uint8_t protocol;	  /* IPPROTO_TCP or IPPROTO_UDP */
	struct endpoint src, dst; /* as the sandbox sees them: its own, and the one that it chose */
};

enum finder_result {
	FINDER_FOUND,
	FINDER_GONE,	 /* nobody has it open any more */
	FINDER_HIDDEN,	 /* none that may be looked into has it, and some may not */
	FINDER_TOO_MANY, /* more processes and descriptors than are looked at */
	FINDER_FAILED,	 /* the kernel could not be asked */
	FINDER_TRACE,	 /* no answer: the descriptor of the ring (trace.h) comes with it, once, before any answer */
	FINDER_RESULTS
};

struct finder_answer {
	uint32_t tag; /* the request's */
	uint32_t result;
	struct procfs_process process; /* FINDER_FOUND */
};

struct finder_sandbox {
	pid_t init; /* process 1 of the sandbox, in the caller's PID namespace; of an attached one: some process, or 0 */
	int user, net;		   /* its namespaces; or -1 and */
	const struct place *place; /* where an attached sandbox's network namespace is */
};

/* True for a request that the proxy may send. */
int finder_request_ok(const struct finder_request *r);

/* The process, in a child of `parent` that it replaces: serves `fd` until its end, and exits. */
_Noreturn void finder_run(int fd, const struct finder_sandbox *s, pid_t parent);

#endif
