/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the watch of the gate's link makes of the news, in which order they come: the kernel's socket is played here.
 * links: proxy/process/link.c
 * wraps: recvmsg sendto
 */
#include "proxy/process/link.h"

#include <errno.h>
#include <event2/event.h>
#include <libmnl/libmnl.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define NEWS_MAX 128
#define OF_G	 (-1) /* in place of a namespace's number: news of G itself */
#define UP	 (IFF_UP | IFF_LOWER_UP)

/* ---- the kernel's side ---- */

struct news {
	_Alignas(struct nlmsghdr) uint8_t buf[256];
	size_t len;
	int nsid;
	uint32_t sender; /* 0: the kernel */
	int error;	 /* in its place */
};

static struct {
	int fd; /* readable while there are news */
	struct news news[NEWS_MAX];
	size_t n, n_read;
	unsigned asked; /* questions that came */
	uint32_t seq;	/* of the last one */
	int send_error; /* for the next question */
	struct event_base *base;
	struct link_watch *watch;
	unsigned gone;
	char others[256]; /* names that were told, each with a space behind it */
} k;

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
	struct sockaddr_nl *from = message->msg_name;
	const struct news *one = &k.news[k.n_read];
	struct cmsghdr *c = CMSG_FIRSTHDR(message);
	uint64_t ignored;

	assert_int_equal(fd, k.fd);
	assert_true(flags & MSG_DONTWAIT);
	if (k.n_read == k.n) {
		(void)!read(k.fd, &ignored, sizeof(ignored));
		errno = EAGAIN;
		return -1;
	}
	k.n_read++;
	if (one->error) {
		errno = one->error;
		return -1;
	}
	*from = (struct sockaddr_nl){ .nl_family = AF_NETLINK, .nl_pid = one->sender };
	memcpy(message->msg_iov->iov_base, one->buf, one->len);
	if (one->nsid == OF_G) {
		message->msg_controllen = 0;
	} else {
		*c = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_NETLINK, NETLINK_LISTEN_ALL_NSID };
		memcpy(CMSG_DATA(c), &one->nsid, sizeof(int));
	}
	return (ssize_t)one->len;
}

ssize_t __wrap_sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *sa, socklen_t len);
ssize_t __wrap_sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *sa, socklen_t len)
{
	const struct nlmsghdr *nlh = buf;

	(void)sa, (void)len;
	assert_int_equal(fd, k.fd);
	assert_true(flags & MSG_DONTWAIT);
	assert_int_equal(nlh->nlmsg_type, RTM_GETLINK);
	if (k.send_error) {
		errno = k.send_error;
		k.send_error = 0;
		return -1;
	}
	k.asked++;
	k.seq = nlh->nlmsg_seq;
	return (ssize_t)n;
}

static struct news *put(int nsid)
{
	const uint64_t one = 1;

	assert_true(k.n < NEWS_MAX);
	assert_int_equal(write(k.fd, &one, sizeof(one)), sizeof(one));
	k.news[k.n] = (struct news){ .nsid = nsid };
	return &k.news[k.n++];
}

/* An interface with this index in the namespace with this number. */
static struct news *put_link(int nsid, int index, const char *name, unsigned flags)
{
	struct news *one = put(nsid);
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(one->buf);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));

	nlh->nlmsg_type = RTM_NEWLINK;
	ifi->ifi_index = index;
	ifi->ifi_flags = flags;
	mnl_attr_put_strz(nlh, IFLA_IFNAME, name);
	one->len = nlh->nlmsg_len;
	return one;
}

/* gw0, the other end of which is there; `seq`: it is the answer to this question. */
static void put_gw0(int nsid, int index, unsigned flags, uint32_t seq)
{
	struct news *one = put_link(OF_G, 2, "gw0", flags);
	struct nlmsghdr *nlh = (void *)one->buf;

	nlh->nlmsg_seq = seq;
	mnl_attr_put_u32(nlh, IFLA_LINK, (uint32_t)index);
	mnl_attr_put_u32(nlh, IFLA_LINK_NETNSID, (uint32_t)nsid);
	one->len = nlh->nlmsg_len;
}

static void put_gone(uint16_t type)
{
	((struct nlmsghdr *)put_link(OF_G, 2, "gw0", 0)->buf)->nlmsg_type = type;
}

static void put_no_device(uint32_t seq)
{
	struct news *one = put(OF_G);
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(one->buf);
	struct nlmsgerr *e = mnl_nlmsg_put_extra_header(nlh, sizeof(*e));

	nlh->nlmsg_type = NLMSG_ERROR;
	nlh->nlmsg_seq = seq;
	e->error = -ENODEV;
	one->len = nlh->nlmsg_len;
}

/* ---- the watch ---- */

static void on_gone(void *arg)
{
	(void)arg;
	k.gone++;
}

static void on_other(void *arg, const char *name)
{
	const size_t len = strlen(k.others);

	(void)arg;
	snprintf(k.others + len, sizeof(k.others) - len, "%s ", name);
}

static int begin(void **state)
{
	struct link_watch_config config = { .tap = "tap0", .gone = on_gone, .other = on_other };

	(void)state;
	memset(&k, 0, sizeof(k));
	config.fd = k.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	k.base = event_base_new();
	k.watch = link_watch_new(k.base, &config);
	return k.watch ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	link_watch_free(k.watch);
	event_base_free(k.base);
	return close(k.fd);
}

/* All news so far are read. */
static void hear(void)
{
	while (k.n_read < k.n && !k.gone)
		event_base_loop(k.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	event_base_loop(k.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

/* Whether the watch would ask by itself, without any news. */
static bool asks_again(void)
{
	return event_base_get_num_events(k.base, EVENT_BASE_COUNT_ADDED) == 2;
}

static void wait_for_question(void)
{
	const unsigned before = k.asked;

	assert_true(asks_again());
	while (k.asked == before && asks_again())
		event_base_loop(k.base, EVLOOP_ONCE);
	assert_int_equal(k.asked, before + 1);
}

/* The other end is there, and the watch knows. */
static void settle(int nsid, int index)
{
	link_watch_settle(k.watch);
	assert_int_equal(k.asked, 1);
	put_gw0(nsid, index, UP, k.seq);
	hear();
}

static void others_in_the_sandbox(void **state)
{
	(void)state;
	put_link(3, 4, "early", UP);
	put_link(4, 4, "elsewhere", UP);
	hear();
	assert_int_equal(k.asked, 0);
	settle(3, 2);
	assert_string_equal(k.others, "early ");
	put_link(3, 2, "eth0", UP);
	put_link(3, 4, "early", UP);
	put_link(3, 9, "tap0", UP);
	put_link(3, 6, "down", 0);
	put_link(3, 5, "late", UP);
	hear();
	assert_int_equal(k.asked, 2);
	put_link(3, 7, "later", UP); /* than the question: the answer says nothing of it */
	put_gw0(3, 2, UP, k.seq);
	hear();
	assert_string_equal(k.others, "early late ");
	assert_int_equal(k.asked, 3);
	put_gw0(3, 2, UP, k.seq);
	hear();
	assert_string_equal(k.others, "early late later ");
	assert_int_equal(k.gone, 0);
}

/* A namespace that the end was in is gone, and its number the sandbox's: what was up there was the end itself. */
static void where_the_end_has_been(void **state)
{
	(void)state;
	put_link(1, 5, "before", UP);
	put_gw0(1, 5, UP, 0);
	put_link(1, 5, "after", UP);
	put_gw0(2, 8, 0, 0);
	put_link(2, 8, "after", UP);
	hear();
	settle(1, 3);
	assert_int_equal(k.asked, 1);
	assert_string_equal(k.others, "");
	/* Once it has settled, whatever comes there is no end of ours. */
	put_link(1, 5, "new", UP);
	hear();
	put_gw0(1, 3, UP, k.seq);
	hear();
	assert_string_equal(k.others, "new ");
	assert_int_equal(k.gone, 0);
}

/* Each namespace has room for some suspects of its own, so that no other one's take the place of the sandbox's. */
static void suspects_are_limited(void **state)
{
	char name[16];

	(void)state;
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "x%d", i);
		put_link(2, 10 + i, name, UP);
	}
	put_link(3, 4, "other", UP);
	hear();
	settle(3, 2);
	assert_string_equal(k.others, "other ");
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 8; i++)
			put_link(3, 100 + 8 * round + i, "o", UP);
		hear();
		put_gw0(3, 2, UP, k.seq);
		hear();
	}
	assert_int_equal(strlen(k.others), strlen("other ") + (LINK_OTHERS_MAX - 1) * strlen("o "));
}

static void asks_while_it_is_down(void **state)
{
	(void)state;
	settle(3, 2);
	assert_false(asks_again());
	put_gw0(3, 2, IFF_UP, 0);
	hear();
	for (int i = 0; i < 2; i++) {
		wait_for_question();
		assert_false(asks_again()); /* before there is an answer */
		put_gw0(3, 2, IFF_UP, k.seq);
		hear();
	}
	wait_for_question();
	put_gw0(3, 2, UP, k.seq);
	hear();
	assert_false(asks_again());
	assert_int_equal(k.gone, 0);
}

static void ends_where_it_was_moved(void **state)
{
	(void)state;
	settle(3, 2);
	put_gw0(3, 2, IFF_UP, 0);
	hear();
	wait_for_question();
	put_gw0(5, 2, IFF_UP, k.seq);
	put_gone(RTM_DELLINK);
	hear();
	assert_int_equal(k.gone, 1);
	assert_int_equal(event_base_get_num_events(k.base, EVENT_BASE_COUNT_ADDED), 0);
}

static void ends_with_the_link(void **state)
{
	(void)state;
	settle(3, 2);
	put_gone(RTM_DELLINK);
	hear();
	assert_int_equal(k.gone, 1);
}

static void ends_by_the_answer(void **state)
{
	(void)state;
	settle(3, 2);
	put(OF_G)->error = ENOBUFS;
	hear();
	assert_int_equal(k.asked, 2);
	/* The answer is lost, too. */
	put(OF_G)->error = ENOBUFS;
	hear();
	assert_int_equal(k.asked, 3);
	put_no_device(k.seq - 1);
	hear();
	assert_int_equal(k.gone, 0);
	put_no_device(k.seq);
	hear();
	assert_int_equal(k.gone, 1);
}

/* What can't be asked now is asked a little later. */
static void question_that_is_not_sent(void **state)
{
	(void)state;
	k.send_error = ENOBUFS;
	link_watch_settle(k.watch);
	assert_int_equal(k.asked, 0);
	wait_for_question();
	put_gw0(3, 2, IFF_UP, k.seq);
	hear();
	k.send_error = ENOBUFS;
	while (k.send_error)
		event_base_loop(k.base, EVLOOP_ONCE);
	wait_for_question();
	put_no_device(k.seq);
	hear();
	assert_int_equal(k.gone, 1);
}

static void others_processes_are_not_heard(void **state)
{
	struct news *one;

	(void)state;
	settle(3, 2);
	put_gone(RTM_DELLINK);
	k.news[k.n - 1].sender = 1234;
	one = put_link(3, 4, "forged", UP);
	one->sender = 1234;
	hear();
	assert_int_equal(k.asked, 1);
	assert_int_equal(k.gone, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(others_in_the_sandbox, begin, end),
		cmocka_unit_test_setup_teardown(where_the_end_has_been, begin, end),
		cmocka_unit_test_setup_teardown(suspects_are_limited, begin, end),
		cmocka_unit_test_setup_teardown(asks_while_it_is_down, begin, end),
		cmocka_unit_test_setup_teardown(ends_where_it_was_moved, begin, end),
		cmocka_unit_test_setup_teardown(ends_with_the_link, begin, end),
		cmocka_unit_test_setup_teardown(ends_by_the_answer, begin, end),
		cmocka_unit_test_setup_teardown(question_that_is_not_sent, begin, end),
		cmocka_unit_test_setup_teardown(others_processes_are_not_heard, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
