/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See the header. A network's options and gateway are kept in a file (store.h).
 * An endpoint is known from CreateEndpoint to Join, a moment, and has its gate from then on: whatever a later call needs follows from
 * the endpoint's id.
 */
#include "sandbox-net/docker/methods.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/digits.h"
#include "base/err.h"
#include "base/handoff.h"
#include "sandbox-net/attach/jobs.h"
#include "sandbox-net/docker/join.h"
#include "sandbox-net/docker/options.h"
#include "sandbox-net/docker/resolver.h"
#include "sandbox-net/docker/store.h"
#include "sandbox-net/docker/task.h"
#include "sandbox-net/gate/adopt.h"

#define ENDPOINTS_MAX 16384 /* that docker has made and not deleted */
#define OPTIONS_GIVEN "com.docker.network.generic"
#define PORTS_GIVEN   "com.docker.network.portmap"

struct endpoint_made {
	LIST_ENTRY(endpoint_made) link;
	char id[ATTACH_NAME_MAX + 8];
	struct gate_layout layout;
	bool ipv6;   /* docker gives an address of it */
	bool joined; /* it has a gate, or had one: docker joins an endpoint once */
	json_t *options;
};

static LIST_HEAD(endpoints, endpoint_made) made = LIST_HEAD_INITIALIZER(made);
static size_t n_made;

/* ---- what calls bring ---- */

static const char *text_in(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* An id becomes part of names and of a path. */
static const char *id_in(const json_t *request, const char *key, struct err *err)
{
	const char *id = text_in(request, key);

	if (attach_name_ok(id))
		return id;
	err_set(err, "%s is missing", key);
	return NULL;
}

/* "172.18.0.2/16": an address and the length of its network's prefix. */
static int parse_address(const char *text, struct addr *a, uint8_t *plen)
{
	const char *slash = strchr(text, '/');
	uint32_t len;

	if (!slash || addr_parse(text, (size_t)(slash - text), a) ||
	    digits_parse(slash + 1, strlen(slash + 1), 8 * (uint32_t)addr_size(a), &len))
		return -1;
	*plen = (uint8_t)len;
	return 0;
}

static struct endpoint_made *find(const char *id)
{
	struct endpoint_made *e;

	LIST_FOREACH(e, &made, link)
	if (strcmp(e->id, id) == 0)
		return e;
	return NULL;
}

static void forget(struct endpoint_made *e)
{
	LIST_REMOVE(e, link);
	n_made--;
	json_decref(e->options);
	free(e);
}

/* ---- networks ---- */

/* As a container's gate, under the network's id. */
static int rehearse(void *arg, int fd, struct err *err)
{
	if (join_rehearse(arg, err))
		return -1;
	task_answer(fd);
	return 0;
}

/* Tries out whether the options are good for a gate, so that it is not the first container that finds out. */
static int try_options(const json_t *options, const char *id, struct method_answer *answer, struct err *err)
{
	static struct join_request r;

	memset(&r, 0, sizeof(r));
	if (options_apply(options, id, id, &r, err) == 0)
		answer->wait = task_start(rehearse, &r, err);
	join_free_options(&r);
	return answer->wait < 0 ? -1 : 0;
}

static int create_network(const json_t *request, struct method_answer *answer, struct err *err)
{
	const char *id = id_in(request, "NetworkID", err);
	const char *gateway4 = text_in(json_array_get(json_object_get(request, "IPv4Data"), 0), "Gateway");
	const char *gateway6 = text_in(json_array_get(json_object_get(request, "IPv6Data"), 0), "Gateway");
	json_t *options = json_object(), *network;
	uint8_t plen;
	struct addr a;
	int rc;

	if (!id || options_merge(options, json_object_get(json_object_get(request, "Options"), OPTIONS_GIVEN), err)) {
		json_decref(options);
		return -1;
	}
	if (parse_address(gateway4, &a, &plen) || a.family != ADDR_V4) {
		json_decref(options);
		return err_set(err, "the network has no IPv4 subnet with a gateway");
	}
	network = json_pack("{s:o, s:s, s:s}", "options", options, "gateway4", gateway4, "gateway6", gateway6);
	rc = network ? store_save(id, network, err) : err_set(err, "out of memory");
	if (rc == 0) {
		snprintf(answer->network, sizeof(answer->network), "%s", id);
		rc = try_options(options, id, answer, err);
		if (rc)
			method_undo(id);
	}
	json_decref(network);
	return rc;
}

void method_undo(const char *network)
{
	store_remove(network);
}

static int delete_network(const json_t *request, struct method_answer *answer, struct err *err)
{
	const char *id = id_in(request, "NetworkID", err);

	(void)answer;
	if (!id)
		return -1;
	store_remove(id);
	return 0;
}

/* ---- endpoints ---- */

static int lay_out(struct endpoint_made *e, const json_t *network, const json_t *interface, struct err *err)
{
	struct gate_layout *l = &e->layout;
	const char *address6 = text_in(interface, "AddressIPv6");
	uint8_t plen;

	layout_usual(l);
	e->ipv6 = *address6;
	if (parse_address(text_in(interface, "Address"), &l->sandbox4, &l->plen4) ||
	    parse_address(text_in(network, "gateway4"), &l->gate4, &plen))
		return err_set(err, "docker gave the container no IPv4 address");
	if (e->ipv6 && (parse_address(address6, &l->sandbox6, &l->plen6) ||
			parse_address(text_in(network, "gateway6"), &l->gate6, &plen)))
		return err_set(err, "docker gave the container an IPv6 address and the network no IPv6 gateway");
	if (!layout_ok(l))
		return err_set(err, "a gate can't have addresses in this network: choose another --subnet");
	return 0;
}

static int check_wishes(const json_t *request, const json_t *interface, struct err *err)
{
	const char *mac = text_in(interface, "MacAddress");

	if (*mac && strcasecmp(mac, GATE_SANDBOX_MAC) != 0)
		return err_set(err, "a container behind a gate has the MAC address " GATE_SANDBOX_MAC);
	if (json_array_size(json_object_get(json_object_get(request, "Options"), PORTS_GIVEN)) > 0)
		return err_set(err, "ports can't be published: nothing leads into a container behind a gate");
	return 0;
}

static int create_endpoint(const json_t *request, struct method_answer *answer, struct err *err)
{
	const char *network_id = id_in(request, "NetworkID", err),
		   *id = network_id ? id_in(request, "EndpointID", err) : NULL;
	const json_t *interface = json_object_get(request, "Interface");
	json_t *network = id ? store_load(network_id, err) : NULL;
	struct endpoint_made *e = network ? calloc(1, sizeof(*e)) : NULL;

	if (!e) {
		json_decref(network);
		return err->text[0] ? -1 : err_set(err, "out of memory");
	}
	if (find(id))
		forget(find(id));
	LIST_INSERT_HEAD(&made, e, link);
	n_made++;
	snprintf(e->id, sizeof(e->id), "%s", id);
	e->options = json_deep_copy(json_object_get(network, "options"));
	if (n_made > ENDPOINTS_MAX || !e->options || check_wishes(request, interface, err) ||
	    lay_out(e, network, interface, err) ||
	    options_merge(e->options, json_object_get(request, "Options"), err) ||
	    resolver_check(json_object_get(request, "Options"), RESOLVER_USUAL, RESOLVER_SYSTEMD, err)) {
		forget(e);
		json_decref(network);
		return err->text[0] ? -1 : err_set(err, "too many endpoints, or no memory");
	}
	json_decref(network);
	answer->reply = *text_in(interface, "MacAddress")
				? json_pack("{s:{}}", "Interface")
				: json_pack("{s:{s:s}}", "Interface", "MacAddress", GATE_SANDBOX_MAC);
	return 0;
}

struct detaching {
	char job[ATTACH_NAME_MAX + 8];
};

static int nothing(void *arg, const struct jobs_entry *entry)
{
	(void)arg;
	(void)entry;
	return 1;
}

/* One that is gone already is as good. */
static int detach(void *arg, int fd, struct err *err)
{
	const struct detaching *d = arg;
	struct err gone = { "" };

	if (jobs_detach(d->job, "", &gone) && jobs_visit(d->job, nothing, NULL, err) != 0)
		return err->text[0] ? -1 : err_set(err, "%s", gone.text);
	task_answer(fd);
	return 0;
}

static int delete_endpoint(const json_t *request, struct method_answer *answer, struct err *err)
{
	const char *id = id_in(request, "EndpointID", err);
	struct endpoint_made *e = id ? find(id) : NULL;
	struct detaching d;

	if (!id)
		return -1;
	if (e)
		forget(e);
	join_job(d.job, id);
	answer->wait = task_start(detach, &d, err);
	return answer->wait < 0 ? -1 : 0;
}

/* ---- joining ---- */

struct joining {
	struct join_request request;
	int fd;
};

static void ready(void *arg)
{
	task_answer(((const struct joining *)arg)->fd);
}

static int join_container(void *arg, int fd, struct err *err)
{
	struct joining *j = arg;

	j->fd = fd;
	return join_run(&j->request, ready, j, err) ? err_wrap(err, "%s", j->request.to) : 0;
}

static int add_route(json_t *routes, const char *destination, const struct addr *gate)
{
	char next_hop[ADDR_STRLEN];

	return json_array_append_new(routes, json_pack("{s:s, s:i, s:s}", "Destination", destination, "RouteType", 0,
						       "NextHop", addr_format(gate, next_hop)));
}

/* No "Gateway", and none of docker's in its place: see resolver.c. */
static json_t *join_reply(const struct join_request *r)
{
	const struct gate_layout *l = &r->layout;
	json_t *routes = json_array();

	if (!routes || add_route(routes, ADOPT_LOW4, &l->gate4) || add_route(routes, ADOPT_HIGH4, &l->gate4) ||
	    (r->ipv6 && (add_route(routes, ADOPT_LOW6, &l->gate6) || add_route(routes, ADOPT_HIGH6, &l->gate6)))) {
		json_decref(routes);
		return NULL;
	}
	return json_pack("{s:{s:s, s:s}, s:o, s:b}", "InterfaceName", "SrcName", r->link, "DstPrefix", "eth",
			 "StaticRoutes", routes, "DisableGatewayService", 1);
}

static int join(const json_t *request, struct method_answer *answer, struct err *err)
{
	static struct joining j;
	const char *network = id_in(request, "NetworkID", err),
		   *id = network ? id_in(request, "EndpointID", err) : NULL;
	const char *key = text_in(request, "SandboxKey");
	struct endpoint_made *e = id ? find(id) : NULL;
	int ret;

	if (!id)
		return -1;
	if (!e)
		return err_set(err, "endpoint %.12s is unknown: was the driver started anew? Try again", id);
	/* A second gate's failure would end the first one, which has its name. */
	if (e->joined)
		return err_set(err, "endpoint %.12s has joined already", id);
	memset(&j, 0, sizeof(j));
	j.request.layout = e->layout;
	j.request.ipv6 = e->ipv6;
	if (key[0] != '/' || snprintf(j.request.sandbox_key, sizeof(j.request.sandbox_key), "%s", key) >=
				     (int)sizeof(j.request.sandbox_key))
		return err_set(err, "SandboxKey: the path of a network namespace");
	ret = options_apply(e->options, network, id, &j.request, err);
	if (ret == 0) {
		answer->reply = join_reply(&j.request);
		ret = answer->reply ? 0 : err_set(err, "out of memory");
	}
	if (ret == 0) {
		answer->wait = task_start(join_container, &j, err);
		ret = answer->wait < 0 ? -1 : 0;
		e->joined = ret == 0;
	}
	join_free_options(&j.request);
	return ret;
}

/* The link is still the container's. If it has not come there, it never will; DeleteEndpoint follows. */
static int leave(const json_t *request, struct method_answer *answer, struct err *err)
{
	(void)answer;
	return id_in(request, "EndpointID", err) ? 0 : -1;
}

/* ---- the table ---- */

static int activate(const json_t *request, struct method_answer *answer, struct err *err)
{
	(void)request;
	(void)err;
	answer->reply = json_pack("{s:[s]}", "Implements", "NetworkDriver");
	return 0;
}

static int capabilities(const json_t *request, struct method_answer *answer, struct err *err)
{
	(void)request;
	(void)err;
	answer->reply = json_pack("{s:s, s:s}", "Scope", "local", "ConnectivityScope", "local");
	return 0;
}

static int info(const json_t *request, struct method_answer *answer, struct err *err)
{
	(void)request;
	(void)err;
	answer->reply = json_pack("{s:{}}", "Value");
	return 0;
}

static int accept_silently(const json_t *request, struct method_answer *answer, struct err *err)
{
	(void)request;
	(void)answer;
	(void)err;
	return 0;
}

int method_call(const char *path, const json_t *request, struct method_answer *answer, struct err *err)
{
	static const struct {
		const char *path;
		int (*run)(const json_t *request, struct method_answer *answer, struct err *err);
	} methods[] = {
		{ "/Plugin.Activate", activate },
		{ "/NetworkDriver.GetCapabilities", capabilities },
		{ "/NetworkDriver.CreateNetwork", create_network },
		{ "/NetworkDriver.DeleteNetwork", delete_network },
		{ "/NetworkDriver.CreateEndpoint", create_endpoint },
		{ "/NetworkDriver.DeleteEndpoint", delete_endpoint },
		{ "/NetworkDriver.EndpointOperInfo", info },
		{ "/NetworkDriver.Join", join },
		{ "/NetworkDriver.Leave", leave },
		{ "/NetworkDriver.ProgramExternalConnectivity", accept_silently },
		{ "/NetworkDriver.RevokeExternalConnectivity", accept_silently },
		{ "/NetworkDriver.DiscoverNew", accept_silently },
		{ "/NetworkDriver.DiscoverDelete", accept_silently },
	};
	int rc = -1;

	*answer = (struct method_answer){ .wait = -1 };
	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
		if (strcmp(path, methods[i].path) == 0) {
			rc = methods[i].run(request, answer, err);
			if (rc == 0 && !answer->reply)
				answer->reply = json_object();
			if (rc == 0 && !answer->reply)
				rc = err_set(err, "out of memory");
			if (rc)
				json_decref(answer->reply);
			return rc;
		}
	return err_set(err, "%s: there is no such method", path);
}
