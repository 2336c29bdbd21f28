/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nfnetlink_log messages (linux/netfilter/nfnetlink_log.h): nlmsghdr,
 * nfgenmsg, then attributes, each padded to four bytes. The headers are in host order,
 * the values in network order.
 */
#include "proxy/audit/nflog.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <string.h>

#define NFLOG_TYPE (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET)

/* Skips the padding behind `len` bytes; the last item of a message may come without. */
static void skip_padding(struct reader *r, size_t len)
{
	size_t pad = (4 - len % 4) % 4;

	reader_take(r, pad < r->left ? pad : r->left);
}

/* One attribute: its type, and `value` over its payload. */
static uint16_t take_attr(struct reader *r, struct reader *value)
{
	struct reader head = reader_take(r, sizeof(struct nlattr));
	struct nlattr attr;

	if (head.bad)
		return 0;
	memcpy(&attr, head.p, sizeof(attr));
	if (attr.nla_len < sizeof(attr)) {
		r->bad = true;
		return 0;
	}
	*value = reader_take(r, attr.nla_len - sizeof(attr));
	skip_padding(r, attr.nla_len);
	return attr.nla_type & NLA_TYPE_MASK;
}

static enum nflog_result read_packet(struct reader *message, struct nflog_packet *out)
{
	*out = (struct nflog_packet){ .prefix = NULL };
	reader_take(message, sizeof(struct nfgenmsg));
	while (message->left && !message->bad) {
		struct reader value = { .p = NULL };
		uint16_t type = take_attr(message, &value);

		if (message->bad)
			break;
		if (type == NFULA_PAYLOAD) {
			out->payload = value.p;
			out->payload_len = value.left;
		} else if (type == NFULA_PREFIX) {
			out->prefix = (const char *)value.p;
			out->prefix_len = strnlen(out->prefix, value.left);
		} else if (type == NFULA_SEQ) {
			out->seq = reader_u32(&value);
			message->bad |= value.bad;
		}
	}
	return message->bad ? NFLOG_BAD : NFLOG_PACKET;
}

enum nflog_result nflog_next(struct reader *r, struct nflog_packet *out)
{
	while (r->left) {
		struct reader head = reader_take(r, sizeof(struct nlmsghdr));
		struct nlmsghdr nlh;
		struct reader body;

		if (head.bad)
			return NFLOG_BAD;
		memcpy(&nlh, head.p, sizeof(nlh));
		if (nlh.nlmsg_len < sizeof(nlh))
			return NFLOG_BAD;
		body = reader_take(r, nlh.nlmsg_len - sizeof(nlh));
		if (body.bad)
			return NFLOG_BAD;
		skip_padding(r, nlh.nlmsg_len);
		if (nlh.nlmsg_type == NFLOG_TYPE)
			return read_packet(&body, out);
	}
	return NFLOG_END;
}
