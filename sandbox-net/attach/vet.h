/* SPDX-License-Identifier: Apache-2.0 */
/* What must be known of a sandbox that somebody else made, before it is given a gate. */
#ifndef SANDBOX_NET_VET_H
#define SANDBOX_NET_VET_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct gate_tap;
struct target;

/* Whether seccomp keeps a process from AF_VSOCK, from the best to the worst. That there is a filter does not say what is in it. */
enum vet_filter { VET_FILTERED, VET_FILTER_NOT_KNOWN, VET_UNFILTERED };

/* What the named process of a container will be when it runs: as long as the container is made, it is the runtime's own. */
struct vet_known {
	uint64_t caps;		/* that it has or may gain, bits as in capability.h */
	enum vet_filter filter; /* of its seccomp profile */
};

struct vet_found {
	uint32_t notes;	  /* what is worth knowing: bits of enum attach_note */
	bool makes_links; /* a process in S is known to have CAP_NET_ADMIN over S's own network */
};

/*
 * What is worth knowing of any sandbox whose processes are filtered like this, of this kernel and of what the caller may do: bits
 * of enum attach_note.
 */
uint32_t vet_notes(enum vet_filter filter);

/*
 * Refuses S when it has a network already (`tap` as for gate_check_empty()); and, unless the risk is among `risks` (bits of
 * enum attach_risk), when a process in it could get at the gate: one with CAP_NET_ADMIN in the user namespace that the gate will belong to, which is
 * enough to make links and change rules in the gate's namespace. *found gets the rest.
 * `known` (NULL: nothing) is believed of the target's process. Returns 0 or -1.
 */
int vet_sandbox(const struct target *t, const struct gate_tap *tap, uint32_t risks, const struct vet_known *known,
		struct vet_found *found, struct err *err);

#endif
