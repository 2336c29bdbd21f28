/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit log of one job: the only writer of records, and the only place
 * where the summary's counts and --verbose lines come from, so that what a
 * person reads is what is on record. Record before effect: each call returns
 * once the line is in the file (one write(2) to an O_APPEND descriptor), but for
 * close and process records, which nothing waits for, and decisions whose effect waits (audit_decision_later()): those
 * follow at the end of the loop's turn, or with the next record. The order is that of the calls.
 *
 * A record that can't be written makes every call return -errno until a write
 * succeeds again; the caller turns a new grant into a denial
 * (log_unavailable). What was lost is counted, and a `gap` record with the
 * count goes before the next record. `seq` has no holes: a record that was
 * not written used none. A partly written line is cut off again, or ended
 * with a line feed where the file can't be cut (a pipe).
 *
 * Lines chain by hash: H0 = SHA-256(""), Hn = SHA-256(Hn-1 ‖ line n without
 * its line feed). `end` carries the head before it; docs/records.md says how to check.
 */
#ifndef PROXY_AUDIT_AUDIT_H
#define PROXY_AUDIT_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/addr.h"
#include "base/resource.h"
#include "rules/match.h"

struct audit;
struct event_base;
struct limits;
struct policy;

/* Where an attempt came in: a connection to anywhere, the gate's DNS, or what an explicit proxy was asked for. */
enum door { DOOR_TRANSPARENT, DOOR_DNS, DOOR_HTTP, DOOR_CONNECT, DOOR_SOCKS5, DOOR_COUNT };

/* How a connection ended. */
/* clang-format off */
#define CLOSE_ENDS \
	X(CLIENT, "client") \
	X(UPSTREAM, "upstream") \
	X(CLIENT_RESET, "client_reset") \
	X(UPSTREAM_RESET, "upstream_reset") \
	X(IDLE, "idle") \
	X(DENIED, "denied") \
	X(CONNECT_FAILED, "connect_failed") \
	X(NAME_MISMATCH, "name_mismatch") \
	X(HTTP_MALFORMED, "http_malformed") \
	X(LIMIT_UPLOAD, "limit_upload") \
	X(JOB_ENDED, "job_ended") \
	X(INTERNAL_ERROR, "internal_error")
/* clang-format on */

enum close_end {
#define X(id, word) CLOSE_##id,
	CLOSE_ENDS
#undef X
		CLOSE_END_COUNT
};

struct audit_config {
	int fd;			     /* the log; stays the caller's. O_APPEND; O_RDWR for a file, see log_file.h */
	int verbose_fd;		     /* a line an attempt, or -1 */
	int tell_fd;		     /* for a person, when the log can't be written any more (base/tell.h); or -1 */
	const char *job;	     /* borrowed, outlives the audit */
	const char *sandbox;	     /* the name of an attached sandbox; NULL: a command is run. Borrowed likewise */
	const struct policy *policy; /* for rule labels; borrowed, outlives the audit */
	bool fixed;		     /* the policy is not the caller's to widen: no flag that would is named */
	const struct limits *limits; /* the job's, for the start record; borrowed likewise */
	struct event_base
		*base; /* for what is recorded later; NULL: sums of denials (flood.h) at the end, the rest at once */
};

/*
 * Returns NULL with errno set (ENOMEM). Must be called before the process is
 * isolated (it asks for the user and the kernel's release); later calls need the system calls that
 * log_file.c names. The program ignores SIGPIPE and SIGXFSZ.
 */
struct audit *audit_new(const struct audit_config *config);
void audit_free(struct audit *a);

/*
 * Goes on in another file (as in audit_config; it stays the caller's, as the former one, which may be closed
 * then). Both files get a `log` record that says so, where they can be written. Returns 0; or -EINVAL when it
 * is no file that records can be appended to, and the log goes on as before.
 */
int audit_move(struct audit *a, int fd);

/* What holds the command to its limits, for the start record; to be called before audit_start(). */
void audit_holders(struct audit *a, const uint32_t holder[static RESOURCE_COUNT]);

/* `command` NULL-terminated argv; shown cut. Returns 0 or -errno, as every call below. */
int audit_start(struct audit *a, char *const *command);

/* For a person: why the call that returned `error`, a -errno, could not record. */
const char *audit_why(int error);

/* How a sandbox was attached. Texts are borrowed; lists end in NULL. */
struct audit_attached {
	const char *to;	       /* "docker web" */
	uint64_t netns;	       /* the number of its network namespace, as in /proc/PID/ns/net; 0: not made yet */
	pid_t pid;	       /* a process in it; 0: not known */
	char *const *accepted; /* risks, a word each */
	char *const *notes;    /* what was found, a sentence each */
};

/* In place of audit_start(), for a sandbox that was there already. */
int audit_start_attached(struct audit *a, const struct audit_attached *s);

struct audit_decision {
	uint64_t conn; /* 0: belongs to no connection (a DNS query over UDP) */
	enum door door;
	struct endpoint src, dst; /* dst: as the client chose it; ADDR_NONE: it gave a name only */
	const struct request *request;
	const struct verdict *verdict;
	/* What was seen and is not in the request; zero or NULL where it was not. Borrowed. */
	const void *raw_name; /* a name that could not be made canonical */
	size_t raw_name_len;
	const char *alpn;
	bool ech;
	const char *method, *path; /* not NUL-terminated */
	size_t method_len, path_len;
	const char *qtype; /* DNS: "A", "AAAA", … or "TYPE65" */
	bool own;	   /* audit_only_counts() said no: a record of its own */
};

/* A verdict. When an allow can't be recorded it must not take effect. In a flood a denial may be counted only (flood.h). */
int audit_decision(struct audit *a, const struct audit_decision *d);

/* Who waits for a record to be in the file. */
struct audit_waiter {
	TAILQ_ENTRY(audit_waiter) link;
	void (*done)(void *arg, int error); /* error: 0, or -errno: the record is lost */
	void *arg;
	int error;    /* of its record, once it is `settled` */
	bool settled; /* its record is in the file, or lost */
	bool waits;   /* until done() is called, or audit_await() or audit_forget() */
};

/*
 * As audit_decision(), but the record of an allow is written together with others at the end of the loop's turn, by one
 * system call for all: while w->waits nothing may come of it, then w->done() is called with w->arg, from the loop.
 * Without a loop, or with verbose_fd, it is in the file when this returns, and w->waits is false. `w` stays the caller's,
 * who has set `done` and `arg`. Returns 0; or -errno, and nothing is waited for.
 */
int audit_decision_later(struct audit *a, const struct audit_decision *d, struct audit_waiter *w);

/* Does not wait for the end of the turn: w->done is not called. Returns 0; or -errno when the record is lost. */
int audit_await(struct audit *a, struct audit_waiter *w);

/* w->done is not called any more; the record is written all the same. */
void audit_forget(struct audit *a, struct audit_waiter *w);

/*
 * For a denial that costs nothing when nobody is to be told of it: true when it
 * was counted, and that is all. Else it is to be recorded, with `own`.
 */
bool audit_only_counts(struct audit *a, const struct audit_decision *d);

/*
 * One address that was tried, or a lookup that failed (`peer` then
 * ADDR_NONE). `reason`: CONNECTED, CONNECT_FAILED, DNS_FAILED, PRIVATE_ADDRESS
 * or DENIED_BY_RULE; `detail`: an errno name, a DNS error, why the address is refused; or NULL.
 */
int audit_dial(struct audit *a, uint64_t conn, const struct name *host, const struct endpoint *peer, enum reason reason,
	       const char *detail);

struct audit_close {
	uint64_t conn;
	const struct name *host; /* as in the decision that allowed it; NULL: none or an address rule */
	struct endpoint dst;	 /* as in the decision */
	uint64_t up, down;	 /* payload bytes sent to and received from upstream */
	uint64_t ms;		 /* since accept */
	enum close_end end;
	bool unmade; /* no upstream connection was there yet */
};

/* Once for every connection that had an allowing decision. In the file at the end of the loop's turn. */
int audit_close(struct audit *a, const struct audit_close *c);

struct audit_drop {
	const char *proto;	      /* "udp", "icmp", "icmpv6", "tcp", "ip-47", …; NULL: not known */
	struct addr dst;	      /* ADDR_NONE: not known (counted, not seen) */
	uint16_t port;		      /* 0: none */
	const struct name *quic_name; /* the host that QUIC packets wanted; NULL: none, or not known. Borrowed */
	enum reason reason;
	uint64_t count, bytes;
};

/* Packets that were dropped. On an error the caller keeps the count and comes back with it. */
int audit_drop(struct audit *a, const struct audit_drop *d);

/* The guest of a virtual machine is about to get this address by DHCP. When that can't be recorded it must not. */
int audit_lease(struct audit *a, const struct addr *addr);

/* Another interface than the gate's has come up in an attached sandbox; `name` is any text. */
int audit_interface(struct audit *a, const char *name);

struct audit_end {
	int wait_status;   /* of the command, as waitpid(2) gives it; -1: not known */
	const char *ended; /* of an attached sandbox: why, in a word; else NULL */
	uint64_t syns;	   /* initial SYNs that G counted */
	uint64_t accepts;  /* connections accepted */
	bool counted;	   /* false: G's counters could not be read, `syns` means nothing */
	struct resource_hits hits;
};

/* The last record: totals and the chain's head. */
int audit_end(struct audit *a, const struct audit_end *e);

/* The head of the chain so far, 64 hex digits and a NUL. */
void audit_head(const struct audit *a, char hex[static 65]);

/*
 * The summary for a person: what was allowed (host, connections, bytes up and
 * down), what was denied (host or address, how often, why, and the exact flag
 * that would allow it, where one would). Bounded: a table of TALLY_MAX entries,
 * the rest counted as "and N more". Prints nothing when nothing was attempted.
 */
void audit_summary(const struct audit *a, FILE *out);

#endif
