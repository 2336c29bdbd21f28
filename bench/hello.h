/* SPDX-License-Identifier: Apache-2.0 */
/* A ClientHello as a browser's was before post-quantum keys: of 517 bytes, for one name. */
#ifndef BENCH_HELLO_H
#define BENCH_HELLO_H

#include <stddef.h>
#include <stdint.h>

#define HELLO_MAX 517

/* Writes the TLS record with `host` as SNI and returns its length. `host`: at most 127 bytes. */
size_t hello_make(const char *host, uint8_t out[static HELLO_MAX]);

#endif
