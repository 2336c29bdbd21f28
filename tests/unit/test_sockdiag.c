/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of asking the kernel for a socket's inode: the bytes, and the real thing on loopback.
 * links: proxy/process/sockdiag.c base/addr.c
 */
#include "proxy/process/sockdiag.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct answer {
	struct nlmsghdr nlh;
	struct inet_diag_msg msg;
};

static struct sockdiag_query query(int protocol)
{
	return (struct sockdiag_query){ .protocol = (uint8_t)protocol,
					.local = { addr_v4(0x0ac80002), 41022 },
					.remote = { addr_v4(0xc6120007), 443 },
					.ifindex = 2,
					.seq = 77 };
}

static struct answer answer_to(const struct sockdiag_query *q)
{
	return (struct answer){
		.nlh = { .nlmsg_len = sizeof(struct answer), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_seq = q->seq },
		.msg = { .id = { .idiag_sport = htons(q->local.port), .idiag_dport = htons(q->remote.port) },
			 .idiag_inode = 4242 }
	};
}

static void requests(void **state)
{
	_Alignas(struct nlmsghdr) uint8_t buf[SOCKDIAG_MAX];
	const struct nlmsghdr *nlh = (void *)buf;
	const struct inet_diag_req_v2 *req = (void *)(buf + NLMSG_HDRLEN);
	struct sockdiag_query q = query(IPPROTO_TCP);

	(void)state;
	assert_int_equal(sockdiag_request(&q, buf), NLMSG_HDRLEN + sizeof(*req));
	assert_int_equal(nlh->nlmsg_flags, NLM_F_REQUEST);
	assert_int_equal(nlh->nlmsg_seq, 77);
	assert_int_equal(req->sdiag_family, AF_INET);
	assert_int_equal(req->sdiag_protocol, IPPROTO_TCP);
	assert_int_equal(ntohs(req->id.idiag_sport), 41022);
	assert_int_equal(ntohs(req->id.idiag_dport), 443);
	assert_int_equal(ntohl(req->id.idiag_src[0]), 0x0ac80002);
	assert_int_equal(ntohl(req->id.idiag_dst[0]), 0xc6120007);
	assert_int_equal(req->id.idiag_if, 2);
	q = query(IPPROTO_UDP);
	sockdiag_request(&q, buf);
	assert_int_equal(ntohs(req->id.idiag_sport), 443);
	assert_int_equal(ntohl(req->id.idiag_dst[0]), 0x0ac80002);
}

static void answers(void **state)
{
	struct sockdiag_query tcp = query(IPPROTO_TCP), udp = query(IPPROTO_UDP);
	struct answer a = answer_to(&tcp);
	uint32_t inode = 0;

	(void)state;
	assert_int_equal(sockdiag_answer(&tcp, &a, sizeof(a), &inode), 0);
	assert_int_equal(inode, 4242);
	for (size_t len = 0; len < sizeof(a); len++)
		assert_int_equal(sockdiag_answer(&tcp, &a, len, &inode), -EBADMSG);
	a.nlh.nlmsg_len = NLMSG_HDRLEN + sizeof(a.msg) - 4;
	assert_int_equal(sockdiag_answer(&tcp, &a, sizeof(a), &inode), -EBADMSG);

	a = answer_to(&tcp);
	a.nlh.nlmsg_seq = 76;
	assert_int_equal(sockdiag_answer(&tcp, &a, sizeof(a), &inode), -EAGAIN);
	a = answer_to(&tcp);
	a.nlh.nlmsg_type = SOCK_DIAG_BY_FAMILY + 1;
	assert_int_equal(sockdiag_answer(&tcp, &a, sizeof(a), &inode), -EBADMSG);

	/* A listener, and a connected and an unconnected datagram socket. */
	a = answer_to(&tcp);
	a.msg.id.idiag_dport = 0;
	assert_int_equal(sockdiag_answer(&tcp, &a, sizeof(a), &inode), -ENOENT);
	assert_int_equal(sockdiag_answer(&udp, &a, sizeof(a), &inode), 0);
	a.msg.id.idiag_sport = htons(1);
	assert_int_equal(sockdiag_answer(&udp, &a, sizeof(a), &inode), -ENOENT);
	/* What is left of a closed one. */
	a = answer_to(&tcp);
	a.msg.idiag_inode = 0;
	assert_int_equal(sockdiag_answer(&tcp, &a, sizeof(a), &inode), -ENOENT);
}

static void errors(void **state)
{
	struct {
		struct nlmsghdr nlh;
		struct nlmsgerr error;
	} e = { .nlh = { .nlmsg_len = sizeof(e), .nlmsg_type = NLMSG_ERROR, .nlmsg_seq = 77 }, .error.error = -ENOENT };
	struct sockdiag_query q = query(IPPROTO_TCP);
	uint32_t inode = 0;

	(void)state;
	assert_int_equal(sockdiag_answer(&q, &e, sizeof(e), &inode), -ENOENT);
	e.error.error = -EPERM;
	assert_int_equal(sockdiag_answer(&q, &e, sizeof(e), &inode), -EPERM);
	/* An acknowledgement was not asked for. */
	e.error.error = 0;
	assert_int_equal(sockdiag_answer(&q, &e, sizeof(e), &inode), -EBADMSG);
	e.nlh.nlmsg_len = NLMSG_HDRLEN;
	assert_int_equal(sockdiag_answer(&q, &e, NLMSG_HDRLEN, &inode), -EBADMSG);
}

static uint32_t inode_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint32_t)st.st_ino;
}

static struct endpoint name_of(int fd, int (*get)(int, struct sockaddr *, socklen_t *))
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	struct endpoint e;

	assert_int_equal(get(fd, (struct sockaddr *)&ss, &len), 0);
	assert_int_equal(endpoint_from_sockaddr((struct sockaddr *)&ss, &e), 0);
	return e;
}

static int get_name(int fd, struct sockaddr *sa, socklen_t *len)
{
	return getsockname(fd, sa, len);
}

/* A client socket of each kind, found by its addresses, and not found when it is closed. */
static void real(int family, int type, bool connected)
{
	const char *any = family == AF_INET ? "127.0.0.1" : "::1";
	int server = socket(family, type | SOCK_CLOEXEC, 0), client = socket(family, type | SOCK_CLOEXEC, 0);
	struct sockdiag_query q = { .protocol = type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP, .seq = 1 };
	struct endpoint loopback = { .port = 0 };
	struct sockaddr_storage ss;
	int fd = sockdiag_open();
	uint32_t inode = 0;
	socklen_t len;

	assert_true(server >= 0 && client >= 0 && fd >= 0);
	assert_int_equal(addr_parse(any, strlen(any), &loopback.addr), 0);
	len = endpoint_to_sockaddr(&loopback, &ss);
	assert_int_equal(bind(server, (struct sockaddr *)&ss, len), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(server, 1), 0);
	q.remote = name_of(server, get_name);
	len = endpoint_to_sockaddr(&q.remote, &ss);
	if (connected)
		assert_int_equal(connect(client, (struct sockaddr *)&ss, len), 0);
	else
		assert_int_equal(sendto(client, "x", 1, 0, (struct sockaddr *)&ss, len), 1);
	q.local = name_of(client, get_name);
	q.local.addr = loopback.addr;
	assert_int_equal(sockdiag_inode(fd, &q, &inode), 0);
	assert_int_equal(inode, inode_of(client));
	close(client);
	q.seq++;
	assert_int_equal(sockdiag_inode(fd, &q, &inode), -ENOENT);
	close(server);
	close(fd);
}

static void real_sockets(void **state)
{
	(void)state;
	real(AF_INET, SOCK_STREAM, true);
	real(AF_INET6, SOCK_STREAM, true);
	real(AF_INET, SOCK_DGRAM, true);
	real(AF_INET, SOCK_DGRAM, false);
	real(AF_INET6, SOCK_DGRAM, true);
	real(AF_INET6, SOCK_DGRAM, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests),
		cmocka_unit_test(answers),
		cmocka_unit_test(errors),
		cmocka_unit_test(real_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
