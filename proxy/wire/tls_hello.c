/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS ClientHello reader.
 *
 * Two steps. The record walk finds out whether all handshake bytes of the
 * hello are there, without copying any: a hello that trickles in costs a look
 * at the record headers for each call. Only when the hello is complete is its
 * body read, in place if one record holds it, else from the scratch.
 *
 * QUIC carries the message without records; there the caller puts it together.
 *
 * The name decides where a connection goes, so a hello that a strict server
 * would refuse is refused here: otherwise a lenient server might find another
 * name in the same bytes than this parser did.
 */
#include <string.h>

#include "base/reader.h"
#include "proxy/wire/tls_hello.h"

#define RECORD_HEADER	  5
#define RECORD_HANDSHAKE  22	/* RFC 8446 §5.1 */
#define RECORD_MAX	  16384 /* bytes in a plaintext record */
#define VERSION_MAJOR	  3	/* SSL 3.0 to TLS 1.3 all say 3.x on the wire */
#define HANDSHAKE_HEADER  4
#define CLIENT_HELLO	  1
#define SESSION_ID_MAX	  32
#define EXT_SERVER_NAME	  0
#define EXT_ALPN	  16
#define EXT_ECH		  0xfe0d
#define NAME_TYPE_HOST	  0
#define COMPRESSION_NULL  0
#define HELLO_MESSAGE_MAX (TLS_HELLO_MAX - RECORD_HEADER)

/* The handshake message as the records carry it. */
struct message {
	uint8_t header[HANDSHAKE_HEADER];
	size_t header_len; /* bytes of `header` seen */
	size_t need;	   /* bytes of the message with its header; 0 until the header is complete */
	size_t got;	   /* bytes in complete records */
	size_t records;
};

/* A record header that isn't all there yet is bad as soon as what is there is. */
static enum parse partial_record_header(const struct reader *s)
{
	if (s->left >= 1 && s->p[0] != RECORD_HANDSHAKE)
		return PARSE_BAD;
	if (s->left >= 2 && s->p[1] != VERSION_MAJOR)
		return PARSE_BAD;
	return PARSE_MORE;
}

/* Takes bytes of the message header from `part`, the bytes present of a record. PARSE_MORE until it is complete. */
static enum parse message_header(struct message *m, struct reader part)
{
	struct reader h;

	while (m->header_len < HANDSHAKE_HEADER && part.left > 0)
		m->header[m->header_len++] = reader_u8(&part);
	if (m->header_len > 0 && m->header[0] != CLIENT_HELLO)
		return PARSE_BAD;
	if (m->header_len < HANDSHAKE_HEADER)
		return PARSE_MORE;
	h = reader_over(m->header + 1, HANDSHAKE_HEADER - 1);
	m->need = HANDSHAKE_HEADER + reader_u24(&h);
	return m->need <= HELLO_MESSAGE_MAX ? PARSE_OK : PARSE_BAD;
}

/*
 * Walks the records up to the end of the message; with `out` also copies
 * their contents there. PARSE_OK: m->need bytes in m->records records.
 */
static enum parse walk_records(struct reader s, struct message *m, uint8_t *out)
{
	*m = (struct message){ 0 };
	while (m->need == 0 || m->got < m->need) {
		struct reader part;
		size_t n;

		if (s.left < RECORD_HEADER)
			return partial_record_header(&s);
		if (reader_u8(&s) != RECORD_HANDSHAKE || reader_u8(&s) != VERSION_MAJOR)
			return PARSE_BAD;
		reader_u8(&s); /* the minor version is to be ignored (RFC 8446 §5.1) */
		n = reader_u16(&s);
		if (n == 0 || n > RECORD_MAX)
			return PARSE_BAD;
		part = reader_take(&s, n < s.left ? n : s.left);
		if (m->need == 0 && message_header(m, part) == PARSE_BAD)
			return PARSE_BAD;
		if (m->need != 0 && m->got + n > m->need)
			return PARSE_BAD;
		if (part.left < n)
			return PARSE_MORE;
		if (out)
			memcpy(out + m->got, part.p, n);
		m->got += n;
		m->records++;
	}
	return PARSE_OK;
}

/* RFC 6066 §3: a list of exactly one host_name. */
static bool parse_server_name(struct reader ext, struct tls_hello *hello)
{
	struct reader list = reader_take(&ext, reader_u16(&ext));
	struct reader name;

	if (reader_u8(&list) != NAME_TYPE_HOST)
		return false;
	name = reader_take(&list, reader_u16(&list));
	if (!reader_done(&ext) || !reader_done(&list) || name.left == 0)
		return false;
	hello->has_sni = true;
	hello->sni = name.p;
	hello->sni_len = name.left;
	return true;
}

/* RFC 7301 §3.1: one name or more, none of them empty. */
static bool parse_alpn(struct reader ext, struct tls_hello *hello)
{
	struct reader list = reader_take(&ext, reader_u16(&ext));
	size_t n = 0;

	if (!reader_done(&ext) || list.left == 0)
		return false;
	while (list.left > 0) {
		struct reader name = reader_take(&list, reader_u8(&list));

		if (name.left == 0)
			return false;
		if (n > 0 && n < TLS_ALPN_MAX - 1)
			hello->alpn[n++] = ',';
		while (name.left > 0 && n < TLS_ALPN_MAX - 1) {
			uint8_t c = reader_u8(&name);

			hello->alpn[n++] = (char)(c > ' ' && c < 0x7f && c != ',' ? c : '?');
		}
	}
	return !list.bad;
}

/* Extension types seen so far. The filter answers nearly every "not seen yet" without a look at the list. */
struct types {
	uint64_t filter;
	size_t n;
	uint16_t type[TLS_EXTENSIONS_MAX];
};

/* Returns false when `type` was there before or there are too many. */
static bool types_add(struct types *t, uint16_t type)
{
	uint64_t bit = 1ULL << ((type ^ type >> 8) & 63);

	if (t->n == TLS_EXTENSIONS_MAX)
		return false;
	if (t->filter & bit) {
		for (size_t i = 0; i < t->n; i++) {
			if (t->type[i] == type)
				return false;
		}
	}
	t->filter |= bit;
	t->type[t->n++] = type;
	return true;
}

static bool parse_extensions(struct reader list, struct tls_hello *hello)
{
	struct types seen;

	seen.filter = 0;
	seen.n = 0;
	while (list.left > 0) {
		uint16_t type = reader_u16(&list);
		struct reader ext = reader_take(&list, reader_u16(&list));

		if (ext.bad || !types_add(&seen, type))
			return false;
		if (type == EXT_SERVER_NAME && !parse_server_name(ext, hello))
			return false;
		if (type == EXT_ALPN && !parse_alpn(ext, hello))
			return false;
		if (type == EXT_ECH)
			hello->ech = true;
	}
	return !list.bad;
}

/* RFC 8446 §4.1.2, and RFC 5246 §7.4.1.2 for a hello without extensions. Steps over what comes before them. */
static bool skip_to_extensions(struct reader *body)
{
	struct reader session, ciphers, compression;

	if (reader_u8(body) != VERSION_MAJOR)
		return false;
	reader_u8(body);
	reader_take(body, 32); /* random */
	session = reader_take(body, reader_u8(body));
	ciphers = reader_take(body, reader_u16(body));
	compression = reader_take(body, reader_u8(body));
	if (body->bad || session.left > SESSION_ID_MAX || ciphers.left == 0 || ciphers.left % 2 != 0)
		return false;
	return memchr(compression.p, COMPRESSION_NULL, compression.left) != NULL;
}

static bool parse_client_hello(struct reader body, struct tls_hello *hello)
{
	struct reader extensions;

	if (!skip_to_extensions(&body))
		return false;
	if (body.left == 0)
		return true;
	extensions = reader_take(&body, reader_u16(&body));
	return reader_done(&body) && parse_extensions(extensions, hello);
}

/* A whole message with its header, in `records` records. */
static enum parse parse_message(const uint8_t *p, size_t len, size_t records, struct tls_hello *hello)
{
	if (parse_client_hello(reader_over(p + HANDSHAKE_HEADER, len - HANDSHAKE_HEADER), hello)) {
		hello->len = len + records * RECORD_HEADER;
		return PARSE_OK;
	}
	*hello = (struct tls_hello){ 0 };
	return PARSE_BAD;
}

enum parse tls_hello_parse(const uint8_t *p, size_t len, uint8_t *scratch, struct tls_hello *hello)
{
	struct reader stream = reader_over(p, len < TLS_HELLO_MAX ? len : TLS_HELLO_MAX);
	const uint8_t *message;
	struct message m;
	enum parse got;

	*hello = (struct tls_hello){ 0 };
	got = walk_records(stream, &m, NULL);
	if (got == PARSE_MORE)
		return len < TLS_HELLO_MAX ? PARSE_MORE : PARSE_BAD;
	if (got == PARSE_BAD)
		return PARSE_BAD;
	message = p + RECORD_HEADER;
	if (m.records > 1) {
		walk_records(stream, &m, scratch);
		message = scratch;
	}
	return parse_message(message, m.need, m.records, hello);
}

enum parse tls_hello_message(const uint8_t *p, size_t len, struct tls_hello *hello)
{
	struct message m = { 0 };
	enum parse got = message_header(&m, reader_over(p, len));

	*hello = (struct tls_hello){ 0 };
	if (got != PARSE_OK)
		return got;
	if (len < m.need)
		return PARSE_MORE;
	return len == m.need ? parse_message(p, len, 0, hello) : PARSE_BAD;
}

bool tls_hello_early_name(const uint8_t *p, size_t len, struct tls_hello *hello)
{
	struct reader body = reader_over(p, len);
	struct message m = { 0 };

	*hello = (struct tls_hello){ 0 };
	if (message_header(&m, body) != PARSE_OK)
		return false;
	reader_take(&body, HANDSHAKE_HEADER);
	if (!skip_to_extensions(&body))
		return false;
	reader_u16(&body); /* their length */
	while (body.left > 0) {
		uint16_t type = reader_u16(&body);
		struct reader ext = reader_take(&body, reader_u16(&body));

		if (!ext.bad && type == EXT_SERVER_NAME)
			return parse_server_name(ext, hello);
	}
	return false;
}
