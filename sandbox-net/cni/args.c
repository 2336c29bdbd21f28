/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/cni/args.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "sandbox-net/oci/choice.h"

int cni_ask(json_t *asked, const char *key, const char *value, struct err *err)
{
	const char *before = json_string_value(json_object_get(asked, key));

	if (before && strcmp(before, value) != 0)
		return err_set(err, "%s is asked for twice, with different values", key);
	return json_object_set_new(asked, key, json_string(value)) ? err_set(err, "%s: not text", key) : 0;
}

/* The choice that a key makes, or NULL. */
static const char *choice_of(const char *key)
{
	static const struct {
		const char *key, *choice;
	} choices[] = {
		{ "NETGATE_ALLOW", CHOICE_ALLOW },
		{ "NETGATE_POLICY", CHOICE_POLICY },
		{ "NETGATE_JOB", CHOICE_JOB },
	};

	for (size_t i = 0; i < sizeof(choices) / sizeof(*choices); i++)
		if (strcmp(key, choices[i].key) == 0)
			return choices[i].choice;
	return NULL;
}

/* Of the pod too, but of no use here. */
static bool is_of_kubernetes(const char *key)
{
	return strcmp(key, "K8S_POD_INFRA_CONTAINER_ID") == 0 || strcmp(key, "K8S_POD_UID") == 0;
}

static int take_flag(const char *value, bool *flag, struct err *err)
{
	*flag = strcmp(value, "1") == 0 || strcasecmp(value, "true") == 0;
	return *flag || strcmp(value, "0") == 0 || strcasecmp(value, "false") == 0
		       ? 0
		       : err_set(err, "CNI_ARGS: IgnoreUnknown is 1 or 0");
}

int cni_args_parse(const char *text, struct cni_args *a, json_t *asked, struct err *err)
{
	const char *unknown = NULL;
	bool ignore = false;
	char *next = a->text, *key;

	a->pod = a->pod_namespace = NULL;
	if (snprintf(a->text, sizeof(a->text), "%s", text ? text : "") >= (int)sizeof(a->text))
		return err_set(err, "CNI_ARGS is too long");
	while ((key = strsep(&next, ";"))) {
		char *value = strchr(key, '=');

		if (!*key && !next)
			break;
		if (!value)
			return err_set(err, "CNI_ARGS: \"%.64s\" is no KEY=VALUE", key);
		*value++ = '\0';
		if (strcmp(key, "IgnoreUnknown") == 0) {
			if (take_flag(value, &ignore, err))
				return -1;
		} else if (strcmp(key, "K8S_POD_NAMESPACE") == 0) {
			a->pod_namespace = value;
		} else if (strcmp(key, "K8S_POD_NAME") == 0) {
			a->pod = value;
		} else if (choice_of(key)) {
			if (cni_ask(asked, choice_of(key), value, err))
				return -1;
		} else if (!is_of_kubernetes(key)) {
			unknown = key;
		}
	}
	if (unknown && !ignore)
		return err_set(err, "CNI_ARGS: \"%.64s\" is unknown (and IgnoreUnknown is not set)", unknown);
	return 0;
}
