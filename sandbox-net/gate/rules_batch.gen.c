/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes rules_batch.c from rules_text.gen.c, when netgate is built: so that a start neither parses rules nor links what does.
 *
 * libnftables makes the messages. The kernel that it speaks to is played here, an empty one, so building takes no privilege:
 * libmnl's functions that reach a socket are defined in this program, and so are sendmsg(), which gets the batch, and select().
 * A variable's value is a pattern then, and looked for in the messages: each must be found as often as the text has it.
 *
 * links: sandbox-net/gate/rules_text.gen.c
 */
#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <nftables/libnftables.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>

#include "sandbox-net/gate/rules_batch.h"
#include "sandbox-net/gate/rules_text.h"

#define BATCH_MAX  65536 /* bytes: what an offset can name */
#define TEXT_MAX   65536
#define PLACES_MAX 256

static _Noreturn void fail(const char *what, const char *detail)
{
	fprintf(stderr, "rules_batch: %s%s\n", what, detail);
	exit(1);
}

/* ---- the kernel ---- */

struct mnl_socket {
	struct nlmsghdr asked;
	bool waits; /* for the answer to it */
};

static struct mnl_socket kernel;
static _Alignas(struct nlmsghdr) uint8_t sent[BATCH_MAX];
static size_t n_sent;

struct mnl_socket *mnl_socket_open(int bus)
{
	(void)bus;
	return &kernel;
}

int mnl_socket_bind(struct mnl_socket *nl, unsigned int groups, pid_t pid)
{
	(void)nl, (void)groups, (void)pid;
	return 0;
}

int mnl_socket_close(struct mnl_socket *nl)
{
	(void)nl;
	return 0;
}

/* Only asked for flags and the size of buffers. */
int mnl_socket_get_fd(const struct mnl_socket *nl)
{
	(void)nl;
	return STDERR_FILENO;
}

unsigned int mnl_socket_get_portid(const struct mnl_socket *nl)
{
	(void)nl;
	return 0;
}

int mnl_socket_setsockopt(const struct mnl_socket *nl, int type, void *buf, socklen_t len)
{
	(void)nl, (void)type, (void)buf, (void)len;
	return 0;
}

ssize_t mnl_socket_sendto(const struct mnl_socket *nl, const void *req, size_t siz)
{
	(void)nl;
	memcpy(&kernel.asked, req, sizeof(kernel.asked));
	kernel.waits = true;
	return (ssize_t)siz;
}

/* There is nothing in the kernel: a dump is empty, and the generation is the first one. */
ssize_t mnl_socket_recvfrom(const struct mnl_socket *nl, void *buf, size_t size)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	(void)nl, (void)size;
	if (!kernel.waits) {
		errno = EAGAIN;
		return -1;
	}
	kernel.waits = false;
	nlh->nlmsg_seq = kernel.asked.nlmsg_seq;
	if ((kernel.asked.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP) {
		nlh->nlmsg_type = NLMSG_DONE;
		nlh->nlmsg_flags = NLM_F_MULTI;
		mnl_nlmsg_put_extra_header(nlh, sizeof(int));
	} else if (kernel.asked.nlmsg_type == (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETGEN)) {
		nlh->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN;
		mnl_nlmsg_put_extra_header(nlh, sizeof(struct nfgenmsg));
		mnl_attr_put_u32(nlh, NFTA_GEN_ID, htonl(1));
	} else {
		fail("libnftables asks what is not answered here", "");
	}
	return (ssize_t)nlh->nlmsg_len;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	const size_t before = n_sent;

	(void)fd, (void)flags;
	for (size_t i = 0; i < (size_t)message->msg_iovlen; i++) {
		const struct iovec *part = &message->msg_iov[i];

		if (part->iov_len > sizeof(sent) - n_sent)
			fail("the batch is too long", "");
		memcpy(sent + n_sent, part->iov_base, part->iov_len);
		n_sent += part->iov_len;
	}
	return (ssize_t)(n_sent - before);
}

/* No errors wait to be read. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): reserved ones */
int select(int n, fd_set *restrict readable, fd_set *restrict writable, fd_set *restrict except,
	   struct timeval *restrict timeout)
{
	(void)n, (void)writable, (void)except, (void)timeout;
	FD_ZERO(readable);
	return 0;
}

/* ---- variables ---- */

/* A value that nothing else in the messages is equal to, by the count of what is found. Returns its size. */
static size_t pattern(enum rules_variable variable, uint8_t value[static RULES_VALUE_MAX])
{
	const size_t size = rules_value_size(variable);

	for (size_t i = 0; i < size; i++)
		value[i] = (uint8_t)(0x5a + i);
	value[size - 2] = (uint8_t)('a' + variable);
	/* A name is a string; as 15 letters it fills what the kernel has for one. */
	if (variable == RULES_TAP)
		snprintf((char *)value, size, "name-of-link-%02u", (unsigned)variable);
	return size;
}

/* The same in nft(8) syntax. */
static void pattern_text(enum rules_variable variable, char text[static INET6_ADDRSTRLEN])
{
	uint8_t value[RULES_VALUE_MAX];
	uint32_t index;

	pattern(variable, value);
	switch (variable) {
	case RULES_GATE6:
	case RULES_SANDBOX6:
		inet_ntop(AF_INET6, value, text, INET6_ADDRSTRLEN);
		break;
	case RULES_TAP:
		memcpy(text, value, sizeof(value));
		break;
	case RULES_LINK_INDEX:
	case RULES_TAP_INDEX:
		memcpy(&index, value, sizeof(index));
		snprintf(text, INET6_ADDRSTRLEN, "%u", index);
		break;
	default:
		inet_ntop(AF_INET, value, text, INET6_ADDRSTRLEN);
	}
}

/* The variable whose name `text` begins with: the longest one. */
static enum rules_variable variable_at(const char *text)
{
	enum rules_variable found = RULES_VARIABLES;
	size_t longest = 0;

	for (unsigned i = 0; i < RULES_VARIABLES; i++) {
		const size_t n = strlen(rules_variable_names[i]);

		if (n > longest && strncmp(text, rules_variable_names[i], n) == 0) {
			longest = n;
			found = (enum rules_variable)i;
		}
	}
	if (found == RULES_VARIABLES)
		fail("no such variable: $", text);
	return found;
}

/* Appends `text` with the patterns in place of the variables, which it counts. */
static void expand(const char *text, char *out, unsigned count[static RULES_VARIABLES])
{
	size_t n = strlen(out);
	enum rules_variable variable;

	while (*text && n < TEXT_MAX - INET6_ADDRSTRLEN) {
		if (*text != '$') {
			out[n++] = *text++;
			continue;
		}
		variable = variable_at(++text);
		text += strlen(rules_variable_names[variable]);
		count[variable]++;
		pattern_text(variable, out + n);
		n += strlen(out + n);
	}
	if (*text)
		fail("a text is too long", "");
	out[n] = '\0';
}

/* ---- messages ---- */

static bool is_control(const struct nlmsghdr *nlh)
{
	return nlh->nlmsg_type == NFNL_MSG_BATCH_BEGIN || nlh->nlmsg_type == NFNL_MSG_BATCH_END;
}

/* Has libnftables make the messages of a text; they are in `sent`. */
static void compile(const char *text)
{
	struct nft_ctx *nft = nft_ctx_new(NFT_CTX_DEFAULT);

	n_sent = 0;
	if (!nft || nft_ctx_buffer_error(nft))
		fail("libnftables: out of memory", "");
	if (nft_run_cmd_from_buffer(nft, text))
		fail("", nft_ctx_get_error_buffer(nft));
	nft_ctx_free(nft);
}

/* How many messages are in `sent`, BEGIN and END aside. */
static size_t count_messages(void)
{
	size_t n = 0;

	for (size_t at = 0; at < n_sent; at += NLMSG_ALIGN(((struct nlmsghdr *)(sent + at))->nlmsg_len))
		n += !is_control((struct nlmsghdr *)(sent + at));
	return n;
}

static void put_control(uint8_t *out, size_t *len, uint16_t type)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(out + *len);
	struct nfgenmsg *nfg = mnl_nlmsg_put_extra_header(nlh, sizeof(*nfg));

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	nfg->version = NFNETLINK_V0;
	nfg->res_id = htons(NFNL_SUBSYS_NFTABLES);
	*len += nlh->nlmsg_len;
}

/* The messages in `sent` without the first `skip` ones, in a batch of their own, whatever libnftables' begins with. Returns its length. */
static size_t make_batch(size_t skip, uint8_t out[static BATCH_MAX])
{
	struct nlmsghdr *last = NULL;
	size_t len = 0;

	memset(out, 0, BATCH_MAX);
	put_control(out, &len, NFNL_MSG_BATCH_BEGIN);
	for (size_t at = 0; at < n_sent; at += NLMSG_ALIGN(((struct nlmsghdr *)(sent + at))->nlmsg_len)) {
		const struct nlmsghdr *nlh = (struct nlmsghdr *)(sent + at);

		if (is_control(nlh) || (skip && skip--))
			continue;
		last = (struct nlmsghdr *)(out + len);
		memcpy(last, nlh, nlh->nlmsg_len);
		last->nlmsg_seq = 0;
		last->nlmsg_flags &= (uint16_t)~NLM_F_ACK;
		len += NLMSG_ALIGN(nlh->nlmsg_len);
	}
	if (!last || len > BATCH_MAX - 64)
		fail("there are no messages, or too many", "");
	last->nlmsg_flags |= NLM_F_ACK;
	put_control(out, &len, NFNL_MSG_BATCH_END);
	return len;
}

/* ---- the file ---- */

/* Finds the variables, and takes their patterns out. Returns how many. */
static size_t find_places(uint8_t *batch, size_t len, const unsigned count[static RULES_VARIABLES],
			  struct rules_place *places)
{
	size_t n = 0;

	for (unsigned i = 0; i < RULES_VARIABLES; i++) {
		uint8_t value[RULES_VALUE_MAX];
		const size_t size = pattern((enum rules_variable)i, value);
		unsigned found = 0;

		for (size_t at = 0; at + size <= len; at++) {
			if (memcmp(batch + at, value, size) != 0)
				continue;
			if (n == PLACES_MAX)
				fail("too many variables", "");
			places[n++] = (struct rules_place){ .offset = (uint16_t)at, .variable = (uint8_t)i };
			memset(batch + at, 0, size);
			found++;
		}
		if (found != count[i])
			fail("not found as often as it is in the text: $", rules_variable_names[i]);
	}
	return n;
}

static void print_set(unsigned set)
{
	static _Alignas(struct nlmsghdr) uint8_t batch[BATCH_MAX];
	const struct rules_text *t = &rules_texts[set];
	unsigned count[RULES_VARIABLES] = { 0 }, before[RULES_VARIABLES] = { 0 };
	struct rules_place places[PLACES_MAX];
	static char text[TEXT_MAX];
	size_t skip = 0, len, n;

	text[0] = '\0';
	if (t->after != RULES_SETS) {
		expand(rules_texts[t->after].text, text, before);
		compile(text);
		skip = count_messages();
	}
	expand(t->text, text, count);
	compile(text);
	len = make_batch(skip, batch);
	n = find_places(batch, len, count, places);
	printf("static const _Alignas(struct nlmsghdr) uint8_t bytes_%u[] = {", set);
	for (size_t i = 0; i < len; i++)
		printf("%s0x%02x,", i % 20 ? " " : "\n\t", batch[i]);
	printf("\n};\n\nstatic const struct rules_place places_%u[] = {\n", set);
	for (size_t i = 0; i < n; i++)
		printf("\t{ %u, %u },\n", places[i].offset, places[i].variable);
	/* No array is empty. */
	printf("\t{ 0, 0 },\n};\n\n#define N_PLACES_%u %zu\n\n", set, n);
}

int main(void)
{
	puts("/* Made by rules_batch.gen. */\n#include <linux/netlink.h>\n\n#include "
	     "\"sandbox-net/gate/rules_batch.h\"\n");
	for (unsigned i = 0; i < RULES_SETS; i++)
		print_set(i);
	puts("const struct rules_batch rules_batches[RULES_SETS] = {");
	for (unsigned i = 0; i < RULES_SETS; i++)
		printf("\t{ bytes_%u, sizeof(bytes_%u), places_%u, N_PLACES_%u },\n", i, i, i, i);
	puts("};");
	return fflush(stdout) ? 1 : 0;
}
