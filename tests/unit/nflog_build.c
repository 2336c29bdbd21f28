/* SPDX-License-Identifier: Apache-2.0 */
/* Builds what nfnetlink_log sends, for tests. */
#include "tests/unit/nflog_build.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <string.h>

static void put(struct nflog_build *b, const void *p, size_t len)
{
	memcpy(b->mem + b->len, p, len);
	b->len += len;
}

static void pad(struct nflog_build *b)
{
	while (b->len % 4)
		b->mem[b->len++] = 0;
}

void nflog_build_begin(struct nflog_build *b, uint16_t type)
{
	struct nlmsghdr nlh = { .nlmsg_type = type };
	struct nfgenmsg nfg = { .nfgen_family = AF_INET, .res_id = htons(7) };

	b->message = b->len;
	put(b, &nlh, sizeof(nlh));
	put(b, &nfg, sizeof(nfg));
}

void nflog_build_attr(struct nflog_build *b, uint16_t type, const void *p, size_t len)
{
	struct nlattr attr = { .nla_len = (uint16_t)(sizeof(attr) + len), .nla_type = type };

	put(b, &attr, sizeof(attr));
	put(b, p, len);
	pad(b);
}

void nflog_build_end(struct nflog_build *b)
{
	uint32_t len = (uint32_t)(b->len - b->message);

	memcpy(b->mem + b->message, &len, sizeof(len));
}

void nflog_build_packet(struct nflog_build *b, const char *prefix, const void *payload, size_t len, uint32_t seq)
{
	struct nfulnl_msg_packet_hdr hdr = { .hw_protocol = htons(0x0800), .hook = 0 };
	uint32_t seq_be = htonl(seq), ifindex = htonl(2);

	nflog_build_begin(b, NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET);
	nflog_build_attr(b, NFULA_PACKET_HDR, &hdr, sizeof(hdr));
	nflog_build_attr(b, NFULA_PREFIX, prefix, strlen(prefix) + 1);
	nflog_build_attr(b, NFULA_IFINDEX_INDEV, &ifindex, sizeof(ifindex));
	nflog_build_attr(b, NFULA_SEQ, &seq_be, sizeof(seq_be));
	nflog_build_attr(b, NFULA_PAYLOAD, payload, len);
	nflog_build_end(b);
}

size_t nflog_build_udp(uint8_t out[static 1500], const char *dst, uint16_t port, size_t data)
{
	uint16_t total = (uint16_t)(28 + data), udp_len = (uint16_t)(8 + data);
	uint8_t head[28] = { 0x45, 0, (uint8_t)(total >> 8), (uint8_t)total, 0, 0, 0, 0, 64, 17, 0, 0, 10, 200, 0, 2 };

	inet_pton(AF_INET, dst, head + 16);
	head[20] = 0x30;
	head[22] = (uint8_t)(port >> 8);
	head[23] = (uint8_t)port;
	head[24] = (uint8_t)(udp_len >> 8);
	head[25] = (uint8_t)udp_len;
	memset(out, 'x', total);
	memcpy(out, head, sizeof(head));
	return total;
}
