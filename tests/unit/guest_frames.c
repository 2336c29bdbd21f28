/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "tests/unit/guest_frames.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

static void add(struct frame *f, const void *p, size_t n)
{
	memcpy(f->b + f->len, p, n);
	f->len += n;
}

static void add_addr(struct frame *f, const char *text)
{
	uint8_t b[16];

	if (inet_pton(strchr(text, ':') ? AF_INET6 : AF_INET, text, b) != 1)
		abort();
	add(f, b, strchr(text, ':') ? 16 : 4);
}

uint16_t frame_checksum(const uint8_t *src, const uint8_t *dst, size_t addr_len, uint8_t proto, const uint8_t *p,
			size_t len)
{
	uint32_t sum = proto + (uint32_t)len;

	for (size_t i = 0; i < addr_len; i++)
		sum += (uint32_t)(src[i] + dst[i]) << (i % 2 ? 0 : 8);
	for (size_t i = 0; i < len; i++)
		sum += (uint32_t)p[i] << (i % 2 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

struct frame frame_arp(const char *own, const char *target)
{
	struct frame f = { .len = 0 };

	add(&f, "\xff\xff\xff\xff\xff\xff\2\0\0\0\0\2\x08\x06\0\1\x08\0\6\4\0\1\2\0\0\0\0\2", 28);
	add_addr(&f, own);
	add(&f, "\0\0\0\0\0\0", 6);
	add_addr(&f, target);
	return f;
}

struct frame frame_solicit(const char *src, const char *dst, const char *target)
{
	struct frame f = { .len = 0 };
	uint16_t sum;

	add(&f, "\x33\x33\xff\0\0\1\2\0\0\0\0\2\x86\xdd\x60\0\0\0\0\x20\x3a\xff", 22);
	add_addr(&f, src);
	add_addr(&f, dst);
	add(&f, "\x87\0\0\0\0\0\0\0", 8);
	add_addr(&f, target);
	add(&f, "\1\1\2\0\0\0\0\2", 8);
	sum = frame_checksum(f.b + 22, f.b + 38, 16, 58, f.b + 54, 32);
	f.b[56] = (uint8_t)(sum >> 8);
	f.b[57] = (uint8_t)sum;
	return f;
}

struct frame frame_dhcp(const char *src, const char *dst, const uint8_t *payload, size_t len)
{
	const size_t total = 28 + len, udp = 8 + len;
	struct frame f = { .len = 0 };

	add(&f, "\xff\xff\xff\xff\xff\xff\2\0\0\0\0\2\x08\0\x45\0", 16);
	add(&f, (uint8_t[]){ (uint8_t)(total >> 8), (uint8_t)total, 0, 0, 0x40, 0, 64, 17, 0, 0 }, 10);
	add_addr(&f, src);
	add_addr(&f, dst);
	add(&f, (uint8_t[]){ 0, 68, 0, 67, (uint8_t)(udp >> 8), (uint8_t)udp, 0, 0 }, 8);
	add(&f, payload, len);
	return f;
}
