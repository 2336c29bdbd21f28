/* SPDX-License-Identifier: Apache-2.0 */
/* Builds ClientHellos, right ones and wrong ones, and splits them into records. For tests. */
#ifndef TESTS_UNIT_HELLO_BUILDER_H
#define TESTS_UNIT_HELLO_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HELLO_STREAM_MAX (8 * 65536)
#define HELLO_RECORD_MAX 16384

struct hello_bytes {
	size_t n;
	uint8_t b[HELLO_STREAM_MAX];
};

/* What to build: all zero is a plain, valid hello for ok.test. The lies are added to lengths that are written. */
struct hello_spec {
	const char *sni; /* "": no extension */
	const char *alpn;
	size_t pq;	/* bytes of a key share */
	size_t padding; /* bytes of a padding extension, 0: none */
	size_t grease;	/* further extensions, each of a type of its own */
	bool ech;
	bool no_extensions;
	uint8_t version, type, name_type;
	uint8_t compression; /* the method offered */
	size_t session, ciphers_odd;
	bool no_ciphers, no_compression;
	bool sni_twice, names_twice, grease_twice;
	size_t behind_extensions, behind_sni, behind_list, behind_alpn;
	int lie_message, lie_session, lie_ciphers, lie_compression, lie_extensions;
	int lie_ext, lie_list, lie_name, lie_alpn, lie_alpn_list;
};

/* Appends; aborts the test program when there is no room. */
void hello_put(struct hello_bytes *to, const void *p, size_t n);

/* Appends `p` as one handshake record. */
void hello_put_record(struct hello_bytes *to, const void *p, size_t n);

/* The handshake message of `s`, replacing what is in `message`. */
void hello_build(struct hello_bytes *message, const struct hello_spec *s);

/* `message` as records, the first of `first` bytes, the others of `rest`, replacing what is in `stream`. */
void hello_split(struct hello_bytes *stream, const struct hello_bytes *message, size_t first, size_t rest);

#endif
