/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host patterns: an exact name, "*.HOST" (any depth below, not HOST itself) or
 * ".HOST" (both). This is the one place where other writing systems are
 * converted to ASCII, and the one place that asks the public suffix list to decide something:
 * both only while a policy is loaded, never for what a sandbox sends.
 */
#include "rules/entry.h"

#include <idn2.h>
#include <libpsl.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

const char *entry_quote(const char *text, size_t len, char buf[static ENTRY_QUOTE_MAX])
{
	static const char hex[] = "0123456789abcdef";
	size_t shown = len > 64 ? 64 : len;
	char *at = buf;

	*at++ = '"';
	for (size_t i = 0; i < shown; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c > ' ' && c < 0x7f && c != '"' && c != '\\') {
			*at++ = (char)c;
			continue;
		}
		*at++ = '\\';
		*at++ = 'x';
		*at++ = hex[c >> 4];
		*at++ = hex[c & 15];
	}
	*at++ = '"';
	memcpy(at, len > shown ? "..." : "", len > shown ? 4 : 1);
	return buf;
}

static bool is_name_byte(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
	       c == '.';
}

/* What is wrong with ASCII text that name_canonical() refused. */
static const char *name_fault(const char *text, size_t len)
{
	size_t label = 0;

	if (len == 0)
		return "there is no host name here; write one, such as api.example.com";
	for (size_t i = 0; i < len; i++) {
		if (!is_name_byte((unsigned char)text[i]))
			return "a host name has only letters, digits, '-', '_' and dots; write HOST, *.HOST, .HOST or "
			       "HOST:PORT, one host an entry";
	}
	if (len > NAME_LEN_MAX + 1)
		return "a host name has 253 bytes at most; write a real one";
	for (size_t i = 0; i <= len; i++) {
		if (i < len && text[i] != '.') {
			label++;
			continue;
		}
		if (label > NAME_LABEL_MAX)
			return "no part of a host name has more than 63 bytes; write a real one";
		if (label == 0 && i < len)
			return "a dot without a name before it; write one dot between two parts";
		label = 0;
	}
	return "programs read this as an IP address, not as a name; write an address rule, such as 203.0.113.7/32:443";
}

/* ASCII from UTF-8 by IDNA 2008. The mapping may yield anything, so its result is judged as if it had been typed. */
static int name_from_utf8(const char *text, size_t len, struct name *out, struct err *err)
{
	int flags = IDN2_NONTRANSITIONAL | IDN2_NFC_INPUT | IDN2_USE_STD3_ASCII_RULES;
	char utf8[4 * NAME_LEN_MAX + 1];
	char quoted[ENTRY_QUOTE_MAX];
	char *ascii = NULL;
	int rc;

	entry_quote(text, len, quoted);
	if (len >= sizeof(utf8) || memchr(text, '\0', len))
		return err_set(err, "%s: too long, or not text; write a host name of 253 bytes at most", quoted);
	memcpy(utf8, text, len);
	utf8[len] = '\0';
	rc = idn2_to_ascii_8z(utf8, &ascii, flags);
	if (rc != IDN2_OK)
		return err_set(err, "%s: IDNA refuses this name (%s); write the name in ASCII (xn--...)", quoted,
			       idn2_strerror(rc));
	rc = name_canonical(ascii, strlen(ascii), out);
	if (rc)
		err_set(err, "%s: %s", quoted, name_fault(ascii, strlen(ascii)));
	idn2_free(ascii);
	return rc;
}

int entry_parse_name(const char *text, size_t len, struct name *out, struct err *err)
{
	char quoted[ENTRY_QUOTE_MAX];

	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)text[i] >= 0x80)
			return name_from_utf8(text, len, out, err);
	}
	if (name_canonical(text, len, out) == 0)
		return 0;
	return err_set(err, "%s: %s", entry_quote(text, len, quoted), name_fault(text, len));
}

/*
 * A name directly below which strangers can register names: in the public
 * suffix list, or a single label (the list's own default rule). Without a list
 * only the latter can be told.
 */
static bool is_public_suffix(const struct name *name)
{
	const psl_ctx_t *psl = psl_builtin();

	if (!name_parent(name->s))
		return true;
	return psl && psl_is_public_suffix(psl, name->s);
}

static int refuse_address(const char *text, size_t len, struct err *err)
{
	char quoted[ENTRY_QUOTE_MAX];
	char shown[ADDR_STRLEN];
	bool brackets = len > 2 && text[0] == '[' && text[len - 1] == ']';
	struct addr a;

	if (addr_parse(text + brackets, len - 2 * brackets, &a))
		return 0;
	addr_format(&a, shown);
	return err_set(
		err,
		a.family == ADDR_V4
			? "%s: an address is not a host; write the address rule %s/32:443, or cidr: %s/32"
			: "%s: an address is not a host; write the address rule [%s]/128:443, or cidr: \"%s/128\"",
		entry_quote(text, len, quoted), shown, shown);
}

/* Cuts the wildcard off the front and "!" off the end of the pattern. Returns 0 or -1. */
static int split_pattern(const char **text, size_t *len, struct entry *out, struct err *err)
{
	const char *whole = *text;
	size_t whole_len = *len;
	char quoted[ENTRY_QUOTE_MAX];

	out->deliberate = *len > 0 && whole[*len - 1] == '!';
	*len -= out->deliberate;
	out->apex = true;
	if (*len == 1 && whole[0] == '*') {
		out->apex = false;
		out->below = true;
		*len = 0;
		return 0;
	}
	if (*len >= 2 && memcmp(whole, "*.", 2) == 0) {
		out->apex = false;
		out->below = true;
	} else if (*len >= 1 && whole[0] == '.') {
		out->below = true;
	}
	if (out->below) {
		*text += out->apex ? 1 : 2;
		*len -= out->apex ? 1 : 2;
	}
	if (memchr(*text, '*', *len))
		return err_set(err,
			       "%s: '*' can only be the whole first part, for every name below; write *.HOST, or the "
			       "names one by one",
			       entry_quote(whole, whole_len, quoted));
	if (out->deliberate && !out->below)
		return err_set(err, "%s: '!' confirms a wide wildcard, and this is one name; write it without '!'",
			       entry_quote(whole, whole_len, quoted));
	return 0;
}

int entry_parse_host(enum entry_list list, const char *text, size_t len, struct entry *out, struct err *err)
{
	char quoted[ENTRY_QUOTE_MAX];
	const char *name = text;
	size_t name_len = len;

	memset(out, 0, sizeof(*out));
	if (split_pattern(&name, &name_len, out, err) || refuse_address(name, name_len, err))
		return -1;
	if (name_len == 0 && out->below && !out->apex && name == text) {
		if (list == ENTRY_DENY || out->deliberate)
			return 0;
		return err_set(err, "%s: allows every name there is; name the hosts, or write \"*!\" if that is meant",
			       entry_quote(text, len, quoted));
	}
	if (entry_parse_name(name, name_len, &out->name, err))
		return name_len == len ? -1 : err_wrap(err, "%s", entry_quote(text, len, quoted));
	if (!out->below || list == ENTRY_DENY)
		return 0;
	/* A confirmation that nothing asked for is not part of the rule. */
	if (!is_public_suffix(&out->name))
		out->deliberate = false;
	else if (!out->deliberate)
		return err_set(err,
			       "%s: covers every name below the public suffix \"%s\", where anyone can get one; name "
			       "the hosts, or write \"%s%s!\" if that is meant",
			       entry_quote(text, len, quoted), out->name.s, out->apex ? "." : "*.", out->name.s);
	return 0;
}
