/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1 message framing, strict (RFC 9112 §2–§7, §11.2): whatever two
 * parsers could read differently is bad. Pure: no allocation, no I/O.
 *
 * Heads are parsed whole from one buffer. Bodies are framed by counting:
 * `struct http1_body` says how many of the next bytes belong to the message,
 * so that a relay can move them without looking at them.
 */
#ifndef PROXY_WIRE_HTTP1_H
#define PROXY_WIRE_HTTP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/wire/parse.h"

#define HTTP1_HEAD_MAX	 65536 /* bytes of a start line and its fields with the empty line; above it: 431 */
#define HTTP1_FIELDS_MAX 256

struct http1_text {
	const char *p; /* into the caller's buffer; not NUL-terminated */
	size_t len;
};

struct http1_field {
	struct http1_text name;	 /* token, as sent */
	struct http1_text value; /* without surrounding white space */
	struct http1_text line;	 /* the whole line with its CRLF */
};

enum http1_body_kind {
	HTTP1_BODY_NONE,
	HTTP1_BODY_LENGTH,
	HTTP1_BODY_CHUNKED,
	HTTP1_BODY_UNTIL_CLOSE /* responses only */
};

struct http1_head {
	size_t len;		  /* bytes of the head, the empty line included */
	unsigned minor;		  /* HTTP/1.minor: 0 or 1; any other version is bad */
	struct http1_text method; /* requests */
	struct http1_text target; /* requests, as sent */
	/* The authority that the request means: Host, or for absolute-form the target's (then both must agree). */
	struct http1_text host; /* name or address text without port; brackets of an IPv6 literal kept */
	bool has_host;
	bool has_port;
	uint16_t port;
	unsigned status; /* responses: 100–999 */
	enum http1_body_kind body;
	uint64_t body_len;	      /* for HTTP1_BODY_LENGTH */
	bool keep_alive;	      /* RFC 9112 §9.3 */
	bool upgrade;		      /* an Upgrade field together with Connection: upgrade */
	struct http1_text upgrade_to; /* its value */
	bool expect_continue;
	size_t n_fields;
	struct http1_field fields[HTTP1_FIELDS_MAX];
};

enum http1_error { HTTP1_ERROR_NONE, HTTP1_ERROR_SYNTAX, HTTP1_ERROR_HOST, HTTP1_ERROR_FRAMING, HTTP1_ERROR_TOO_LARGE };

/*
 * Parses a request head. Bad, among others: bare CR or LF, obs-fold, white
 * space before a colon or around the target, a field value with a control
 * byte, no or two Host fields for 1.1, a Host with userinfo, percent, comma or
 * a bad port, absolute-form whose authority differs from Host (HTTP1_ERROR_HOST)
 * or whose scheme is not http, Content-Length with Transfer-Encoding, two
 * Content-Length values, a Transfer-Encoding other than exactly "chunked" (once),
 * Transfer-Encoding in 1.0, more than HTTP1_FIELDS_MAX fields.
 * One empty line (CRLF) before the request line is skipped and counted in `len`
 * only if `len` allows (RFC 9112 §2.2). `error` says what was wrong after PARSE_BAD.
 */
enum parse http1_request(const uint8_t *p, size_t len, struct http1_head *head, enum http1_error *error);

/*
 * Parses a response head. `request_method` decides whether a body follows
 * (HEAD, CONNECT; RFC 9112 §6.3). 1xx, 204 and 304 have none.
 */
enum parse http1_response(const uint8_t *p, size_t len, struct http1_text request_method, struct http1_head *head,
			  enum http1_error *error);

/* Case-insensitive comparison of a header text with an ASCII literal. */
bool http1_text_is(struct http1_text t, const char *lower);

/* Progress through one body. */
struct http1_body {
	enum http1_body_kind kind;
	uint64_t left;	      /* bytes of the body, or of the present chunk, that may be moved unseen */
	uint8_t state;	      /* private: of the chunked decoder */
	uint8_t digits;	      /* private */
	uint16_t line_len;    /* private: bytes of the present chunk line or trailer */
	uint32_t trailer_len; /* private */
	bool done;	      /* the message is complete */
};

/* Starts at the first byte after the head. */
void http1_body_begin(struct http1_body *b, const struct http1_head *head);

/*
 * Looks at `len` bytes of which none was seen before; says how many of them,
 * from the front, belong to this message (*taken), always as many as it can.
 * It may leave `left` above 0: then that many further bytes may be moved
 * unseen, which http1_body_skip() accounts for. PARSE_OK when the message is
 * complete (b->done), PARSE_MORE when not, PARSE_BAD on a framing error: chunk
 * sizes are 1–16 hex digits without sign, chunk extensions are at most 256
 * bytes of printable text, every line ends in CRLF, trailers are fields within
 * 8 KB and must not be Host, Content-Length or Transfer-Encoding (RFC 9112 §7.1).
 */
enum parse http1_body_feed(struct http1_body *b, const uint8_t *p, size_t len, size_t *taken);

/* `n` bytes (at most b->left) were moved unseen. */
void http1_body_skip(struct http1_body *b, uint64_t n);

#endif
