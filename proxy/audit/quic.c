/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of QUIC clients, from their first Initial packet on.
 *
 * A connection is known by its addresses, its version and the Destination
 * Connection ID that the client chose; it keeps that one until a server
 * answers, which none ever does. A connection is
 *
 *  reading   its ClientHello is not complete; has a stream; its packets wait, for QUIC_HOLD_US at most
 *  decided   the ClientHello was read, and a name is known, or that there is none; has no stream
 *
 * Only a packet that could be decrypted makes a connection, so that junk drives
 * none out. One whose packets wait is never driven out: with all of them waiting, new ones stay without a name.
 */
#include "proxy/audit/quic.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/name.h"
#include "proxy/audit/quic_open.h"
#include "proxy/wire/packet.h"
#include "proxy/wire/quic_frames.h"
#include "proxy/wire/quic_initial.h"
#include "proxy/wire/tls_hello.h"

#define SECOND_US 1000000

struct flow {
	uint64_t turn; /* of the last packet; 0: this flow is free */
	struct endpoint src, dst;
	uint32_t version;
	size_t dcid_len;
	uint8_t dcid[QUIC_CID_MAX];
	struct quic_keys keys;
	struct quic_stream *stream; /* NULL: decided */
	struct name name;	    /* len 0: none */
	uint64_t count, bytes;	    /* of the packets that wait */
	uint64_t since_us;	    /* when the first of them came */
};

struct quic {
	uint64_t turn;
	uint64_t second_us; /* when the present second of `opens` began */
	unsigned int opens; /* packets decrypted in it */
	size_t waiting;	    /* flows with packets that wait */
	struct flow flows[QUIC_FLOWS_MAX];
	uint8_t plain[QUIC_PLAIN_MAX];
};

struct quic *quic_new(void)
{
	struct quic *q = malloc(sizeof(*q));

	/* Most jobs have no such packet: the larger part, which need not be clear, costs them no memory and no time. */
	if (q)
		memset(q, 0, offsetof(struct quic, plain));
	return q;
}

void quic_free(struct quic *q)
{
	if (!q)
		return;
	for (size_t i = 0; i < QUIC_FLOWS_MAX; i++)
		free(q->flows[i].stream);
	free(q);
}

static bool same_endpoint(const struct endpoint *a, const struct endpoint *b)
{
	return a->port == b->port && addr_equal(&a->addr, &b->addr);
}

/* True when an Initial belongs to this flow, given that their addresses are the same. */
static bool is_of_flow(const struct flow *f, const struct quic_initial *initial)
{
	return f->version == initial->version && f->dcid_len == initial->dcid_len &&
	       !memcmp(f->dcid, initial->dcid, f->dcid_len);
}

static struct flow *find_flow(struct quic *q, const struct packet *packet, const struct quic_initial *initial)
{
	for (size_t i = 0; i < QUIC_FLOWS_MAX; i++) {
		struct flow *f = &q->flows[i];

		if (f->turn && is_of_flow(f, initial) && same_endpoint(&f->src, &packet->src) &&
		    same_endpoint(&f->dst, &packet->dst))
			return f;
	}
	return NULL;
}

static void decide(struct flow *f)
{
	free(f->stream);
	f->stream = NULL;
}

/* NULL when every flow has packets that wait, or memory is out. */
static struct flow *add_flow(struct quic *q, const struct packet *packet, const struct quic_initial *initial,
			     const struct quic_keys *keys)
{
	struct quic_stream *stream;
	struct flow *f = NULL;

	for (size_t i = 0; i < QUIC_FLOWS_MAX; i++)
		if (!q->flows[i].count && (!f || q->flows[i].turn < f->turn))
			f = &q->flows[i];
	stream = f ? malloc(sizeof(*stream)) : NULL;
	if (!stream)
		return NULL;
	decide(f);
	quic_stream_clear(stream);
	*f = (struct flow){ .src = packet->src,
			    .dst = packet->dst,
			    .version = initial->version,
			    .dcid_len = initial->dcid_len,
			    .keys = *keys,
			    .stream = stream };
	memcpy(f->dcid, initial->dcid, f->dcid_len);
	return f;
}

static void set_name(struct flow *f, const struct tls_hello *hello)
{
	if (hello->has_sni)
		(void)name_canonical(hello->sni, hello->sni_len, &f->name);
}

/* Adds what a packet holds to the flow's stream, and decides the flow when its ClientHello is complete or can't be one. */
static void read_payload(struct flow *f, const uint8_t *p, size_t len)
{
	struct tls_hello hello;
	enum parse got = quic_frames_read(p, len, f->stream);

	if (got == PARSE_OK)
		got = tls_hello_message(f->stream->data, f->stream->ready, &hello);
	/* The ClientHello is all that a client says before it is answered. */
	if (got == PARSE_OK && f->stream->end > f->stream->ready)
		got = PARSE_BAD;
	if (got == PARSE_MORE)
		return;
	f->name.len = 0; /* what there was, was a guess */
	if (got == PARSE_OK)
		set_name(f, &hello);
	decide(f);
}

/* True when one more packet may be decrypted in this second. */
static bool may_open(struct quic *q, uint64_t now_us)
{
	if (now_us - q->second_us >= SECOND_US) {
		q->second_us = now_us;
		q->opens = 0;
	}
	if (q->opens == QUIC_OPENS_MAX)
		return false;
	q->opens++;
	return true;
}

/* Decrypts one Initial and reads it into its flow, `f`; where that is NULL a new one. Returns the flow, or NULL. */
static struct flow *read_initial(struct quic *q, struct flow *f, const struct packet *packet,
				 const struct quic_initial *initial, uint64_t now_us)
{
	struct quic_keys keys;
	int len;

	if ((f && !f->stream) || !may_open(q, now_us))
		return f;
	if (f)
		keys = f->keys;
	else
		quic_open_keys(initial->version, initial->dcid, initial->dcid_len, &keys);
	len = quic_open(&keys, initial, q->plain);
	if (len < 0)
		return f;
	if (!f)
		f = add_flow(q, packet, initial, &keys);
	if (f)
		read_payload(f, q->plain, (size_t)len);
	return f;
}

/*
 * Reads all Initials of a packet. Those of a second connection are not looked
 * at, as a server would not (RFC 9000 §12.2). Several datagrams that were
 * segmented late look like one; their Initials follow each other as those of one datagram do.
 */
static struct flow *read_packet(struct quic *q, const struct packet *packet, uint64_t now_us)
{
	struct reader r = reader_over(packet->payload, packet->payload_len);
	struct quic_initial initial;
	struct flow *f = NULL;

	while (quic_initial_next(&r, &initial)) {
		if (!f)
			f = find_flow(q, packet, &initial);
		if (!f || is_of_flow(f, &initial))
			f = read_initial(q, f, packet, &initial, now_us);
	}
	return f;
}

/* Moves the packets that wait to `out`. */
static void hand_out(struct quic *q, struct flow *f, struct quic_group *out)
{
	*out = (struct quic_group){ .dst = f->dst, .count = f->count, .bytes = f->bytes };
	if (f->name.len)
		out->name = &f->name;
	f->count = f->bytes = 0;
	q->waiting--;
}

bool quic_take(struct quic *q, const struct packet *packet, uint64_t now_us, struct quic_group *out)
{
	struct flow *f = read_packet(q, packet, now_us);

	if (!f) {
		*out = (struct quic_group){ .dst = packet->dst, .count = 1, .bytes = packet->total };
		return true;
	}
	f->turn = ++q->turn;
	if (!f->count) {
		f->since_us = now_us;
		q->waiting++;
	}
	f->count++;
	f->bytes += packet->total;
	if (f->stream)
		return false;
	hand_out(q, f, out);
	return true;
}

bool quic_release(struct quic *q, uint64_t now_us, struct quic_group *out)
{
	for (size_t i = 0; i < QUIC_FLOWS_MAX && q->waiting; i++) {
		struct flow *f = &q->flows[i];
		struct tls_hello hello;

		if (!f->count || now_us - f->since_us < QUIC_HOLD_US)
			continue;
		/* The flow stays undecided, in case that the rest comes after all. */
		if (tls_hello_early_name(f->stream->data, f->stream->ready, &hello))
			set_name(f, &hello);
		hand_out(q, f, out);
		return true;
	}
	return false;
}

bool quic_is_waiting(const struct quic *q)
{
	return q->waiting > 0;
}
