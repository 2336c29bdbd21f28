/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether G still has its link. The kernel takes the veth pair away when the
 * sandbox's network namespace is destroyed, or when its end is deleted there:
 * from then on nothing can come from the sandbox any more.
 */
#ifndef PROXY_PROCESS_LINK_H
#define PROXY_PROCESS_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct link_watch;

enum link_news {
	LINK_NOTHING, /* nothing about gw0 */
	LINK_GONE,
	LINK_THERE
};

/*
 * Watches through `fd` (HANDOFF_LINK, which stays the caller's) and calls gone(arg) once, from the loop. NULL when out
 * of memory.
 */
struct link_watch *link_watch_new(struct event_base *base, int fd, void (*gone)(void *arg), void *arg);

/* NULL is fine. */
void link_watch_free(struct link_watch *w);

/*
 * What `len` bytes of rtnetlink messages, aligned for their headers, say about gw0: an RTM_DELLINK of it, or the answer to
 * the question with number `seq`.
 */
enum link_news link_news(const void *buf, size_t len, uint32_t seq);

#endif
