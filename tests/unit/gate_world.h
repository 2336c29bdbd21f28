/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox namespace S with a gate, and a process that has moved into S with
 * the gate's sockets in its hands. It runs as a child, so scenarios use CHECK
 * instead of cmocka's assertions: a failed one ends the child with a message and status 1.
 */
#ifndef TESTS_UNIT_GATE_WORLD_H
#define TESTS_UNIT_GATE_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "sandbox-net/gate/gate.h"

#define CHECK(cond) \
	do { \
		if (!(cond)) \
			world_fail(__FILE__, __LINE__, #cond); \
	} while (0)

#define CHECK_EQ(a, b) world_check_eq(__FILE__, __LINE__, #a, (long long)(a), (long long)(b))

#define WORLD_NOBODY 65534

struct world {
	struct gate_plan plan;
	struct gate gate;
	int s_netns;
	int packet; /* AF_PACKET socket of eth0, to send what S's own IP stack would not */
	int eth;    /* index of eth0 */
	int parent; /* socket to the process that world_run() was called in */
};

/* A packet that the gate logged. */
struct world_drop {
	char prefix[32];
	uint8_t ip[1600]; /* from the IP header on */
	size_t len;
};

/* What CHECK and CHECK_EQ do: say where and what, and end the child. */
_Noreturn void world_fail(const char *file, int line, const char *what);
void world_check_eq(const char *file, int line, const char *what, long long got, long long want);

extern const struct gate_tap world_tap;

/* True when this process may make the namespaces that the tests need. */
bool world_possible(void);

/*
 * Runs `scenario` in a child that has built a gate and entered S; `rootless`:
 * as an ordinary user, inside a user namespace of its own; `tap`: S is a piece of wire to world_tap. `outside` (may be
 * NULL) runs at the same time beside it, with the same user id and outside of that user
 * namespace; `sock` is the other end of world.parent. Returns how many of the two failed.
 */
int world_run(bool rootless, bool tap, void (*scenario)(struct world *w), void (*outside)(int sock));

/* One entry of a test program's table. */
struct world_scenario {
	void (*inside)(struct world *w);
	void (*outside)(int sock);
	bool rootless;
	bool tap;
};
/* Runs the struct world_scenario at *state as a cmocka test; skipped where namespaces can't be made. */
void world_test(void **state);

/* Two entries for an array of struct CMUnitTest: as root and as an ordinary user. */
#define WORLD_TEST_AS(in, out, rootless, tap, suffix) \
	{ \
#in suffix, world_test, NULL, NULL, &(struct world_scenario) \
		{ \
			in, out, rootless, tap \
		} \
	}
#define WORLD_TEST_OUTSIDE(in, out) \
	WORLD_TEST_AS(in, out, false, false, " (root)"), WORLD_TEST_AS(in, out, true, false, " (user)")
#define WORLD_TEST(in) WORLD_TEST_OUTSIDE(in, NULL)

/* The same for a sandbox with a TAP device. */
#define WORLD_TEST_TAP(in) \
	WORLD_TEST_AS(in, NULL, false, true, " (root, tap)"), WORLD_TEST_AS(in, NULL, true, true, " (user, tap)")

/* Runs `work` in a child of its own and returns its pid. */
pid_t world_fork(void (*work)(struct world *w), struct world *w);

/* The next logged packet, or false when there is none within `ms`. */
bool world_next_drop(struct world *w, int ms, struct world_drop *drop);

/* CHECKs that exactly one more packet was logged, as `prefix`, to `dst` (IPv4 or IPv6 text). */
void world_check_drop(struct world *w, const char *prefix, const char *dst);

/* CHECKs that nothing is waiting in the log. */
void world_check_no_drop(struct world *w);

/* CHECKs that the next error of a connected socket is `error` and comes promptly; closes it. */
void world_check_refused(int fd, int error);

/* Reads the gate's counters and checks them against `want` (packets). */
void world_check_counters(struct world *w, const uint64_t want[GATE_COUNTER_COUNT]);

/* Waits for events on `fd`; CHECKs that they come within 2 s. */
void world_wait(int fd, short events);

/* A connected non-blocking socket of S; `to` as for endpoint_parse(). Does not wait for the connection. */
int world_connect(int type, int protocol, const char *to);

/* Accepts from a listener of the gate and CHECKs where the client wanted to go; returns the socket. */
int world_accept(struct world *w, const char *to);

/* An IPv4 packet: `frag` is the header's fragment field, `options` 0 or 4 bytes of options (no-operation). */
/* Sends a frame of this EtherType from the sandbox's MAC to `mac`; `packet` is what follows the Ethernet header. */
void world_send_frame(struct world *w, const uint8_t mac[static 6], uint16_t ethertype, const uint8_t *packet,
		      size_t len);

struct world_v4 {
	const char *src, *dst;
	uint8_t proto;
	uint16_t frag;
	uint8_t options;
	const void *payload;
	size_t len;
};
/* Sends one IPv4 packet to the gate, past the IP stack of S. */
void world_send_v4(struct world *w, const struct world_v4 *p);

/* An IPv6 packet. */
struct world_v6 {
	const char *src, *dst;
	uint8_t next;
	const void *payload;
	size_t len;
};
/* Sends one IPv6 packet to the gate, past the IP stack of S. */
void world_send_v6(struct world *w, const struct world_v6 *p);

/* Writes a TCP header of 20 bytes with `flags`, or a UDP header of 8; checksums zero. */
void world_tcp(uint8_t header[static 20], uint16_t sport, uint16_t dport, uint8_t flags);
void world_udp(uint8_t header[static 8], uint16_t sport, uint16_t dport, size_t payload);

#endif
