/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of a guest, for tests. */
#ifndef TESTS_UNIT_GUEST_FRAMES_H
#define TESTS_UNIT_GUEST_FRAMES_H

#include <stddef.h>
#include <stdint.h>

struct frame {
	uint8_t b[2000];
	size_t len;
};

/* An ARP request of the guest's MAC. Addresses are texts. */
struct frame frame_arp(const char *own, const char *target);

/* A neighbour solicitation of the guest's MAC, with a right checksum, for `target`; `src` may be "::". */
struct frame frame_solicit(const char *src, const char *dst, const char *target);

/* A datagram from port 68 to 67. */
struct frame frame_dhcp(const char *src, const char *dst, const uint8_t *payload, size_t len);

/* The RFC 1071 sum over a pseudo header and `len` bytes; 0 over something that has a right checksum in it. */
uint16_t frame_checksum(const uint8_t *src, const uint8_t *dst, size_t addr_len, uint8_t proto, const uint8_t *p,
			size_t len);

#endif
