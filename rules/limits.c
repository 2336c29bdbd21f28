/* SPDX-License-Identifier: Apache-2.0 */
/* Values of limits: from text and back. A value is a number that is not zero, since an empty policy already allows nothing. */
#include "rules/limits.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "rules/entry.h"

#define US 1000000u /* microseconds a second */

struct unit {
	const char *word;
	uint64_t scale;
};

/* From large to small: the canonical text uses the first one that leaves no rest. */
static const struct unit sizes[] = {
	{ "TiB", 1ull << 40 }, { "TB", 1000000000000 },
	{ "GiB", 1ull << 30 }, { "GB", 1000000000 },
	{ "MiB", 1ull << 20 }, { "MB", 1000000 },
	{ "KiB", 1ull << 10 }, { "kB", 1000 },
	{ "KB", 1000 },	       { "B", 1 },
};

static const struct unit durations[] = { { "d", 86400 }, { "h", 3600 }, { "m", 60 }, { "s", 1 } };

static const struct unit per_second[] = { { "/s", 1 } };

/* What a kind of value is called in a message, and how it is written. */
static const struct {
	const char *key;
	const char *what;
} kinds[LIMIT_COUNT] = {
	[LIMIT_UPLOAD] = { "upload", "not a size; write bytes with a unit, such as 20MiB or 500kB" },
	[LIMIT_CONNECTIONS] = { "connections", "not a number of connections; write one from 1 on, such as 256" },
	[LIMIT_RATE] = { "rate", "not a rate; write new connections a second, such as 50/s" },
	[LIMIT_NAMES] = { "names", "not a number of names; write one from 1 on, such as 200" },
	[LIMIT_IDLE] = { "idle", "not a duration; write one such as 90s, 5m or 1h30m" },
	[LIMIT_DURATION] = { "duration", "not a duration; write one such as 90s, 5m or 1h30m" },
	[LIMIT_MEMORY] = { "memory", "not a size of 4MiB or more; write bytes with a unit, such as 512MiB or 2GB" },
	[LIMIT_PIDS] = { "pids", "not a number of processes; write one from 1 on, such as 64" },
	[LIMIT_CPUS] = { "cpus", "not a number of processors; write one from 0.01 on, such as 2 or 0.5" },
};

const char *limits_key(enum limit which)
{
	return kinds[which].key;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits at the front, without more than 18 of them. Returns how many there were; 0: none, or too many. */
static size_t read_number(const char *text, size_t len, uint64_t *n)
{
	size_t i;

	*n = 0;
	for (i = 0; i < len && is_digit(text[i]); i++) {
		if (i == 18)
			return 0;
		*n = *n * 10 + (uint64_t)(text[i] - '0');
	}
	return i;
}

static bool word_is(const char *text, size_t len, const char *word)
{
	return len == strlen(word) && memcmp(text, word, len) == 0;
}

/* A number and one of the units (NULL: none), which may be left out if `bare`; from `least` to `most`. */
static int parse_scaled(const char *text, size_t len, const struct unit *units, size_t n_units, uint64_t least,
			uint64_t most, uint64_t *value)
{
	uint64_t n, scale = n_units ? 0 : 1;
	size_t digits = read_number(text, len, &n);

	if (digits == 0 || (digits == len) != (n_units == 0))
		return -1;
	for (size_t i = 0; i < n_units; i++) {
		if (word_is(text + digits, len - digits, units[i].word))
			scale = units[i].scale;
	}
	if (scale == 0 || n > most / scale || n * scale < least)
		return -1;
	*value = n * scale;
	return 0;
}

/* "2", "0.5", "1.25": thousandths, without more than three digits behind the point. */
static int parse_thousandths(const char *text, size_t len, uint64_t *value)
{
	static const uint64_t scale[] = { 0, 100, 10, 1 };
	uint64_t whole, rest = 0;
	size_t digits = read_number(text, len, &whole), decimals = 0;

	if (digits == 0 || whole > LIMITS_CPUS_MAX / 1000)
		return -1;
	if (digits < len && text[digits] == '.') {
		decimals = read_number(text + digits + 1, len - digits - 1, &rest);
		if (decimals == 0 || decimals > 3)
			return -1;
		digits += 1 + decimals;
	}
	if (digits != len)
		return -1;
	whole = whole * 1000 + rest * scale[decimals];
	if (whole < LIMITS_CPUS_MIN || whole > LIMITS_CPUS_MAX)
		return -1;
	*value = whole;
	return 0;
}

int limits_parse_duration(const char *text, size_t len, uint64_t *us)
{
	uint64_t total = 0, n;

	while (len > 0) {
		size_t digits = read_number(text, len, &n);
		uint64_t scale = digits == len ? 1 : 0;

		for (size_t i = 0; i < sizeof(durations) / sizeof(*durations) && digits < len; i++) {
			if (text[digits] == *durations[i].word)
				scale = durations[i].scale;
		}
		if (digits == 0 || scale == 0 || n > LIMITS_DURATION_MAX_S / scale)
			return -1;
		total += n * scale;
		if (total > LIMITS_DURATION_MAX_S)
			return -1;
		digits += digits < len;
		text += digits;
		len -= digits;
	}
	if (total == 0)
		return -1;
	*us = total * US;
	return 0;
}

int limits_parse(enum limit which, const char *text, size_t len, uint64_t *value, struct err *err)
{
	char quoted[ENTRY_QUOTE_MAX];
	int rc = -1;

	switch (which) {
	case LIMIT_UPLOAD:
		rc = parse_scaled(text, len, sizes, sizeof(sizes) / sizeof(*sizes), 1, LIMITS_SIZE_MAX, value);
		break;
	case LIMIT_MEMORY:
		rc = parse_scaled(text, len, sizes, sizeof(sizes) / sizeof(*sizes), LIMITS_MEMORY_MIN, LIMITS_SIZE_MAX,
				  value);
		break;
	case LIMIT_CPUS:
		rc = parse_thousandths(text, len, value);
		break;
	case LIMIT_CONNECTIONS:
	case LIMIT_NAMES:
	case LIMIT_PIDS:
		rc = parse_scaled(text, len, NULL, 0, 1, LIMITS_COUNT_MAX, value);
		break;
	case LIMIT_RATE:
		rc = parse_scaled(text, len, per_second, 1, 1, LIMITS_COUNT_MAX, value);
		break;
	case LIMIT_IDLE:
	case LIMIT_DURATION:
		rc = limits_parse_duration(text, len, value);
		break;
	case LIMIT_COUNT:
		break;
	}
	return rc == 0 ? 0 : err_set(err, "%s: %s", entry_quote(text, len, quoted), kinds[which].what);
}

static void format_duration(uint64_t seconds, char buf[static LIMITS_TEXT_MAX])
{
	size_t len = 0;

	for (size_t i = 0; i < sizeof(durations) / sizeof(*durations); i++) {
		if (seconds >= durations[i].scale)
			len += (size_t)snprintf(buf + len, LIMITS_TEXT_MAX - len, "%" PRIu64 "%s",
						seconds / durations[i].scale, durations[i].word);
		seconds %= durations[i].scale;
	}
}

static void format_thousandths(uint64_t value, char buf[static LIMITS_TEXT_MAX])
{
	int len = snprintf(buf, LIMITS_TEXT_MAX, "%" PRIu64 ".%03u", value / 1000, (unsigned)(value % 1000));

	while (buf[len - 1] == '0')
		buf[--len] = '\0';
	if (buf[len - 1] == '.')
		buf[len - 1] = '\0';
}

const char *limits_format(enum limit which, uint64_t value, char buf[static LIMITS_TEXT_MAX])
{
	size_t unit = 0;

	switch (which) {
	case LIMIT_UPLOAD:
	case LIMIT_MEMORY:
		while (value % sizes[unit].scale != 0)
			unit++;
		snprintf(buf, LIMITS_TEXT_MAX, "%" PRIu64 "%s", value / sizes[unit].scale, sizes[unit].word);
		break;
	case LIMIT_IDLE:
	case LIMIT_DURATION:
		format_duration(value / US, buf);
		break;
	case LIMIT_RATE:
		snprintf(buf, LIMITS_TEXT_MAX, "%" PRIu64 "/s", value);
		break;
	case LIMIT_CPUS:
		format_thousandths(value, buf);
		break;
	case LIMIT_CONNECTIONS:
	case LIMIT_NAMES:
	case LIMIT_PIDS:
	case LIMIT_COUNT:
		snprintf(buf, LIMITS_TEXT_MAX, "%" PRIu64, value);
		break;
	}
	return buf;
}

const char *limits_text(const struct limits *limits, char buf[static LIMITS_ALL_MAX])
{
	char text[LIMITS_TEXT_MAX];
	size_t len = 0;

	static_assert(LIMIT_COUNT * (LIMITS_TEXT_MAX + 16) <= LIMITS_ALL_MAX, "room for every key and value");
	buf[0] = '\0';
	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (limits->max[i])
			len += (size_t)snprintf(buf + len, LIMITS_ALL_MAX - len, "%s%s: %s", len ? ", " : "",
						limits_key((enum limit)i),
						limits_format((enum limit)i, limits->max[i], text));
	}
	return buf;
}

void limits_add(struct limits *limits, enum limit which, uint64_t value)
{
	if (limits->max[which] == 0 || value < limits->max[which])
		limits->max[which] = value;
}
