/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `sandbox-net` and a netgate that waits say to each other, over the
 * SOCK_SEQPACKET socket of the job. Each message has this one fixed size.
 *
 *   attach   sandbox-net → netgate  ATTACH_REQUEST  what is to be attached, with a descriptor: where S can be found
 *            netgate → sandbox-net  ATTACH_GO       with a socket to the proxy: handoff.h is spoken there
 *            sandbox-net → netgate  ATTACH_ARMED    S has its gate, and still is what it was; where S is, if the request did not say
 *            netgate → sandbox-net  ATTACH_DONE     it is listed; what happens to S from here on is noticed by netgate
 *   detach   sandbox-net → netgate  ATTACH_DETACH   a name, or "" for all
 *            netgate → sandbox-net  ATTACH_DONE     their gates are gone
 *   list     sandbox-net → netgate  ATTACH_LIST
 *            netgate → sandbox-net  ATTACH_ITEM     one for each sandbox, with the descriptor of its ATTACH_REQUEST; then ATTACH_DONE
 *
 * In place of any answer, ATTACH_REFUSED says why. An end of the stream before ATTACH_ARMED takes the gate away; an
 * ATTACH_DETACH after it, on another connection, is answered when that has come about.
 *
 * Nobody on netgate's side may hold S: a descriptor of it, or a process in it, would keep it alive. The descriptor of
 * ATTACH_REQUEST is a directory (/proc/PID, or the one that a path of S lies in), in which `file` is S as long as its device and
 * inode are these. Where S is made later than its gate, both are 0 there, and ATTACH_ARMED brings descriptor, file, device and inode.
 */
#ifndef BASE_ATTACH_H
#define BASE_ATTACH_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct err;

#define ATTACH_MAGIC	 0x6e670101u /* "ng", version 1 of this */
#define ATTACH_NAME_MAX	 64	     /* bytes of a job's or a sandbox's name, without the NUL */
#define ATTACH_NAME_TEXT "not a name; write 1 to 64 letters, digits, '-', '_' and '.', the last not at the beginning"
#define ATTACH_FILE_MAX	 256 /* with the NUL, as the two below */
#define ATTACH_TO_MAX	 256
#define ATTACH_TEXT_MAX	 1024

enum attach_type {
	ATTACH_REQUEST = 1,
	ATTACH_GO,
	ATTACH_ARMED,
	ATTACH_DONE,
	ATTACH_DETACH,
	ATTACH_LIST,
	ATTACH_ITEM,
	ATTACH_REFUSED
};

/* Risks that the caller accepted, as he writes them, and what was found, as he reads it. In messages, bit 1 << ID of each. */
/* clang-format off */
#define ATTACH_RISKS \
	X(NET_ADMIN, "net-admin")
#define ATTACH_NOTES \
	X(NET_ADMIN, "a process in it has, or can gain, CAP_NET_ADMIN or CAP_SYS_ADMIN over the gate: it can change the gate's links and rules") \
	X(EMPTY, "no process is in it yet: one that enters with CAP_NET_ADMIN could change the gate's links and rules") \
	X(VSOCK, "AF_VSOCK works on this kernel and no seccomp filter keeps a process in it from it: vsock does not pass the gate") \
	X(VSOCK_PERHAPS, "AF_VSOCK works on this kernel, and it is not known here whether a seccomp filter keeps its processes from it: vsock does not pass the gate") \
	X(DEAF, "netgate lacks CAP_NET_BROADCAST: an interface that is added to it later is not noticed")
/* clang-format on */

enum attach_risk {
#define X(id, word) ATTACH_RISK_##id,
	ATTACH_RISKS
#undef X
		ATTACH_RISK_COUNT
};

enum attach_note {
#define X(id, text) ATTACH_NOTE_##id,
	ATTACH_NOTES
#undef X
		ATTACH_NOTE_COUNT
};

struct attach_msg {
	uint32_t magic; /* ATTACH_MAGIC */
	uint32_t type;	/* enum attach_type */
	uint32_t risks, notes;
	int32_t pid;	   /* REQUEST: a process in S, 0 for none; ITEM: of the process that keeps the gate */
	uint32_t alone;	   /* REQUEST: 1: nobody in S can make an interface, so that another one ends the gate */
	uint64_t dev, ino; /* of S in nsfs, as stat(2) gives them */
	uint64_t since;	   /* ITEM: seconds of the wall clock */
	char name[ATTACH_NAME_MAX + 8]; /* REQUEST, DETACH, ITEM; texts are NUL-terminated */
	char to[ATTACH_TO_MAX];		/* REQUEST, ITEM: what it is, for a person: "docker web" */
	char file[ATTACH_FILE_MAX];	/* REQUEST: S in the directory */
	char text[ATTACH_TEXT_MAX];	/* REFUSED */
};

/* The words of risks and the texts of notes. */
extern const char *const attach_risk_words[ATTACH_RISK_COUNT];
extern const char *const attach_note_texts[ATTACH_NOTE_COUNT];

/* True for a whole message of this protocol with every text ended; `n`: how many bytes came. */
bool attach_msg_ok(const struct attach_msg *msg, long n);

/* True for a name that may be a job's or a sandbox's: letters, digits, '-', '_' and '.', the last not at the beginning. */
bool attach_name_ok(const char *name);

/*
 * The directory of the sockets: /run/netgate for root; $XDG_RUNTIME_DIR/netgate, or that of /run/user/UID, for others. Makes it
 * when `make` says so; it must be the caller's and nobody else's. Returns 0 or -1.
 */
int attach_directory(char dir[static PATH_MAX], bool make, struct err *err);

/* The path of a job's socket or lock (`suffix` "sock", "lock"), fit for sockaddr_un. Returns 0 or -1. */
int attach_path(char path[static PATH_MAX], const char *dir, const char *job, const char *suffix, struct err *err);

#endif
