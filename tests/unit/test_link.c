/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rtnetlink messages say about the gate's link.
 * links: proxy/process/link.c tests/unit/guard_page.c
 */
#include "proxy/process/link.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "tests/unit/guard_page.h"

#define QUESTION 7

static _Alignas(struct nlmsghdr) uint8_t mem[4096];
static size_t len;

static void begin(void **state)
{
	(void)state;
	len = 0;
}

static void add_link(uint16_t type, uint8_t family, const char *name)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(mem + len);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));

	nlh->nlmsg_type = type;
	ifi->ifi_family = family;
	mnl_attr_put_u32(nlh, IFLA_MTU, 1500);
	if (name)
		mnl_attr_put_strz(nlh, IFLA_IFNAME, name);
	len += MNL_ALIGN(nlh->nlmsg_len);
}

static void add_error(uint32_t seq, int error)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(mem + len);
	struct nlmsgerr *e = mnl_nlmsg_put_extra_header(nlh, sizeof(*e));

	nlh->nlmsg_type = NLMSG_ERROR;
	nlh->nlmsg_seq = seq;
	e->error = error;
	len += MNL_ALIGN(nlh->nlmsg_len);
}

static struct link_end peer;
static bool answer;

static enum link_news news(void)
{
	return link_news(mem, len, QUESTION, &peer, &answer);
}

static void deleted(void **state)
{
	begin(state);
	add_link(RTM_NEWLINK, AF_UNSPEC, "gw0");
	assert_int_equal(news(), LINK_THERE);
	add_link(RTM_DELLINK, AF_UNSPEC, "gw1");
	assert_int_equal(news(), LINK_THERE);
	add_link(RTM_DELLINK, AF_UNSPEC, "gw0");
	add_link(RTM_NEWLINK, AF_UNSPEC, "gw0");
	assert_int_equal(news(), LINK_GONE);
}

static void others(void **state)
{
	begin(state);
	add_link(RTM_DELLINK, AF_UNSPEC, "gw");
	add_link(RTM_DELLINK, AF_UNSPEC, "gw00");
	add_link(RTM_DELLINK, AF_UNSPEC, "lo");
	add_link(RTM_DELLINK, AF_UNSPEC, NULL);
	/* Of a bridge: the port was taken out, and is there still. */
	add_link(RTM_DELLINK, AF_BRIDGE, "gw0");
	add_link(RTM_NEWADDR, AF_UNSPEC, "gw0");
	assert_int_equal(news(), LINK_NOTHING);
}

static void answers(void **state)
{
	begin(state);
	add_error(QUESTION - 1, -ENODEV);
	add_error(QUESTION, -ENOBUFS);
	add_error(QUESTION, 0);
	assert_int_equal(news(), LINK_NOTHING);
	add_error(QUESTION, -ENODEV);
	assert_int_equal(news(), LINK_GONE);
}

/* Every beginning of a message says nothing, and nothing behind it is read. */
static void cut(void **state)
{
	begin(state);
	add_link(RTM_DELLINK, AF_UNSPEC, "gw0");
	add_error(QUESTION, -ENODEV);
	for (size_t n = 0; n < len; n++) {
		const uint8_t *copy = guard_page_copy(mem, n);

		if ((uintptr_t)copy % _Alignof(struct nlmsghdr) == 0)
			assert_int_equal(link_news(copy, n, QUESTION, &peer, &answer),
					 n < ((struct nlmsghdr *)mem)->nlmsg_len ? LINK_NOTHING : LINK_GONE);
		guard_page_free();
	}
}

/* A name without an end, and attributes that are longer than their message. */
static void malformed(void **state)
{
	struct nlmsghdr *nlh = (void *)mem;
	struct nlattr *attr;

	begin(state);
	add_link(RTM_DELLINK, AF_UNSPEC, "gw0");
	attr = (void *)(mem + len - MNL_ALIGN(sizeof("gw0")) - sizeof(*attr));
	assert_int_equal(mnl_attr_get_type(attr), IFLA_IFNAME);
	memcpy(mnl_attr_get_payload(attr), "gw0x", 4);
	attr->nla_len = sizeof(*attr) + 4;
	assert_int_equal(news(), LINK_NOTHING);
	attr->nla_len = 60000;
	assert_int_equal(news(), LINK_NOTHING);
	nlh->nlmsg_len = sizeof(*nlh) + 4;
	assert_int_equal(news(), LINK_NOTHING);
}

/* Adds gw0 as the answer to question `seq`, with its other end there; nsid -1: none is said. */
static void add_gw(uint32_t seq, int32_t nsid, uint32_t index)
{
	struct nlmsghdr *nlh = (void *)(mem + len);

	add_link(RTM_NEWLINK, AF_UNSPEC, "gw0");
	len = (size_t)((uint8_t *)nlh - mem);
	nlh->nlmsg_seq = seq;
	mnl_attr_put_u32(nlh, IFLA_LINK, index);
	if (nsid >= 0)
		mnl_attr_put_u32(nlh, IFLA_LINK_NETNSID, (uint32_t)nsid);
	len += MNL_ALIGN(nlh->nlmsg_len);
}

static void other_end(void **state)
{
	begin(state);
	add_gw(0, 3, 12);
	assert_int_equal(news(), LINK_THERE);
	assert_int_equal(peer.place.nsid, 3);
	assert_int_equal(peer.place.index, 12);
	assert_false(answer);
	add_gw(QUESTION, 4, 13);
	assert_int_equal(news(), LINK_THERE);
	assert_int_equal(peer.place.nsid, 4);
	assert_int_equal(peer.place.index, 13);
	assert_true(answer);
	begin(state);
	add_gw(QUESTION, -1, 5);
	assert_int_equal(news(), LINK_THERE);
	assert_int_equal(peer.place.nsid, -1);
}

static void add_flags(uint16_t type, const char *name, int index, unsigned flags)
{
	struct ifinfomsg *ifi = mnl_nlmsg_get_payload((struct nlmsghdr *)(mem + len));

	add_link(type, AF_UNSPEC, name);
	ifi->ifi_index = index;
	ifi->ifi_flags = flags;
}

/* Of interfaces that are up, the first one counts. */
static void ups(void **state)
{
	struct link_up up;

	begin(state);
	add_flags(RTM_NEWLINK, "lo", 1, IFF_UP | IFF_LOOPBACK);
	add_flags(RTM_NEWLINK, "sit0", 2, 0);
	add_flags(RTM_DELLINK, "eth1", 3, IFF_UP);
	add_error(QUESTION, -ENODEV);
	assert_false(link_find_up(mem, len, &up));
	add_flags(RTM_NEWLINK, "eth2", 4, IFF_UP);
	add_flags(RTM_NEWLINK, "eth3", 5, IFF_UP);
	assert_true(link_find_up(mem, len, &up));
	assert_int_equal(up.index, 4);
	assert_string_equal(up.name, "eth2");
	begin(state);
	add_flags(RTM_NEWLINK, "a-name-that-no-interface-can-have", 6, IFF_UP);
	assert_true(link_find_up(mem, len, &up));
	assert_int_equal(strlen(up.name), LINK_NAME_MAX - 1);
	for (size_t n = 0; n < len; n++) {
		const uint8_t *copy = guard_page_copy(mem, n);

		if ((uintptr_t)copy % _Alignof(struct nlmsghdr) == 0)
			assert_false(link_find_up(copy, n, &up));
		guard_page_free();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deleted), cmocka_unit_test(others),	cmocka_unit_test(answers),
		cmocka_unit_test(cut),	   cmocka_unit_test(malformed), cmocka_unit_test(other_end),
		cmocka_unit_test(ups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
