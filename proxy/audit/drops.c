/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets that G dropped: from NFLOG messages to `drop` records whose counts
 * add up to what G counted.
 *
 * Two levels. A packet that NFLOG shows counts under its key (class, protocol,
 * destination, port, QUIC name), and the record says all of that. A packet that G counted
 * and NFLOG did not show (rate limit, full socket, full table) is recorded by
 * drops_reconcile() under its class alone. `recorded` per class is the sum over both
 * kinds of record, and never goes above G's counter:
 *
 *  - each packet is counted by G before it is logged, so that what NFLOG
 *    showed is at most the counter;
 *  - NFLOG delivers late, so that reconciling while the sandbox lives measures
 *    against the counters of the call before, at least SETTLED_US old: every packet
 *    they count has been delivered by now, or never will be.
 *
 * A record that can't be written stays pending under its key, and comes again.
 */
#include "proxy/audit/drops.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/name.h"
#include "proxy/audit/audit.h"
#include "proxy/audit/nflog.h"
#include "proxy/audit/quic.h"
#include "proxy/wire/packet.h"

#define DROPS_SLOTS    (2 * DROPS_TABLE_MAX)
#define DROPS_READ_MAX (128 * 1024) /* longest message of nfnetlink_log (NFULNL_NLBUFSIZ_MAX) */
#define TURN_MESSAGES  64	    /* read in one turn of the loop */
#define DRAIN_MESSAGES 65536	    /* read when the socket is to be emptied: more than its buffer holds */
#define QUIC_TICK_US   250000	    /* between two looks at the QUIC packets that wait */
#define SETTLED_US     2000000	    /* nfnetlink_log delivers after a second at the latest (NFULNL_TIMEOUT_DEFAULT) */

static_assert((DROPS_SLOTS & (DROPS_SLOTS - 1)) == 0, "slots are found by a mask");
static_assert(DROPS_TABLE_MAX < UINT16_MAX, "a slot holds an index + 1");

/* Classes of drops are numbered as G's counters: NFLOG prefix and counter name are the same word. */
static const char *const class_prefix[GATE_COUNTER_COUNT] = {
#define X(id, name) [GATE_COUNTER_##id] = name,
	GATE_COUNTERS
#undef X
};

/* REASON_NONE: a counter of something else. */
static const enum reason class_reason[GATE_COUNTER_COUNT] = {
	[GATE_COUNTER_UDP] = REASON_UDP,
	[GATE_COUNTER_QUIC] = REASON_QUIC,
	[GATE_COUNTER_ICMP] = REASON_ICMP,
	[GATE_COUNTER_IP_PROTOCOL] = REASON_IP_PROTOCOL,
	[GATE_COUNTER_SPOOFED] = REASON_SPOOFED,
	[GATE_COUNTER_BOGUS] = REASON_BOGUS_DESTINATION,
	[GATE_COUNTER_MALFORMED] = REASON_MALFORMED,
	[GATE_COUNTER_FRAME] = REASON_FRAME,
};

struct drops_key {
	size_t class;
	struct addr dst; /* ADDR_NONE: the packet could not be read, and proto and port say nothing */
	uint16_t port;
	uint8_t proto;
	struct name quic_name; /* len 0: none */
};

struct drops_entry {
	struct drops_key key;
	uint64_t count, bytes; /* not on record yet */
	bool active;	       /* something came since the last flush */
};

struct drops {
	int fd;
	struct audit *audit;
	struct quic *quic;
	struct event *readable, *timer, *quic_timer;
	bool done; /* drops_reconcile() was told that it is the last */
	struct drops_entry *entries;
	size_t n;
	size_t fresh; /* entries from here on have not had their first record */
	uint16_t *slots;
	uint64_t seen[GATE_COUNTER_COUNT], seen_bytes[GATE_COUNTER_COUNT]; /* shown by NFLOG, pending or on record */
	uint64_t rest[GATE_COUNTER_COUNT], rest_bytes[GATE_COUNTER_COUNT]; /* recorded by reconciliation */
	uint64_t before[GATE_COUNTER_COUNT], before_bytes[GATE_COUNTER_COUNT]; /* G's counters at `before_us` */
	uint64_t before_us;						       /* 0: no call yet */
	uint8_t message[DROPS_READ_MAX];
};

/* "udp", "tcp", "icmp", "icmpv6", or "ip-N". */
static const char *proto_text(uint8_t proto, char buf[static 8])
{
	switch (proto) {
	case IPPROTO_UDP:
		return "udp";
	case IPPROTO_TCP:
		return "tcp";
	case IPPROTO_ICMP:
		return "icmp";
	case IPPROTO_ICMPV6:
		return "icmpv6";
	default:
		snprintf(buf, 8, "ip-%u", proto);
		return buf;
	}
}

/* Records what is pending under a key; it stays pending when that fails. */
static void write_entry(struct drops *d, struct drops_entry *e)
{
	struct audit_drop drop = {
		.dst = e->key.dst,
		.port = e->key.port,
		.reason = class_reason[e->key.class],
		.count = e->count,
		.bytes = e->bytes,
	};
	char proto[8];

	if (e->key.dst.family != ADDR_NONE)
		drop.proto = proto_text(e->key.proto, proto);
	if (e->key.quic_name.len)
		drop.quic_name = &e->key.quic_name;
	if (e->count && !audit_drop(d->audit, &drop))
		e->count = e->bytes = 0;
}

static uint32_t key_hash(const struct drops_key *key)
{
	uint32_t h = 2166136261u ^ (uint32_t)(key->class << 24 | (uint32_t)key->proto << 16 | key->port);

	for (size_t i = 0; i < addr_size(&key->dst); i++)
		h = (h ^ key->dst.b[i]) * 16777619u; /* FNV-1a */
	for (size_t i = 0; i < key->quic_name.len; i++)
		h = (h ^ (uint8_t)key->quic_name.s[i]) * 16777619u;
	return h ^ h >> 15;
}

static bool key_equal(const struct drops_key *a, const struct drops_key *b)
{
	return a->class == b->class && a->proto == b->proto && a->port == b->port && addr_equal(&a->dst, &b->dst) &&
	       name_equal(&a->quic_name, &b->quic_name);
}

/* The slot of `key`, or the free one where it belongs; at most half of the slots are ever taken. */
static size_t find_slot(const struct drops *d, const struct drops_key *key)
{
	size_t slot = key_hash(key) & (DROPS_SLOTS - 1);

	while (d->slots[slot] && !key_equal(&d->entries[d->slots[slot] - 1].key, key))
		slot = (slot + 1) & (DROPS_SLOTS - 1);
	return slot;
}

/* Counts packets under their key. When the table is full they were not seen, which leaves them to the reconciliation. */
static void count_packets(struct drops *d, const struct drops_key *key, uint64_t count, uint64_t bytes)
{
	size_t slot = find_slot(d, key);
	struct drops_entry *e;

	if (!d->slots[slot]) {
		if (d->n == DROPS_TABLE_MAX) {
			d->seen[key->class] -= count;
			d->seen_bytes[key->class] -= bytes;
			return;
		}
		d->entries[d->n++] = (struct drops_entry){ .key = *key };
		d->slots[slot] = (uint16_t)d->n;
	}
	e = &d->entries[d->slots[slot] - 1];
	e->active = true;
	e->count += count;
	e->bytes += bytes;
}

static void count_quic(struct drops *d, const struct quic_group *group)
{
	struct drops_key key = {
		.class = GATE_COUNTER_QUIC, .dst = group->dst.addr, .port = group->dst.port, .proto = IPPROTO_UDP
	};

	if (group->name)
		key.quic_name = *group->name;
	count_packets(d, &key, group->count, group->bytes);
}

/* Counts the QUIC packets that waited long enough for their name; with `all`, every one. */
static void release_quic(struct drops *d, bool all)
{
	uint64_t now = all ? UINT64_MAX : clock_mono_us();
	struct quic_group group;

	while (quic_release(d->quic, now, &group))
		count_quic(d, &group);
}

static bool find_class(const struct nflog_packet *p, size_t *class)
{
	for (size_t i = 0; i < GATE_COUNTER_COUNT; i++)
		if (class_reason[i] != REASON_NONE && p->prefix && p->prefix_len == strlen(class_prefix[i]) &&
		    !memcmp(p->prefix, class_prefix[i], p->prefix_len)) {
			*class = i;
			return true;
		}
	return false;
}

static void take_packet(struct drops *d, const struct nflog_packet *p)
{
	struct drops_key key = { .class = 0 };
	uint64_t bytes = p->payload_len;
	struct quic_group group;
	struct packet packet;

	if (!find_class(p, &key.class))
		return;
	if (p->payload && packet_parse(p->payload, p->payload_len, &packet) == PARSE_OK) {
		key.dst = packet.dst.addr;
		key.port = packet.dst.port;
		key.proto = packet.proto;
		bytes = packet.total;
	}
	d->seen[key.class]++;
	d->seen_bytes[key.class] += bytes;
	if (key.class != GATE_COUNTER_QUIC || key.proto != IPPROTO_UDP)
		count_packets(d, &key, 1, bytes);
	else if (quic_take(d->quic, &packet, clock_mono_us(), &group))
		count_quic(d, &group);
}

/* Reads one message of the kernel. Returns false when there is none. */
static bool read_message(struct drops *d)
{
	struct sockaddr_nl from = { .nl_family = AF_UNSPEC };
	struct iovec iov = { .iov_base = d->message, .iov_len = sizeof(d->message) };
	struct msghdr msg = { .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1 };
	struct nflog_packet packet;
	struct reader r;
	ssize_t n;

	n = recvmsg(d->fd, &msg, MSG_DONTWAIT);
	if (n < 0)
		return errno == ENOBUFS || errno == EINTR; /* a full socket lost some: the counters have them */
	if (n == 0) {
		event_del(d->readable);
		return false;
	}
	if ((msg.msg_flags & MSG_TRUNC) || (from.nl_family == AF_NETLINK && from.nl_pid != 0))
		return true; /* cut, or not the kernel's */
	r = reader_over(d->message, (size_t)n);
	while (nflog_next(&r, &packet) == NFLOG_PACKET)
		take_packet(d, &packet);
	return true;
}

/* Writes the first record of each new key, and sets the timers for what is left. */
static void write_fresh(struct drops *d)
{
	struct timeval flush = { .tv_sec = DROPS_FLUSH_S }, tick = { .tv_usec = QUIC_TICK_US };

	for (; d->fresh < d->n; d->fresh++)
		write_entry(d, &d->entries[d->fresh]);
	if (d->n && !evtimer_pending(d->timer, NULL))
		evtimer_add(d->timer, &flush);
	if (quic_is_waiting(d->quic) && !evtimer_pending(d->quic_timer, NULL))
		evtimer_add(d->quic_timer, &tick);
}

/* Reads up to `max` messages, and writes what is new in them. Returns true when the socket was emptied. */
static bool read_messages(struct drops *d, size_t max)
{
	bool more = true;

	if (d->done)
		return true;
	for (size_t i = 0; i < max && more; i++)
		more = read_message(d);
	write_fresh(d);
	return !more;
}

/* Writes what is pending, and forgets the keys under which nothing came since the last time. */
static void write_pending(struct drops *d)
{
	size_t n = 0;

	memset(d->slots, 0, DROPS_SLOTS * sizeof(*d->slots));
	for (size_t i = 0; i < d->n; i++) {
		struct drops_entry *e = &d->entries[i];

		write_entry(d, e);
		if (!e->active && !e->count)
			continue;
		e->active = false;
		d->entries[n++] = *e;
		d->slots[find_slot(d, &e->key)] = (uint16_t)n;
	}
	d->n = n;
	d->fresh = n;
}

static void on_readable(evutil_socket_t fd, short events, void *arg)
{
	(void)fd;
	(void)events;
	read_messages(arg, TURN_MESSAGES);
}

static void on_timer(evutil_socket_t fd, short events, void *arg)
{
	struct timeval interval = { .tv_sec = DROPS_FLUSH_S };
	struct drops *d = arg;

	(void)fd;
	(void)events;
	write_pending(d);
	if (d->n)
		evtimer_add(d->timer, &interval);
}

static void on_quic_timer(evutil_socket_t fd, short events, void *arg)
{
	struct drops *d = arg;

	(void)fd;
	(void)events;
	release_quic(d, false);
	write_fresh(d);
}

struct drops *drops_new(struct event_base *base, int nflog_fd, struct audit *audit, struct quic *quic)
{
	struct drops *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->fd = nflog_fd;
	d->audit = audit;
	d->quic = quic;
	d->entries = calloc(DROPS_TABLE_MAX, sizeof(*d->entries));
	d->slots = calloc(DROPS_SLOTS, sizeof(*d->slots));
	d->readable = event_new(base, nflog_fd, EV_READ | EV_PERSIST, on_readable, d);
	d->timer = evtimer_new(base, on_timer, d);
	d->quic_timer = evtimer_new(base, on_quic_timer, d);
	if (!d->entries || !d->slots || !d->readable || !d->timer || !d->quic_timer || event_add(d->readable, NULL)) {
		drops_free(d);
		errno = ENOMEM;
		return NULL;
	}
	return d;
}

void drops_free(struct drops *d)
{
	if (!d)
		return;
	if (d->readable)
		event_free(d->readable);
	if (d->timer)
		event_free(d->timer);
	if (d->quic_timer)
		event_free(d->quic_timer);
	free(d->entries);
	free(d->slots);
	free(d);
}

void drops_flush(struct drops *d)
{
	read_messages(d, DRAIN_MESSAGES);
	release_quic(d, true);
	write_pending(d);
}

static uint64_t above(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Records what the counters have more than was seen and recorded. */
static void write_rest(struct drops *d, const uint64_t *packets, const uint64_t *bytes)
{
	for (size_t i = 0; i < GATE_COUNTER_COUNT; i++) {
		struct audit_drop drop = {
			.proto = i == GATE_COUNTER_UDP || i == GATE_COUNTER_QUIC ? "udp" : NULL,
			.reason = class_reason[i],
			.count = above(packets[i], d->seen[i] + d->rest[i]),
			.bytes = above(bytes[i], d->seen_bytes[i] + d->rest_bytes[i]),
		};

		if (drop.reason == REASON_NONE || !drop.count || audit_drop(d->audit, &drop))
			continue;
		d->rest[i] += drop.count;
		d->rest_bytes[i] += drop.bytes;
	}
}

/* True when NFLOG showed all that G counted, or it was recorded as not shown. */
static bool all_seen(const struct drops *d, const uint64_t *packets)
{
	for (size_t i = 0; i < GATE_COUNTER_COUNT; i++)
		if (class_reason[i] != REASON_NONE && packets[i] > d->seen[i] + d->rest[i])
			return false;
	return true;
}

/* Waits up to DROPS_SETTLE_MS for messages that the kernel still holds back. */
static void settle(struct drops *d, const uint64_t *packets)
{
	uint64_t end = clock_mono_us() + DROPS_SETTLE_MS * 1000, now;
	struct pollfd p = { .fd = d->fd, .events = POLLIN };

	read_messages(d, DRAIN_MESSAGES);
	while (!all_seen(d, packets) && (now = clock_mono_us()) < end) {
		if (poll(&p, 1, (int)((end - now) / 1000) + 1) != 1)
			break;
		read_messages(d, TURN_MESSAGES);
	}
}

static void reconcile_last(struct drops *d, const uint64_t *packets, const uint64_t *bytes, uint64_t accepts)
{
	struct audit_drop half_open = {
		.proto = "tcp",
		.reason = REASON_HALF_OPEN,
		.count = above(packets[GATE_COUNTER_SYN], accepts),
	};

	settle(d, packets);
	release_quic(d, true);
	event_del(d->readable);
	evtimer_del(d->timer);
	evtimer_del(d->quic_timer);
	d->done = true;
	write_pending(d);
	write_rest(d, packets, bytes);
	if (half_open.count)
		audit_drop(d->audit, &half_open);
}

void drops_reconcile(struct drops *d, const uint64_t *packets, const uint64_t *bytes, uint64_t accepts, bool last)
{
	uint64_t now = clock_mono_us();

	if (d->done)
		return;
	if (last) {
		reconcile_last(d, packets, bytes, accepts);
		return;
	}
	if (d->before_us && now - d->before_us < SETTLED_US)
		return;
	if (d->before_us && read_messages(d, DRAIN_MESSAGES)) {
		write_pending(d);
		write_rest(d, d->before, d->before_bytes);
	}
	memcpy(d->before, packets, sizeof(d->before));
	memcpy(d->before_bytes, bytes, sizeof(d->before_bytes));
	d->before_us = now;
}

void drops_record_untaken(struct audit *audit, uint16_t port, enum reason reason, uint64_t counted, uint64_t taken)
{
	const struct audit_drop drop = {
		.proto = "udp", .port = port, .reason = reason, .count = above(counted, taken)
	};

	if (drop.count > 0)
		(void)audit_drop(audit, &drop);
}
