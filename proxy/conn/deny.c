/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a denial looks to the sandbox: an answer in the client's own protocol,
 * at once, so that nobody waits for a time-out and the reason can be read. It never says what would allow
 * it: that is for whoever decides, and the sandbox is not to talk an agent into a flag.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "base/clock.h"
#include "proxy/conn/conn.h"
#include "proxy/conn/front.h"
#include "proxy/upstream/dial.h"
#include "rules/limit_met.h"

#define PAGE_MAX 2048

/* A dial that took this long ended with its time: the loop's clock and ours differ a little. */
#define DIAL_MOST_US (DIAL_TIMEOUT_S * (uint64_t)US_PER_S - 100000)

/* TLS alert record, fatal (RFC 8446 §6). */
#define ALERT_ACCESS_DENIED  49
#define ALERT_INTERNAL_ERROR 80

static enum step send_alert(struct conn *c, uint8_t description)
{
	const uint8_t alert[] = { 0x15, 3, 3, 0, 2, 2, description };

	if (bytes_append(&c->down.head, alert, sizeof(alert), PAGE_MAX) < 0)
		return STEP_CLOSE;
	return conn_drain(c);
}

/* An HTTP response with a short text, after which the connection ends. `head_only`: the request was a HEAD. */
static enum step send_page(struct conn *c, const char *status, enum reason reason, const char *text, bool head_only)
{
	char page[PAGE_MAX];
	int n = snprintf(page, sizeof(page),
			 "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
			 "X-Netgate-Reason: %s\r\nConnection: close\r\n\r\n%s",
			 status, strlen(text), reason_word(reason), head_only ? "" : text);

	if (n < 0 || (size_t)n >= sizeof(page) || bytes_append(&c->down.head, page, (size_t)n, PAGE_MAX * 2) < 0)
		return STEP_CLOSE;
	return conn_drain(c);
}

/* The host a page speaks of: the name that was judged, else the address. Safe text. */
static const char *subject(const struct conn *c, const struct verdict *v, const struct conn_seen *seen,
			   char addr[static ADDR_STRLEN])
{
	if (seen->raw_name)
		return "a name that is not a host name";
	if (v->host)
		return v->host->s;
	return addr_format(&c->dst.addr, addr);
}

static bool is_head(const struct conn_seen *seen)
{
	return seen->method_len == 4 && memcmp(seen->method, "HEAD", 4) == 0;
}

static const char *status_of(enum reason reason)
{
	switch (reason) {
	case REASON_HTTP_MALFORMED:
	case REASON_HOST_MISMATCH:
	case REASON_BAD_NAME:
		return "400 Bad Request";
	case REASON_HELLO_TIMEOUT:
		return "408 Request Timeout";
	case REASON_LOG_UNAVAILABLE:
	case REASON_INTERNAL_ERROR:
		return "503 Service Unavailable";
	default:
		return "403 Forbidden";
	}
}

static enum step deny_http(struct conn *c, const struct verdict *v, const struct conn_seen *seen)
{
	char addr[ADDR_STRLEN], limit[LIMIT_MET_MAX], text[1024];

	/* Which rule of which file it is, is not the sandbox's to know. */
	limit_met_text(c->env->policy, v, "a rule", limit);
	snprintf(text, sizeof(text), "netgate: %s port %u: %s%s%s%s; conn %" PRIu64 " in the log\n",
		 subject(c, v, seen, addr), c->dst.port, reason_word(v->reason), *limit ? " (" : "", limit,
		 *limit ? ")" : "", c->id);
	return send_page(c, status_of(v->reason), v->reason, text, is_head(seen));
}

enum step conn_deny(struct conn *c, const struct verdict *verdict, const struct conn_seen *seen)
{
	if (c->unanswered)
		return c->door == DOOR_SOCKS5 ? socks_fail(c, verdict->reason) : deny_http(c, verdict, seen);
	switch (seen->proto) {
	case PROTO_TLS:
		return send_alert(c, ALERT_ACCESS_DENIED);
	case PROTO_HTTP:
		return deny_http(c, verdict, seen);
	default:
		return STEP_CLOSE;
	}
}

/* Reached by a name that is allowed, but only by addresses that may not be dialled. */
static bool is_refusal(enum reason reason)
{
	return reason == REASON_PRIVATE_ADDRESS || reason == REASON_DENIED_BY_RULE;
}

bool conn_dial_ran_out(const struct conn *c, enum reason reason)
{
	return reason == REASON_CONNECT_FAILED && clock_mono_us() - c->dial_us >= DIAL_MOST_US;
}

static enum step unreachable_http(struct conn *c, enum reason reason)
{
	char text[512], addr[ADDR_STRLEN];
	const char *host = c->host.len > 0 ? c->host.s : addr_format(&c->dst.addr, addr);
	const char *status = "502 Bad Gateway";

	if (is_refusal(reason))
		status = "403 Forbidden";
	else if (reason == REASON_LOG_UNAVAILABLE)
		status = status_of(reason);
	else if (conn_dial_ran_out(c, reason))
		status = "504 Gateway Timeout";
	snprintf(text, sizeof(text), "netgate: %s port %u is allowed, but: %s; conn %" PRIu64 " in the log\n", host,
		 c->dst.port, reason_word(reason), c->id);
	return send_page(c, status, reason, text, false);
}

enum step conn_unreachable(struct conn *c, enum reason reason)
{
	if (c->unanswered)
		return c->door == DOOR_SOCKS5 ? socks_fail(c, reason) : unreachable_http(c, reason);
	switch ((enum proto)c->proto) {
	case PROTO_TLS:
		return send_alert(c, is_refusal(reason) ? ALERT_ACCESS_DENIED : ALERT_INTERNAL_ERROR);
	case PROTO_HTTP:
		return unreachable_http(c, reason);
	default:
		return STEP_CLOSE;
	}
}
