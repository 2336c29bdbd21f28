/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox-net docker-driver: an HTTP server on a Unix socket where dockerd
 * looks for plugins. It holds no gate: each has a netgate of its own, which goes on when the driver ends or is started anew.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/notify.h"
#include "sandbox-net/docker/docker.h"
#include "sandbox-net/docker/methods.h"
#include "sandbox-net/docker/store.h"
#include "sandbox-net/docker/task.h"

#define SOCKET_PATH "/run/docker/plugins/netgate.sock"
#define STATE_PATH  "/var/lib/netgate/docker"
/* Of a request: dockerd's are far smaller, and written at once. A connection that is left idle it makes anew. */
#define HEADERS_MAX  16384     /* bytes, with the request line */
#define BODY_MAX     (1 << 20) /* bytes */
#define STALL_S	     10	       /* without a byte of a request, or of its answer being taken */
#define CONTENT_TYPE "application/vnd.docker.plugins.v1+json"

static const char help[] =
	"usage: sandbox-net docker-driver [--socket PATH] [--state DIR]\n"
	"\n"
	"A network driver for docker: each container of a network that was made with\n"
	"  docker network create -d netgate -o allow=HOST[,HOST...] NAME\n"
	"gets a gate as its only way out. Runs as root, in the foreground, in dockerd's network namespace.\n"
	"\n"
	"  --socket PATH         where dockerd looks for it (default: " SOCKET_PATH ")\n"
	"  --state DIR           where the networks' options are kept (default: " STATE_PATH ")\n"
	"  --help                this text\n";

/* ---- requests ---- */

static void reply(struct evhttp_request *req, const json_t *object)
{
	struct evbuffer *body = evbuffer_new();
	char *text = json_dumps(object, JSON_COMPACT);

	if (!body || !text) {
		evhttp_send_error(req, HTTP_INTERNAL, NULL);
	} else {
		evbuffer_add(body, text, strlen(text));
		evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type", CONTENT_TYPE);
		evhttp_send_reply(req, HTTP_OK, "OK", body);
	}
	free(text);
	if (body)
		evbuffer_free(body);
}

static void reply_error(struct evhttp_request *req, const struct err *err)
{
	json_t *object = json_pack("{s:s}", "Err", err->text);

	reply(req, object);
	json_decref(object);
}

/* A request whose answer is somebody else's work. */
struct waiting {
	struct evhttp_request *req; /* NULL: dockerd has hung up */
	struct event *ev;
	struct method_answer answer;
};

static void end_waiting(struct waiting *w)
{
	if (w->ev)
		event_free(w->ev);
	close(w->answer.wait);
	json_decref(w->answer.reply);
	free(w);
}

static void on_hang_up(struct evhttp_connection *connection, void *arg)
{
	struct waiting *w = arg;

	(void)connection;
	w->req = NULL;
}

static void on_answer(evutil_socket_t fd, short what, void *arg)
{
	struct waiting *w = arg;
	struct err err = { "" };
	int rc = task_read((int)fd, &err);

	(void)what;
	if (rc == 0)
		return;
	if (rc < 0 && w->answer.network[0])
		method_undo(w->answer.network);
	if (w->req) {
		evhttp_connection_set_closecb(evhttp_request_get_connection(w->req), NULL, NULL);
		if (rc > 0)
			reply(w->req, w->answer.reply);
		else
			reply_error(w->req, &err);
	}
	end_waiting(w);
}

/* Takes the answer. */
static void wait_for(struct evhttp_request *req, struct event_base *base, struct method_answer *answer)
{
	struct waiting *w = calloc(1, sizeof(*w));
	struct err err = { "out of memory" };

	if (w)
		*w = (struct waiting){ .req = req, .answer = *answer };
	if (w)
		w->ev = event_new(base, answer->wait, EV_READ | EV_PERSIST, on_answer, w);
	if (w && w->ev && event_add(w->ev, NULL) == 0) {
		evhttp_connection_set_closecb(evhttp_request_get_connection(req), on_hang_up, w);
		return;
	}
	reply_error(req, &err);
	if (answer->network[0])
		method_undo(answer->network);
	if (w) {
		end_waiting(w);
	} else {
		close(answer->wait);
		json_decref(answer->reply);
	}
}

static json_t *read_body(struct evhttp_request *req, struct err *err)
{
	struct evbuffer *body = evhttp_request_get_input_buffer(req);
	const size_t len = evbuffer_get_length(body);
	const char *text = len ? (const char *)evbuffer_pullup(body, -1) : "{}";
	json_t *object = text ? json_loadb(text, len ? len : 2, 0, NULL) : NULL;

	if (!object || !json_is_object(object))
		err_set(err, "the request is not a JSON object");
	if (object && !json_is_object(object)) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static void on_request(struct evhttp_request *req, void *arg)
{
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req));
	struct method_answer answer;
	struct err err = { "" };
	json_t *request = read_body(req, &err);

	if (!request || method_call(path ? path : "", request, &answer, &err)) {
		fprintf(stderr, "sandbox-net: docker-driver: %s\n", err.text);
		reply_error(req, &err);
	} else if (answer.wait >= 0) {
		wait_for(req, arg, &answer);
	} else {
		reply(req, answer.reply);
		json_decref(answer.reply);
	}
	json_decref(request);
}

/* ---- the socket ---- */

static int make_directory(const char *path, struct err *err)
{
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%s", path);
	for (char *slash = strchr(dir + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(dir, 0755) && errno != EEXIST)
			return err_set_errno(err, errno, "%s", dir);
		*slash = '/';
	}
	return 0;
}

static int open_socket(const char *path, struct err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd;

	if (path[0] != '/' || strlen(path) >= sizeof(addr.sun_path))
		return err_set(err, "--socket: an absolute path, at most %zu characters", sizeof(addr.sun_path) - 1);
	memcpy(addr.sun_path, path, strlen(path));
	if (make_directory(path, err))
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_set_errno(err, errno, "socket");
	/* The state's lock is ours: whoever left this is gone. Nobody but root may ask for anything. */
	if ((unlink(path) && errno != ENOENT) || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    chmod(path, 0600) || listen(fd, SOMAXCONN)) {
		err_set_errno(err, errno, "cannot listen on %s", path);
		close(fd);
		return -1;
	}
	return fd;
}

/* ---- the server ---- */

static void on_end(evutil_socket_t signo, short what, void *arg)
{
	(void)signo;
	(void)what;
	event_base_loopbreak(arg);
}

static void on_child(evutil_socket_t signo, short what, void *arg)
{
	(void)signo;
	(void)what;
	(void)arg;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
}

static int serve(struct event_base *base, int fd, struct err *err)
{
	struct event *term = evsignal_new(base, SIGTERM, on_end, base),
		     *intr = evsignal_new(base, SIGINT, on_end, base);
	struct event *child = evsignal_new(base, SIGCHLD, on_child, NULL);
	struct evhttp *http = evhttp_new(base);
	int rc = 0;

	signal(SIGPIPE, SIG_IGN);
	if (!term || !intr || !child || !http || event_add(term, NULL) || event_add(intr, NULL) ||
	    event_add(child, NULL) || evhttp_accept_socket(http, fd)) {
		rc = err_set(err, "cannot make an HTTP server");
	} else {
		evhttp_set_max_headers_size(http, HEADERS_MAX);
		evhttp_set_max_body_size(http, BODY_MAX);
		/* While a request is worked on, nothing is read, and this time does not run. */
		evhttp_set_timeout(http, STALL_S);
		evhttp_set_allowed_methods(http, EVHTTP_REQ_POST);
		evhttp_set_gencb(http, on_request, base);
		notify("READY=1");
		event_base_dispatch(base);
		notify("STOPPING=1");
	}
	if (http)
		evhttp_free(http); /* with the listening socket */
	if (term)
		event_free(term);
	if (intr)
		event_free(intr);
	if (child)
		event_free(child);
	return rc;
}

static int run(const char *path, const char *state, struct err *err)
{
	struct event_base *base;
	int fd, rc;

	if (geteuid() != 0)
		return err_set(err, "docker-driver: run it as root");
	if (store_open(state, err))
		return -1;
	fd = open_socket(path, err);
	if (fd < 0)
		return -1;
	base = event_base_new();
	rc = base ? serve(base, fd, err) : err_set(err, "cannot make an event base");
	if (base)
		event_base_free(base);
	(void)unlink(path);
	return rc;
}

int docker_driver_main(int argc, char **argv)
{
	const char *path = SOCKET_PATH, *state = STATE_PATH;
	struct err err = { "" };
	int rc = 0;

	for (int i = 1; i < argc && rc == 0; i++) {
		if (strcmp(argv[i], "--help") == 0) {
			fputs(help, stdout);
			return 0;
		}
		if (strcmp(argv[i], "--socket") == 0 && i + 1 < argc)
			path = argv[++i];
		else if (strcmp(argv[i], "--state") == 0 && i + 1 < argc)
			state = argv[++i];
		else
			rc = err_set(
				&err,
				"%s: no such option, or its value is missing; see sandbox-net docker-driver --help",
				argv[i]);
	}
	if (rc || run(path, state, &err)) {
		fprintf(stderr, "sandbox-net: %s\n", err.text);
		return DOCKER_FAILED;
	}
	return 0;
}
