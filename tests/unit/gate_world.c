/* SPDX-License-Identifier: Apache-2.0 */
/* The world of the gate's tests: namespaces, packets made by hand, and what the gate logged. */
#include "tests/unit/gate_world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/addr.h"
#include "base/clock.h"
#include "proxy/audit/nflog.h"
#include "proxy/process/counters.h"

void world_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
	_exit(1);
}

void world_check_eq(const char *file, int line, const char *what, long long got, long long want)
{
	if (got == want)
		return;
	fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", file, line, what, got, want);
	_exit(1);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* Becomes an ordinary user in a user namespace of its own. */
static void enter_own_userns(void)
{
	char map[64];

	if (geteuid() == 0) {
		CHECK_EQ(setgroups(0, NULL), 0);
		CHECK_EQ(setresgid(WORLD_NOBODY, WORLD_NOBODY, WORLD_NOBODY), 0);
		CHECK_EQ(setresuid(WORLD_NOBODY, WORLD_NOBODY, WORLD_NOBODY), 0);
		/* Or /proc/self would belong to root. */
		CHECK_EQ(prctl(PR_SET_DUMPABLE, 1), 0);
	}
	snprintf(map, sizeof(map), "0 %u 1", (unsigned)geteuid());
	CHECK_EQ(unshare(CLONE_NEWUSER), 0);
	write_file("/proc/self/setgroups", "deny");
	write_file("/proc/self/uid_map", map);
	write_file("/proc/self/gid_map", map);
}

/* S: an empty network namespace that a nested user namespace owns. */
static int make_sandbox(void)
{
	int ready[2], fd;
	char path[64], c;
	pid_t pid;

	CHECK_EQ(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK_EQ(unshare(CLONE_NEWUSER | CLONE_NEWNET), 0);
		CHECK_EQ(write(ready[1], "1", 1), 1);
		for (;;)
			pause();
	}
	close(ready[1]);
	CHECK_EQ(read(ready[0], &c, 1), 1);
	close(ready[0]);
	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	return fd;
}

bool world_possible(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(unshare(CLONE_NEWUSER | CLONE_NEWNET) ? 1 : 0);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

const struct gate_tap world_tap = { .name = "tap0" };

static _Noreturn void live(bool rootless, bool tap, void (*scenario)(struct world *w), int parent)
{
	struct world w = { .parent = parent };
	struct err err = { "" };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (rootless)
		enter_own_userns();
	w.s_netns = make_sandbox();
	gate_plan_usual(&w.plan);
	w.plan.tap = tap ? &world_tap : NULL;
	if (gate_build(w.s_netns, &w.plan, &w.gate, &err))
		world_fail(__FILE__, __LINE__, err.text);
	CHECK_EQ(setns(w.s_netns, CLONE_NEWNET), 0);
	w.eth = (int)if_nametoindex(GATE_SANDBOX_LINK);
	w.packet = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(w.packet >= 0);
	scenario(&w);
	_exit(0);
}

static int wait_child(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1;
}

int world_run(bool rootless, bool tap, void (*scenario)(struct world *w), void (*outside)(int sock))
{
	int sock[2], failed;
	pid_t inside, beside;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock))
		return 1;
	inside = fork();
	if (inside == 0) {
		close(sock[0]);
		live(rootless, tap, scenario, sock[1]);
	}
	close(sock[1]);
	beside = outside ? fork() : -1;
	if (beside == 0) {
		if (rootless && geteuid() == 0)
			CHECK_EQ(setresuid(WORLD_NOBODY, WORLD_NOBODY, WORLD_NOBODY), 0);
		outside(sock[0]);
		_exit(0);
	}
	close(sock[0]);
	failed = wait_child(inside);
	return failed + (outside ? wait_child(beside) : 0);
}

static bool may_everybody(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && (st.st_mode & 0006) == 0006;
}

void world_test(void **state)
{
	const struct world_scenario *s = *state;

	if (!world_possible() || (!s->rootless && geteuid() != 0)) {
		print_message("skipped: namespaces can't be made here\n");
		skip();
	}
	if (s->tap && s->rootless && geteuid() == 0 && !may_everybody("/dev/net/tun")) {
		print_message("skipped: /dev/net/tun is root's alone\n");
		skip();
	}
	assert_int_equal(world_run(s->rootless, s->tap, s->inside, s->outside), 0);
}

pid_t world_fork(void (*work)(struct world *w), struct world *w)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		work(w);
		_exit(0);
	}
	return pid;
}

bool world_next_drop(struct world *w, int ms, struct world_drop *drop)
{
	struct pollfd pfd = { .fd = w->gate.fds[HANDOFF_NFLOG], .events = POLLIN };
	struct nflog_packet packet;
	uint8_t buf[16384];
	struct reader r;
	ssize_t n;

	if (poll(&pfd, 1, ms) <= 0)
		return false;
	n = recv(pfd.fd, buf, sizeof(buf), 0);
	CHECK(n > 0);
	r = reader_over(buf, (size_t)n);
	CHECK_EQ(nflog_next(&r, &packet), NFLOG_PACKET);
	CHECK(packet.prefix_len < sizeof(drop->prefix) && packet.payload_len <= sizeof(drop->ip));
	memcpy(drop->prefix, packet.prefix, packet.prefix_len);
	drop->prefix[packet.prefix_len] = '\0';
	memcpy(drop->ip, packet.payload, packet.payload_len);
	drop->len = packet.payload_len;
	/* Each packet comes in a message of its own. */
	CHECK_EQ(nflog_next(&r, &packet), NFLOG_END);
	return true;
}

void world_check_drop(struct world *w, const char *prefix, const char *dst)
{
	struct world_drop drop;
	struct addr want;
	bool is4;

	CHECK_EQ(addr_parse(dst, strlen(dst), &want), 0);
	is4 = want.family == ADDR_V4;
	CHECK(world_next_drop(w, 2000, &drop));
	if (strcmp(drop.prefix, prefix))
		world_fail(prefix, 0, drop.prefix);
	CHECK_EQ(drop.ip[0] >> 4, want.family);
	CHECK_EQ(memcmp(drop.ip + (is4 ? 16 : 24), want.b, addr_size(&want)), 0);
}

void world_check_no_drop(struct world *w)
{
	struct world_drop drop;

	if (world_next_drop(w, 0, &drop))
		world_fail("logged", (int)drop.len, drop.prefix);
}

void world_check_refused(int fd, int error)
{
	struct pollfd pfd = { .fd = fd };
	int got = 0;
	socklen_t len = sizeof(got);

	CHECK_EQ(poll(&pfd, 1, 500), 1);
	CHECK_EQ(getsockopt(fd, SOL_SOCKET, SO_ERROR, &got, &len), 0);
	CHECK_EQ(got, error);
	close(fd);
}

void world_check_counters(struct world *w, const uint64_t want[GATE_COUNTER_COUNT])
{
	static const char *const names[] = {
#define X(id, name) [GATE_COUNTER_##id] = name,
		GATE_COUNTERS
#undef X
	};
	uint64_t packets[GATE_COUNTER_COUNT], bytes[GATE_COUNTER_COUNT];

	CHECK_EQ(counters_read(w->gate.fds[HANDOFF_NFT], packets, bytes), 0);
	for (int i = 0; i < GATE_COUNTER_COUNT; i++)
		world_check_eq(__FILE__, __LINE__, names[i], (long long)packets[i], (long long)want[i]);
}

void world_wait(int fd, short events)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	CHECK_EQ(poll(&pfd, 1, 2000), 1);
}

static struct endpoint endpoint_of(const char *text)
{
	struct endpoint e;

	CHECK_EQ(endpoint_parse(text, strlen(text), 0, &e), 0);
	return e;
}

int world_connect(int type, int protocol, const char *to)
{
	struct endpoint e = endpoint_of(to);
	struct sockaddr_storage ss;
	socklen_t len = endpoint_to_sockaddr(&e, &ss);
	int fd = socket(ss.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);

	CHECK(fd >= 0);
	CHECK(connect(fd, (struct sockaddr *)&ss, len) == 0 || errno == EINPROGRESS);
	return fd;
}

int world_accept(struct world *w, const char *to)
{
	struct endpoint want = endpoint_of(to), got;
	bool is4 = want.addr.family == ADDR_V4;
	int listener = w->gate.fds[is4 ? HANDOFF_TCP4 : HANDOFF_TCP6];
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	int fd;

	world_wait(listener, POLLIN);
	fd = accept4(listener, (struct sockaddr *)&ss, &len, SOCK_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_EQ(endpoint_from_sockaddr((struct sockaddr *)&ss, &got), 0);
	want.addr = endpoint_of(is4 ? GATE_SANDBOX4 : GATE_SANDBOX6).addr;
	CHECK(addr_equal(&got.addr, &want.addr));
	len = sizeof(ss);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&ss, &len), 0);
	CHECK_EQ(endpoint_from_sockaddr((struct sockaddr *)&ss, &got), 0);
	want = endpoint_of(to);
	CHECK(addr_equal(&got.addr, &want.addr));
	CHECK_EQ(got.port, want.port);
	return fd;
}

static uint16_t checksum(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i += 2)
		sum += (uint32_t)(p[i] << 8 | p[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void put16(uint8_t *p, size_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

void world_send_frame(struct world *w, const uint8_t mac[static 6], uint16_t ethertype, const uint8_t *packet,
		      size_t len)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ethertype), .sll_ifindex = w->eth, .sll_halen = 6
	};

	memcpy(to.sll_addr, mac, 6);
	CHECK_EQ(sendto(w->packet, packet, len, 0, (struct sockaddr *)&to, sizeof(to)), len);
}

static void send_packet(struct world *w, uint16_t ethertype, const uint8_t *packet, size_t len)
{
	static const uint8_t mac[] = { GATE_MAC_BYTES };

	world_send_frame(w, mac, ethertype, packet, len);
}

void world_send_v4(struct world *w, const struct world_v4 *p)
{
	size_t header = 20u + p->options;
	uint8_t packet[1500] = { (uint8_t)(0x40 | header / 4) };

	put16(packet + 2, header + p->len);
	put16(packet + 6, p->frag);
	packet[8] = 64;
	packet[9] = p->proto;
	memcpy(packet + 12, endpoint_of(p->src).addr.b, 4);
	memcpy(packet + 16, endpoint_of(p->dst).addr.b, 4);
	memset(packet + 20, 1, p->options);
	put16(packet + 10, checksum(packet, header));
	memcpy(packet + header, p->payload, p->len);
	send_packet(w, ETH_P_IP, packet, header + p->len);
}

void world_send_v6(struct world *w, const struct world_v6 *p)
{
	uint8_t packet[1500] = { 0x60 };

	put16(packet + 4, p->len);
	packet[6] = p->next;
	packet[7] = 64;
	memcpy(packet + 8, endpoint_of(p->src).addr.b, 16);
	memcpy(packet + 24, endpoint_of(p->dst).addr.b, 16);
	memcpy(packet + 40, p->payload, p->len);
	send_packet(w, ETH_P_IPV6, packet, 40 + p->len);
}

void world_tcp(uint8_t header[static 20], uint16_t sport, uint16_t dport, uint8_t flags)
{
	memset(header, 0, 20);
	put16(header, sport);
	put16(header + 2, dport);
	header[12] = 5 << 4;
	header[13] = flags;
}

void world_udp(uint8_t header[static 8], uint16_t sport, uint16_t dport, size_t payload)
{
	put16(header, sport);
	put16(header + 2, dport);
	put16(header + 4, 8 + payload);
	put16(header + 6, 0);
}
