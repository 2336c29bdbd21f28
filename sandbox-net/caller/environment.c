/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command's environment. What is left out points to services of the host
 * that are out of reach in the sandbox, so that programs do not stumble over
 * them; nothing secret is looked for, since a list of secrets is never complete.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/handoff.h"
#include "sandbox-net/caller/user.h"

#define TEXT_OF(x)  #x
#define TEXT(x)	    TEXT_OF(x)
#define HTTP_PROXY  "http://" GATE_ADDR4 ":" TEXT(GATE_PROXY_PORT)
#define SOCKS_PROXY "socks5h://" GATE_ADDR4 ":" TEXT(GATE_SOCKS_PORT)
#define NO_PROXY    "localhost,127.0.0.1,::1"

/* A trailing '*' stands for any rest. */
static const char *const dropped[] = {
	"SSH_AUTH_SOCK",   "SSH_AGENT_PID", "SSH_CONNECTION",
	"SSH_CLIENT",	   "SSH_TTY",	    "DBUS_*",
	"XDG_RUNTIME_DIR", "SUDO_*",	    "GPG_AGENT_INFO",
	"DOCKER_HOST",	   "PODMAN_*",	    "CONTAINER_HOST",
	"WAYLAND_DISPLAY", "NOTIFY_SOCKET", "LISTEN_*",
	"http_proxy",	   "https_proxy",   "ftp_proxy",
	"all_proxy",	   "no_proxy",	    "HTTP_PROXY",
	"HTTPS_PROXY",	   "FTP_PROXY",	    "ALL_PROXY",
	"NO_PROXY",	   "GPG_TTY",	    "PWD",
	"OLDPWD",
};

static bool name_matches(const char *pattern, const char *entry, size_t name_len)
{
	size_t n = strlen(pattern);

	if (n > 0 && pattern[n - 1] == '*')
		return name_len >= n - 1 && memcmp(pattern, entry, n - 1) == 0;
	return name_len == n && memcmp(pattern, entry, n) == 0;
}

static bool is_dropped(const char *entry, size_t name_len)
{
	for (size_t i = 0; i < sizeof(dropped) / sizeof(*dropped); i++)
		if (name_matches(dropped[i], entry, name_len))
			return true;
	return false;
}

/* A directory for temporary files that isn't the sandbox's own /tmp is there only if it is in the workspace. */
static bool is_foreign_tmpdir(const char *entry, const char *cwd)
{
	size_t n = strlen(cwd);

	if (strncmp(entry, "TMPDIR=", 7) != 0 || strcmp(entry + 7, "/tmp") == 0)
		return false;
	return strncmp(entry + 7, cwd, n) != 0 || (entry[7 + n] && entry[7 + n] != '/');
}

struct variable {
	const char *name;
	const char *value; /* NULL or "": unset */
	bool keep;	   /* one that the caller has set stays */
};

static bool env_has(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; env[i]; i++)
		if (strncmp(env[i], name, n) == 0 && env[i][n] == '=' && env[i][n + 1])
			return true;
	return false;
}

static int append(char **out, size_t *n, const char *name, const char *value)
{
	if (asprintf(&out[*n], "%s=%s", name, value) < 0) {
		out[*n] = NULL;
		return -1;
	}
	(*n)++;
	return 0;
}

static bool is_replaced(const struct variable *vars, size_t n_vars, const char *entry, size_t name_len)
{
	for (size_t i = 0; i < n_vars; i++)
		if (!vars[i].keep && name_matches(vars[i].name, entry, name_len))
			return true;
	return false;
}

char **user_environment(char *const *env, const struct user *u, const char *cwd, bool proxies)
{
	const char *http = proxies ? HTTP_PROXY : NULL, *socks = proxies ? SOCKS_PROXY : NULL;
	const char *direct = proxies ? NO_PROXY : NULL;
	struct variable vars[] = {
		{ "HOME", u->home[0] ? u->home : "/", u->is_caller },
		{ "USER", u->name, u->is_caller },
		{ "LOGNAME", u->name, u->is_caller },
		{ "SHELL", u->shell, u->is_caller },
		{ "PWD", cwd, false },
		{ "http_proxy", http, false },
		{ "HTTP_PROXY", http, false },
		{ "https_proxy", http, false },
		{ "HTTPS_PROXY", http, false },
		{ "all_proxy", socks, false },
		{ "ALL_PROXY", socks, false },
		{ "no_proxy", direct, false },
		{ "NO_PROXY", direct, false },
	};
	const size_t n_vars = sizeof(vars) / sizeof(*vars);
	size_t n_env = 0, n = 0;
	char **out;

	while (env[n_env])
		n_env++;
	for (size_t i = 0; i < n_vars; i++)
		vars[i].keep = vars[i].keep && env_has(env, vars[i].name);
	out = calloc(n_env + n_vars + 1, sizeof(*out));
	if (!out)
		return NULL;
	for (size_t i = 0; i < n_env; i++) {
		size_t name_len = strcspn(env[i], "=");

		if (is_dropped(env[i], name_len) || is_foreign_tmpdir(env[i], cwd) ||
		    is_replaced(vars, n_vars, env[i], name_len))
			continue;
		out[n] = strdup(env[i]);
		if (!out[n])
			goto fail;
		n++;
	}
	for (size_t i = 0; i < n_vars; i++)
		if (!vars[i].keep && vars[i].value && vars[i].value[0] && append(out, &n, vars[i].name, vars[i].value))
			goto fail;
	return out;
fail:
	user_environment_free(out);
	return NULL;
}

void user_environment_free(char **env)
{
	if (!env)
		return;
	for (size_t i = 0; env[i]; i++)
		free(env[i]);
	free(env);
}
