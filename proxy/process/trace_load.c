/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the kernel program with bpf(2) itself, without a library: the object that the compiler made is part of netgate, and
 * the kernel puts in where its structures have their fields (the "core_relos" of BPF_PROG_LOAD). It remembers
 * what it looked up for that: the first time after a boot takes some 40 ms, each further time 2.
 */
#include <arpa/inet.h>
#include <elf.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proxy/process/trace.h"
#include "proxy/process/trace_ring.h"

#define PROGRAM_NAME "netgate_trace" /* at most 15 bytes: what tc and bpftool show */
#define LICENSE	     "GPL"	     /* trace.bpf.c may be used under it; some helpers ask for it */
#define PRIORITY     1
#define REQUEST_MAX  256

/* What the compiler made of trace.bpf.c, see the Makefile. */
extern const unsigned char trace_object[];
extern const uint64_t trace_object_len;

/* Its parts. The offsets are from its beginning. */
struct section {
	char *at;
	size_t len;
};

struct program {
	char *object; /* a copy: what is left open is filled in */
	struct section code, types, more;
};

/* The program's memory, as descriptors. */
struct maps {
	int ring;
	int own; /* not to be seen by us */
};

/* .BTF.ext, as the compiler writes it; the last two are the ones that are used. */
struct btf_ext {
	uint16_t magic;
	uint8_t version, flags;
	uint32_t hdr_len;
	uint32_t func_off, func_len, line_off, line_len, core_off, core_len;
};

/* A table in it for the one section that there is: these three, then the records. */
struct btf_table {
	uint32_t record_size, section_name, n;
	char records[];
};

static long bpf_call(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* ---- the object ---- */

static struct section find_section(char *object, const char *name)
{
	const Elf64_Ehdr *elf = (const void *)object;
	const Elf64_Shdr *sections = (const void *)(object + elf->e_shoff);
	const char *names = object + sections[elf->e_shstrndx].sh_offset;

	for (int i = 0; i < elf->e_shnum; i++)
		if (strcmp(names + sections[i].sh_name, name) == 0)
			return (struct section){ object + sections[i].sh_offset, sections[i].sh_size };
	return (struct section){ 0 };
}

static bool open_object(struct program *p)
{
	p->object = malloc(trace_object_len);
	if (!p->object)
		return false;
	memcpy(p->object, trace_object, trace_object_len);
	p->code = find_section(p->object, "tc");
	p->types = find_section(p->object, ".BTF");
	p->more = find_section(p->object, ".BTF.ext");
	return p->code.len && p->types.len && p->more.len;
}

static struct btf_table *table(const struct program *p, uint32_t offset)
{
	const struct btf_ext *ext = (const void *)p->more.at;

	return (void *)(p->more.at + ext->hdr_len + offset);
}

/* Fills in what the program leaves open. A function is counted from the next instruction on. */
static void fill_in(const struct program *p, const struct maps *maps, uint32_t step)
{
	struct bpf_insn *insns = (void *)p->code.at;
	size_t n = p->code.len / sizeof(*insns);

	for (size_t i = 0; i + 1 < n; i++) {
		struct bpf_insn *insn = &insns[i];

		if (insn->code != (BPF_LD | BPF_DW | BPF_IMM))
			continue;
		if (insn->imm == TRACE_IS_RING || insn->imm == TRACE_IS_PIDNS) {
			insn->src_reg = BPF_PSEUDO_MAP_VALUE;
			insn->imm = insn->imm == TRACE_IS_RING ? maps->ring : maps->own;
		} else if (insn->imm == TRACE_IS_STEP) {
			insn->src_reg = BPF_PSEUDO_FUNC;
			insn->imm = (int32_t)(step - (uint32_t)i - 1);
		}
	}
}

/* ---- the kernel ---- */

static int load_types(const struct program *p)
{
	union bpf_attr attr = { .btf = address(p->types.at), .btf_size = (uint32_t)p->types.len };

	return (int)bpf_call(BPF_BTF_LOAD, &attr);
}

static int load_program(const struct program *p, const struct maps *maps)
{
	const struct btf_ext *ext = (const void *)p->more.at;
	struct btf_table *functions = table(p, ext->func_off), *fields = table(p, ext->core_off);
	struct bpf_func_info *function = (void *)functions->records;
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_SCHED_CLS,
				.prog_name = PROGRAM_NAME,
				.license = address(LICENSE),
				.insns = address(p->code.at),
				.insn_cnt = (uint32_t)(p->code.len / sizeof(struct bpf_insn)),
				.func_info = address(function),
				.func_info_cnt = functions->n,
				.func_info_rec_size = functions->record_size,
				.core_relos = address(fields->records),
				.core_relo_cnt = fields->n,
				.core_relo_rec_size = fields->record_size };
	int types, fd;

	if (functions->n != 2 || functions->record_size != sizeof(*function))
		return -1;
	/* In the object in bytes, for the kernel in instructions. */
	for (uint32_t i = 0; i < functions->n; i++)
		function[i].insn_off /= sizeof(struct bpf_insn);
	fill_in(p, maps, function[1].insn_off);
	types = load_types(p);
	if (types < 0)
		return -1;
	attr.prog_btf_fd = (uint32_t)types;
	fd = (int)bpf_call(BPF_PROG_LOAD, &attr);
	close(types);
	return fd;
}

/* Has it run once, in our context (first_run() of the program). */
static bool run_once(int program)
{
	char frame[ETH_HLEN] = { 0 };
	union bpf_attr attr = {
		.test = { .prog_fd = (uint32_t)program, .data_in = address(frame), .data_size_in = sizeof(frame) }
	};

	return bpf_call(BPF_PROG_TEST_RUN, &attr) == 0 && attr.test.retval == TRACE_READY;
}

static int make_map(size_t len, uint32_t flags)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_ARRAY,
				.map_name = PROGRAM_NAME,
				.map_flags = flags,
				.key_size = sizeof(uint32_t),
				.value_size = (uint32_t)len,
				.max_entries = 1 };

	return (int)bpf_call(BPF_MAP_CREATE, &attr);
}

/* From now on only the program writes to the map, and no process that has its descriptor. */
static bool freeze(int map)
{
	union bpf_attr attr = { .map_fd = (uint32_t)map };

	return bpf_call(BPF_MAP_FREEZE, &attr) == 0;
}

/* ---- the link ---- */

/* The kernel has done it, or not, when the request is sent. */
static bool request(int fd, const struct nlmsghdr *nlh)
{
	_Alignas(struct nlmsghdr) uint8_t buf[2 * REQUEST_MAX];
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	const struct nlmsghdr *answer = (const void *)buf;
	ssize_t n;

	if (sendto(fd, nlh, nlh->nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return false;
	n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	return n > 0 && mnl_nlmsg_ok(answer, (int)n) && answer->nlmsg_type == NLMSG_ERROR &&
	       mnl_nlmsg_get_payload_len(answer) >= sizeof(struct nlmsgerr) &&
	       ((const struct nlmsgerr *)mnl_nlmsg_get_payload(answer))->error == 0;
}

/*
 * As a filter of what leaves, which says nothing about any packet. It holds the program, and the link holds the filter. The
 * place for it (clsact) was made before the link was up.
 */
static bool attach(int program, uint32_t ifindex)
{
	_Alignas(struct nlmsghdr) uint8_t buf[REQUEST_MAX];
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct tcmsg *tc = mnl_nlmsg_put_extra_header(nlh, sizeof(*tc));
	struct nlattr *options;
	bool ok;

	nlh->nlmsg_type = RTM_NEWTFILTER;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
	tc->tcm_family = AF_UNSPEC;
	tc->tcm_ifindex = (int)ifindex;
	tc->tcm_parent = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS);
	tc->tcm_info = TC_H_MAKE((uint32_t)PRIORITY << 16, htons(ETH_P_ALL));
	mnl_attr_put_strz(nlh, TCA_KIND, "bpf");
	options = mnl_attr_nest_start(nlh, TCA_OPTIONS);
	mnl_attr_put_u32(nlh, TCA_BPF_FD, (uint32_t)program);
	mnl_attr_put_strz(nlh, TCA_BPF_NAME, PROGRAM_NAME);
	mnl_attr_put_u32(nlh, TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
	mnl_attr_nest_end(nlh, options);
	ok = fd >= 0 && request(fd, nlh);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* ---- all of it ---- */

static bool start(const struct maps *maps, uint32_t ifindex)
{
	struct program p = { 0 };
	int program = open_object(&p) ? load_program(&p, maps) : -1;
	bool ok = program >= 0 && run_once(program) && attach(program, ifindex);

	if (program >= 0)
		close(program);
	free(p.object);
	return ok;
}

const struct trace_ring *trace_start(uint32_t ifindex, int *fd)
{
	struct maps maps = { .ring = make_map(sizeof(struct trace_ring), BPF_F_MMAPABLE),
			     .own = make_map(TRACE_PRIVATE, 0) };
	const struct trace_ring *ring = NULL;

	if (maps.ring >= 0 && maps.own >= 0 && freeze(maps.ring) && start(&maps, ifindex))
		ring = trace_map(maps.ring);
	if (maps.own >= 0)
		close(maps.own);
	*fd = maps.ring;
	if (!ring && maps.ring >= 0) {
		close(maps.ring);
		*fd = -1;
	}
	return ring;
}
