/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what the kernel's nfnetlink_log delivers: netlink messages, each with one packet. Pure. */
#ifndef PROXY_AUDIT_NFLOG_H
#define PROXY_AUDIT_NFLOG_H

#include <stdint.h>

#include "base/reader.h"

struct nflog_packet {
	const char *prefix; /* of the log statement, not NUL-terminated; NULL: none */
	size_t prefix_len;
	const uint8_t *payload; /* from the IP header on, up to the snap length; NULL: none */
	size_t payload_len;
	uint32_t seq; /* of this group (NFULNL_CFG_F_SEQ); 0 where it is absent */
};

enum nflog_result { NFLOG_PACKET, NFLOG_END, NFLOG_BAD };

/*
 * The next packet of a datagram from an NFLOG socket: `r` begins over the whole
 * datagram and is moved behind what was read; messages of other types are
 * skipped. NFLOG_END when none is left; NFLOG_BAD when a length does not fit,
 * and the rest of the datagram is then not to be trusted. Pointers in `out` are into the datagram.
 */
enum nflog_result nflog_next(struct reader *r, struct nflog_packet *out);

#endif
