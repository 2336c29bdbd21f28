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

#define HTTP1_HEAD_MAX	    65536 /* bytes of a start line and its fields with the empty line; above it: 431 */
#define HTTP1_FIELDS_MAX    256
#define HTTP1_NOMINATED_MAX 16	 /* field names that Connection lists */
#define HTTP1_CHUNK_EXT_MAX 256	 /* bytes of the extensions of one chunk */
#define HTTP1_TRAILER_MAX   8192 /* bytes of all trailer lines */

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
	struct http1_text path;	  /* requests: the target without scheme and authority; may be "" or begin with '?'
				     after absolute-form (send "/" before it); "*"; "" for CONNECT */
	/*
	 * The authority that the request means: Host, or for absolute-form
	 * and CONNECT the target's. Not empty and made of the bytes of a
	 * reg-name (RFC 3986 §3.2.2) without '%' and ',' (base/name.h decides
	 * whether it is a name), or an IPv6 literal with its brackets.
	 */
	struct http1_text host; /* without port */
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
	size_t n_nominated;
	size_t n_fields;
	/* Names in Connection other than close, keep-alive and upgrade. */
	struct http1_text nominated[HTTP1_NOMINATED_MAX];
	struct http1_field fields[HTTP1_FIELDS_MAX];
};

enum http1_error { HTTP1_ERROR_NONE, HTTP1_ERROR_SYNTAX, HTTP1_ERROR_HOST, HTTP1_ERROR_FRAMING, HTTP1_ERROR_TOO_LARGE };

/*
 * Parses a request head. Bad are, among others:
 * - HTTP1_ERROR_SYNTAX: bare CR or LF, obs-fold, white space before a colon or
 *   around the target, a control byte in a field value, '#' in the target,
 *   absolute-form with another scheme than http, "*" without OPTIONS, any
 *   version but HTTP/1.0 and HTTP/1.1, two Upgrade fields;
 * - HTTP1_ERROR_HOST: no Host in 1.1 (CONNECT may go without), two of them, an
 *   empty one, userinfo, percent, comma, brackets round anything but an IPv6
 *   address, a port that is not 1 to 65535 in its shortest form, CONNECT
 *   without a port, a target whose authority is not that of Host (port 80 may
 *   be left out after http://; with CONNECT, Host may leave out any port);
 * - HTTP1_ERROR_FRAMING: Content-Length with Transfer-Encoding, two
 *   Content-Length, one that is not 1 to 18 digits in their shortest form, a
 *   Transfer-Encoding other than "chunked" (once), any in 1.0, white space
 *   behind one of these values or a tab before it (the same for Host: there
 *   HTTP1_ERROR_HOST), a CONNECT with a body, a Connection that lists Host,
 *   Content-Length or Transfer-Encoding;
 * - HTTP1_ERROR_TOO_LARGE: above HTTP1_HEAD_MAX, HTTP1_FIELDS_MAX or
 *   HTTP1_NOMINATED_MAX.
 * One empty line (CRLF) before the request line is skipped and counted in
 * `len` (RFC 9112 §2.2). `*error` says what was wrong after PARSE_BAD. After
 * HTTP1_ERROR_HOST and HTTP1_ERROR_FRAMING the texts of the head (method,
 * target, fields, and host if it could be read) are filled all the same, for the record.
 * All texts point into `p`. What lies behind `n_fields` and `n_nominated` is not written.
 */
enum parse http1_request(const uint8_t *p, size_t len, struct http1_head *head, enum http1_error *error);

/*
 * Parses a response head, as strictly but for what servers do and what can't
 * mislead: white space round values, identical Content-Length fields, leading
 * zeros in them, no space behind the status code. `request_method` decides
 * whether a body follows (HEAD, CONNECT; RFC 9112 §6.3); 1xx, 204 and 304 have none.
 */
enum parse http1_response(const uint8_t *p, size_t len, struct http1_text request_method, struct http1_head *head,
			  enum http1_error *error);

/*
 * True for a field of `head` that ends here and must not be forwarded
 * (RFC 9110 §7.6.1): Connection and what it lists, Keep-Alive, TE, Proxy-*. Never for
 * Host, Content-Length, Transfer-Encoding, Trailer and Upgrade: those are the caller's business.
 */
bool http1_is_hop_by_hop(const struct http1_head *head, const struct http1_field *f);

/* Case-insensitive comparison of a header text with an ASCII literal. */
bool http1_text_is(struct http1_text t, const char *lower);

/* Progress through one body. */
struct http1_body {
	enum http1_body_kind kind;
	uint64_t left;	      /* bytes of the body, or of the present chunk, that may be moved unseen */
	uint64_t size;	      /* private: a chunk's size as far as it was read */
	uint8_t state;	      /* private: of the chunked decoder */
	uint8_t match;	      /* private: forbidden trailer names that the present one may still become */
	uint16_t line_len;    /* private: digits of a chunk size, bytes of an extension or of a trailer's name */
	uint16_t trailer_len; /* private: bytes of all trailer lines */
	bool done;	      /* the message is complete */
};

/* Starts at the first byte after the head. */
void http1_body_begin(struct http1_body *b, const struct http1_head *head);

/*
 * Looks at `len` bytes of which none was seen before; says how many of them,
 * from the front, belong to this message (*taken), always as many as it can.
 * It may leave `left` above 0: then that many further bytes may be moved
 * unseen, which http1_body_skip() accounts for (UINT64_MAX for a body that
 * ends with the connection: all that come). PARSE_OK when the message is
 * complete (b->done), PARSE_MORE when not, PARSE_BAD on a framing error, and
 * for good then: chunk sizes are 1–16 hex digits below 2^63, chunk extensions
 * are at most HTTP1_CHUNK_EXT_MAX bytes of printable ASCII and tabs, every line ends in CRLF,
 * trailers are fields within HTTP1_TRAILER_MAX and must not be Host, Content-Length or
 * Transfer-Encoding (RFC 9112 §7.1).
 */
enum parse http1_body_feed(struct http1_body *b, const uint8_t *p, size_t len, size_t *taken);

/* `n` bytes (at most b->left) were moved unseen. */
void http1_body_skip(struct http1_body *b, uint64_t n);

#endif
