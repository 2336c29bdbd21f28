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

static enum link_news news(void)
{
	return link_news(mem, len, QUESTION);
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
			assert_int_equal(link_news(copy, n, QUESTION),
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deleted), cmocka_unit_test(others),	cmocka_unit_test(answers),
		cmocka_unit_test(cut),	   cmocka_unit_test(malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
