/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. Each entry is one word with its option, "--allow=ENTRY", so that none can pass for another option. */
#include "sandbox-net/cni/policy.h"

#include <stdio.h>
#include <string.h>

#include "base/attach.h"
#include "base/err.h"
#include "sandbox-net/attach/options.h"

/* A text without a NUL in it, or NULL. */
static const char *text_of(const json_t *value)
{
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static int add(struct attach_options *o, const char *option, const char *text, struct err *err)
{
	char *word;

	if (asprintf(&word, "%s%s", option, text) < 0)
		return err_set(err, "out of memory");
	return attach_pass_on(o, word, err);
}

/* A list of texts, or one text; each becomes a word behind `option`. */
static int add_all(const json_t *config, const char *key, const char *option, struct attach_options *o, struct err *err)
{
	json_t *value = json_object_get(config, key), *one;
	size_t i;

	if (!value)
		return 0;
	if (text_of(value))
		return add(o, option, text_of(value), err);
	if (!json_is_array(value))
		return err_set(err, "\"%s\": a list of texts", key);
	json_array_foreach(value, i, one) if (!text_of(one) || add(o, option, text_of(one), err)) return err->text[0]
		? -1
		: err_set(err, "\"%s\": a list of texts", key);
	return 0;
}

static int take_risks(const json_t *config, struct attach_options *o, struct err *err)
{
	json_t *value = json_object_get(config, "acceptRisk"), *one;
	size_t i;

	if (value && !json_is_array(value))
		return err_set(err, "\"acceptRisk\": a list of texts");
	json_array_foreach(value, i, one)
	{
		int risk = 0;

		while (risk < ATTACH_RISK_COUNT &&
		       (!text_of(one) || strcmp(text_of(one), attach_risk_words[risk]) != 0))
			risk++;
		if (risk == ATTACH_RISK_COUNT)
			return err_set(err, "\"acceptRisk\": \"net-admin\" is the one that there is");
		o->risks |= 1u << risk;
	}
	return 0;
}

int policy_of_config(const json_t *config, struct attach_options *o, const char **permits, struct err *err)
{
	const json_t *value = json_object_get(config, "permits");

	*permits = text_of(value);
	if (value && !*permits)
		return err_set(err, "\"permits\": the path of a directory");
	/* Says nothing, and makes sure that there is an option: a gate of its own, which allows nothing unless told. */
	if (add(o, "--quiet", "", err) || add_all(config, "allow", "--allow=", o, err) ||
	    add_all(config, "policy", "--policy=", o, err) || add_all(config, "options", "", o, err))
		return -1;
	return take_risks(config, o, err);
}
