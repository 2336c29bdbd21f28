/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. Whoever may make docker's networks is root already: nothing here is held against anything. */
#include "sandbox-net/docker/options.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/attach.h"
#include "base/err.h"
#include "sandbox-net/docker/join.h"

#define OWN_PREFIX "com.docker."
#define SEPARATORS ", \t\n"

static const char *const keys[] = { "allow", "policy", "options", "name", "log", "accept-risk" };

static bool is_known(const char *key)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (strcmp(key, keys[i]) == 0)
			return true;
	return false;
}

int options_merge(json_t *to, const json_t *from, struct err *err)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)from, key, value)
	{
		const char *text = json_string_value(value);

		if (strncmp(key, OWN_PREFIX, strlen(OWN_PREFIX)) == 0)
			continue;
		if (!is_known(key))
			return err_set(
				err,
				"option \"%s\" is unknown; allow, policy, options, name, log and accept-risk are there",
				key);
		if (!text || strlen(text) != json_string_length(value))
			return err_set(err, "option \"%s\": not a text", key);
		/* Perhaps a variable that nobody has set; and for a container, "nothing" would take the network's place. */
		if (text[strspn(text, SEPARATORS)] == '\0')
			return err_set(err, "option \"%s\" is there and empty: say what it is to be, or leave it out",
				       key);
		if (json_object_set(to, key, value))
			return err_set(err, "out of memory");
	}
	return 0;
}

__attribute__((format(printf, 3, 4))) static int add(struct join_request *r, struct err *err, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (r->n_gate == JOIN_GATE_OPTIONS_MAX)
		return err_set(err, "more than %d options", JOIN_GATE_OPTIONS_MAX);
	va_start(ap, fmt);
	n = vasprintf(&r->gate[r->n_gate], fmt, ap);
	va_end(ap);
	if (n < 0)
		return err_set(err, "out of memory");
	r->n_gate++;
	return 0;
}

/* Each part of a list as a word behind `option`. */
static int add_list(struct join_request *r, const char *option, const char *list, const char *separators,
		    struct err *err)
{
	const char *at = list ? list + strspn(list, separators) : "";

	while (*at) {
		const size_t len = strcspn(at, separators);

		if (add(r, err, "%s%.*s", option, (int)len, at))
			return -1;
		at += len;
		at += strspn(at, separators);
	}
	return 0;
}

static int take_risks(struct join_request *r, const char *text, struct err *err)
{
	if (!text)
		return 0;
	for (int i = 0; i < ATTACH_RISK_COUNT; i++)
		if (strcmp(text, attach_risk_words[i]) == 0) {
			r->risks |= 1u << i;
			return 0;
		}
	return err_set(err, "accept-risk: \"%s\": not a risk that is known; write net-admin", text);
}

int options_apply(const json_t *options, const char *network, const char *endpoint, struct join_request *r,
		  struct err *err)
{
	const char *name = json_string_value(json_object_get(options, "name"));
	const char *policy = json_string_value(json_object_get(options, "policy"));
	const char *log = json_string_value(json_object_get(options, "log"));

	if (name && (!attach_name_ok(name) || strlen(name) > ATTACH_NAME_MAX - 13))
		return err_set(err, "name: 1 to %d letters, digits, '-', '_' and '.', and no '.' at its beginning",
			       ATTACH_NAME_MAX - 13);
	snprintf(r->name, sizeof(r->name), "%s%s%.12s", name ? name : "", name ? "-" : "", endpoint);
	snprintf(r->to, sizeof(r->to), "docker network %.*s endpoint %.12s", name ? ATTACH_NAME_MAX : 12,
		 name ? name : network, endpoint);
	join_job(r->job, endpoint);
	join_link(r->link, endpoint);
	if (log && add(r, err, "--log=%s/%s.jsonl", log, r->name))
		return -1;
	if (log)
		r->log = r->gate[0] + strlen("--log=");
	if (add(r, err, "--quiet") || (policy && add(r, err, "--policy=%s", policy)) ||
	    add_list(r, "--allow=", json_string_value(json_object_get(options, "allow")), SEPARATORS, err) ||
	    add_list(r, "", json_string_value(json_object_get(options, "options")), " \t\n", err))
		return -1;
	return take_risks(r, json_string_value(json_object_get(options, "accept-risk")), err);
}
