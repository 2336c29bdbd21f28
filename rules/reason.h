/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a verdict is what it is: one word, the same in the log, in what the
 * sandbox sees and in the summary. The list is documented in docs/records.md.
 */
#ifndef RULES_REASON_H
#define RULES_REASON_H

/* clang-format off */
#define REASONS \
	/* allowed */ \
	X(RULE, "rule") \
	X(AUDIT_MODE, "audit_mode") \
	/* denied by the policy or by what was seen */ \
	X(NOT_ALLOWED, "not_allowed") \
	X(DENIED_BY_RULE, "denied_by_rule") \
	X(PORT_NOT_ALLOWED, "port_not_allowed") \
	X(NO_NAME, "no_name") \
	X(BAD_NAME, "bad_name") \
	X(NAME_MISMATCH, "name_mismatch") \
	X(PRIVATE_ADDRESS, "private_address") \
	X(NOT_TLS, "not_tls") \
	X(NOT_HTTP, "not_http") \
	X(TLS_MALFORMED, "tls_malformed") \
	X(HTTP_MALFORMED, "http_malformed") \
	X(HOST_MISMATCH, "host_mismatch") \
	X(SOCKS_MALFORMED, "socks_malformed") \
	X(SOCKS_UNSUPPORTED, "socks_unsupported") \
	X(UPGRADE, "upgrade") \
	X(DNS_TYPE, "dns_type") \
	X(DNS_MALFORMED, "dns_malformed") \
	X(HELLO_TIMEOUT, "hello_timeout") \
	X(CLIENT_GONE, "client_gone") \
	X(LIMIT_NAMES, "limit_names") \
	X(LIMIT_CONNECTIONS, "limit_connections") \
	X(LIMIT_RATE, "limit_rate") \
	X(LIMIT_UPLOAD, "limit_upload") \
	X(LOG_UNAVAILABLE, "log_unavailable") \
	X(INTERNAL_ERROR, "internal_error") \
	/* packets that never became a connection */ \
	X(UDP, "udp") \
	X(QUIC, "quic") \
	X(ICMP, "icmp") \
	X(IP_PROTOCOL, "ip_protocol") \
	X(SPOOFED, "spoofed") \
	X(BOGUS_DESTINATION, "bogus_destination") \
	X(MALFORMED, "malformed") \
	X(FRAME, "frame") \
	X(HALF_OPEN, "half_open") \
	X(DNS_OVERFLOW, "dns_overflow") \
	/* allowed, but failed */ \
	X(CONNECTED, "connected") \
	X(DNS_FAILED, "dns_failed") \
	X(CONNECT_FAILED, "connect_failed")
/* clang-format on */

enum reason {
	REASON_NONE = 0,
#define X(id, word) REASON_##id,
	REASONS
#undef X
		REASON_COUNT
};

/* The word of a reason, as it stands in records. */
const char *reason_word(enum reason reason);

#endif
