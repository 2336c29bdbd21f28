/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether G still has its link, and whether the sandbox has another one. The kernel takes the veth pair away when the
 * sandbox's network namespace is destroyed, or when its end is deleted there: from then on nothing can come from the sandbox
 * any more. An end that is moved elsewhere is as good as gone, or the gate would serve who finds it there. An interface beside the gate's may
 * be another way out.
 */
#ifndef PROXY_PROCESS_LINK_H
#define PROXY_PROCESS_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINK_NAME_MAX	16 /* with the NUL; IFNAMSIZ */
#define LINK_OTHERS_MAX 16 /* that are told of; who may make interfaces in the sandbox could make ever more */

struct event_base;
struct link_watch;

enum link_news {
	LINK_NOTHING, /* nothing about gw0 */
	LINK_GONE,
	LINK_THERE
};

/* A link of the sandbox's namespace: the namespace's number in G, and the link's in there. */
struct link_place {
	int32_t nsid;
	int32_t index;
};

/* The other end of gw0. */
struct link_end {
	struct link_place place;
	bool up;
};

/* An interface that is up. */
struct link_up {
	int32_t index;
	char name[LINK_NAME_MAX];
};

struct link_watch_config {
	int fd;			 /* HANDOFF_LINK; stays the caller's */
	const char *tap;	 /* of a virtual machine: the device that belongs there, too; or "" */
	void (*gone)(void *arg); /* once: it is deleted, or its other end has left the sandbox */
	void (*other)(void *arg, const char *name); /* for each interface, LINK_OTHERS_MAX times at most */
	void *arg;
};

/* Watches, and calls from the loop. NULL when out of memory. */
struct link_watch *link_watch_new(struct event_base *base, const struct link_watch_config *config);

/* The other end is in the sandbox from now on. Until then, where it is says nothing, and nobody is told of other interfaces. */
void link_watch_settle(struct link_watch *w);

/* NULL is fine. */
void link_watch_free(struct link_watch *w);

/*
 * What `len` bytes of rtnetlink messages of G, aligned for their headers, say about gw0: an RTM_DELLINK of it, or the answer to
 * the question with number `seq`. With LINK_THERE, *peer is its other end (nsid -1: not known where), and *answer whether
 * it is the answer.
 */
enum link_news link_news(const void *buf, size_t len, uint32_t seq, struct link_end *peer, bool *answer);

/* The first interface but loopback ones that `len` bytes of messages of another namespace, likewise, say to be up. False: none. */
bool link_find_up(const void *buf, size_t len, struct link_up *up);

#endif
