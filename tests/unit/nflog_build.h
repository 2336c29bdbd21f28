/* SPDX-License-Identifier: Apache-2.0 */
/* Builds what nfnetlink_log sends, for tests: datagrams of one or more netlink messages. */
#ifndef TESTS_UNIT_NFLOG_BUILD_H
#define TESTS_UNIT_NFLOG_BUILD_H

#include <stddef.h>
#include <stdint.h>

struct nflog_build {
	uint8_t mem[65536];
	size_t len;
	size_t message; /* where the present message begins */
};

/* Begins a message of this netlink type (with its nfgenmsg); nflog_build_end() sets its length. */
void nflog_build_begin(struct nflog_build *b, uint16_t type);
void nflog_build_attr(struct nflog_build *b, uint16_t type, const void *p, size_t len);
void nflog_build_end(struct nflog_build *b);

/* A whole NFULNL_MSG_PACKET as the kernel sends it. */
void nflog_build_packet(struct nflog_build *b, const char *prefix, const void *payload, size_t len, uint32_t seq);

/* An IPv4 UDP packet from 10.200.0.2 with `data` bytes of payload behind its header; returns its length. */
size_t nflog_build_udp(uint8_t out[static 1500], const char *dst, uint16_t port, size_t data);

#endif
