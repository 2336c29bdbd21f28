/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox-net oci-service: a gate needs root, the containers of an ordinary
 * user's podman have none. The user's hook asks here, and gets a gate for a network
 * namespace of that very user's (the kernel says who owns it), with a policy that the
 * administrator permits to that user. One process a request, a few a user.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bucket.h"
#include "base/clock.h"
#include "base/err.h"
#include "sandbox-net/attach/jobs.h"
#include "sandbox-net/attach/options.h"
#include "sandbox-net/oci/connect.h"
#include "sandbox-net/oci/oci.h"
#include "sandbox-net/oci/place.h"
#include "sandbox-net/oci/request.h"

#define USERS_DIRECTORY "/etc/netgate/users"
#define LOCK_PATH	REQUEST_DIRECTORY "/lock"
#define AT_ONCE_MAX	32   /* requests */
#define AT_ONCE_USER	4    /* of one user */
#define SILENT_MS	2000 /* for a netgate to say what it has: a start waits for each that does not */
#define GATES_USER	128  /* of one user: their processes are root's, and count for none of the user's own limits */
#define SAID_RATE	10 /* refusals a second that are written to stderr, which ends in a journal that others need, too */
#define SAID_BURST	100

static const char help[] =
	"usage: sandbox-net oci-service [--permits DIR] [netgate's options]\n"
	"\n"
	"Attaches containers of ordinary users, as their oci-hook asks it to. Runs as root, in the foreground.\n"
	"\n"
	"  --permits DIR         DIR/USER holds the policies that USER's containers may choose from\n"
	"                        (default: " USERS_DIRECTORY "); without that directory the user is refused\n"
	"  --choose NAME         of these NAME.yaml: containers may narrow it, and choose no other\n"
	"  --help                this text\n"
	"\n"
	"Any other option is netgate's, such as --log FILE or --max-upload SIZE.\n";

struct service {
	const struct attach_options *options;
	const char *users;
	int sock, lock;
	struct {
		pid_t pid; /* 0: free */
		uid_t uid;
	} at_work[AT_ONCE_MAX];
	struct bucket said;
	uint64_t unsaid; /* refusals since the last one that was written */
};

static volatile sig_atomic_t stop;

static void on_signal(int signo)
{
	(void)signo;
	stop = 1;
}

/* ---- a request, in a process of its own ---- */

static int permits_of(const struct service *s, uid_t uid, char path[static PATH_MAX], struct err *err)
{
	const struct passwd *user = getpwuid(uid);
	char number[16];
	const char *name = user && attach_name_ok(user->pw_name) ? user->pw_name : number;
	struct stat st;

	snprintf(number, sizeof(number), "%u", uid);
	if (snprintf(path, PATH_MAX, "%s/%s", s->users, name) >= PATH_MAX)
		return err_set(err, "the path is too long");
	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return err_set(err, "the administrator permits nothing to user %s: there is no directory %s", name,
			       path);
	return 0;
}

/* A gate's job has a name of this user's alone: it must not stand in the way of another's. */
static int name_prefix(char *out, size_t cap, uid_t uid)
{
	return snprintf(out, cap, "u%u-", uid);
}

/* Requests of a user on which another process works. */
static size_t at_work(const struct service *s, uid_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < AT_ONCE_MAX; i++)
		n += s->at_work[i].pid && s->at_work[i].uid == uid;
	return n;
}

struct count {
	const char *permits;
	char prefix[16];
	size_t n;
};

static int count_gate(void *arg, const struct jobs_entry *entry)
{
	struct count *c = arg;

	c->n += entry->sandbox && strncmp(entry->sandbox->name, c->prefix, strlen(c->prefix)) == 0;
	return 0;
}

/* Without an answer, a gate of the user's own is one; in a job that he may join there may be any number; others are no concern of his. */
static int count_silent(void *arg, const char *job)
{
	struct count *c = arg;
	struct choice choice = { .job = "" };
	struct err err;

	if (strncmp(job, c->prefix, strlen(c->prefix)) == 0) {
		c->n++;
		return 0;
	}
	snprintf(choice.job, sizeof(choice.job), "%s", job);
	return choice_may_join(&choice, c->permits, &err) == 0;
}

/* Those that there are, in whatever job, and those that may come of what is being worked on, some of which may be there already. */
static int check_number_of_gates(const struct service *s, uid_t uid, const char *permits, struct err *err)
{
	struct count c = { .permits = permits, .n = at_work(s, uid) };
	int rc;

	name_prefix(c.prefix, sizeof(c.prefix), uid);
	rc = jobs_visit_all(SILENT_MS, count_gate, count_silent, &c, err);
	if (rc < 0)
		return -1;
	if (rc > 0)
		return err_set(err, "a job that user %u may join does not say how many gates it has", uid);
	return c.n < GATES_USER
		       ? 0
		       : err_set(err, "user %u has %d gates, which is as many as one may have", uid, GATES_USER);
}

static int serve(const struct service *s, uid_t uid, const char *permits, struct request_msg *msg, struct err *err)
{
	/* Not the runtime's own process counts, which is there now, but what the user makes of it: the worst. */
	static const struct vet_known known = { .caps = ~0ull, .filter = VET_FILTER_NOT_KNOWN };
	static struct attach_options options;
	char pid[16], name[ATTACH_NAME_MAX + 8], to[ATTACH_TO_MAX];
	int prefix;

	if (msg->magic != REQUEST_MAGIC || msg->ended > 1 || (msg->pid <= 1 && !msg->ended) ||
	    !memchr(msg->id, 0, sizeof(msg->id)) || !attach_name_ok(msg->id))
		return err_set(err, "a malformed request");
	if (choice_check(&msg->choice, err))
		return -1;
	prefix = name_prefix(name, sizeof(name), uid);
	snprintf(name + prefix, sizeof(name) - (size_t)prefix, "%.*s", ATTACH_NAME_MAX - 12, msg->id);
	connect_end(name, &msg->choice);
	if (msg->ended)
		return 0;
	if (check_number_of_gates(s, uid, permits, err))
		return -1;
	snprintf(pid, sizeof(pid), "%d", msg->pid);
	snprintf(to, sizeof(to), "container %s of user %u", msg->id, uid);
	options = *s->options;
	options.kind = TARGET_PID;
	options.what = pid;
	options.name = name;
	options.to = to;
	options.known = &known;
	options.alone = msg->alone != 0;
	options.has_owner = true;
	options.owner = uid;
	return connect_container(&options, &msg->choice, permits, err);
}

/* What the gate's netgate says while it starts is why it doesn't: from here on stderr is a file. Returns it, or -1. */
static int keep_stderr(int *real)
{
	int kept = memfd_create("stderr", MFD_CLOEXEC);

	*real = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (kept >= 0 && *real >= 0 && dup2(kept, STDERR_FILENO) >= 0)
		return kept;
	return -1;
}

/* Adds what was kept to the answer, and says all of it on the real stderr. */
static void tell(int kept, int real, uid_t uid, struct answer_msg *answer)
{
	char said[ERR_TEXT_MAX] = "";
	ssize_t n = kept < 0 ? 0 : pread(kept, said, sizeof(said) - 1, 0);

	said[n > 0 ? n : 0] = '\0';
	if (real >= 0)
		dprintf(real, "sandbox-net: user %u: %s\n%s", uid, answer->refused ? answer->text : "done", said);
	if (answer->refused) {
		const size_t len = strlen(answer->text);

		snprintf(answer->text + len, sizeof(answer->text) - len, "\n%s", said);
	}
}

static void work(const struct service *s, int sock, uid_t uid, const char *permits)
{
	struct answer_msg answer = { .magic = REQUEST_MAGIC };
	struct request_msg *msg = calloc(1, sizeof(*msg));
	struct err err = { "" };
	int real = -1, kept = keep_stderr(&real);

	/* Nobody is worked for longer than he waits. */
	alarm(REQUEST_WAIT_S);
	close(s->sock);
	close(s->lock);
	if (!msg)
		err_set(&err, "out of memory");
	else if (recv(sock, msg, sizeof(*msg), MSG_TRUNC) != sizeof(*msg))
		err_set(&err, "a malformed request");
	else if (serve(s, uid, permits, msg, &err) == 0)
		err.text[0] = '\0';
	free(msg);
	answer.refused = err.text[0] ? REQUEST_REFUSED : 0;
	memcpy(answer.text, err.text, sizeof(answer.text));
	tell(kept, real, uid, &answer);
	(void)send(sock, &answer, sizeof(answer), MSG_NOSIGNAL);
}

/* ---- the service ---- */

static void reap(struct service *s, int flags)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, flags)) > 0) {
		for (size_t i = 0; i < AT_ONCE_MAX; i++)
			if (s->at_work[i].pid == pid)
				s->at_work[i].pid = 0;
		flags = WNOHANG;
	}
}

/* A free place for this user; NULL when there is none. */
static pid_t *place_for(struct service *s, uid_t uid)
{
	pid_t *free_one = NULL;

	for (size_t i = 0; i < AT_ONCE_MAX; i++)
		if (!s->at_work[i].pid) {
			free_one = &s->at_work[i].pid;
			s->at_work[i].uid = uid;
		}
	return at_work(s, uid) < AT_ONCE_USER ? free_one : NULL;
}

static void say_unsaid(struct service *s)
{
	if (s->unsaid > 0)
		fprintf(stderr, "sandbox-net: %llu more requests were refused\n", (unsigned long long)s->unsaid);
	s->unsaid = 0;
}

/* Everybody may ask, as often as he likes. */
static void say_refused(struct service *s, uid_t uid, const char *why)
{
	if (!bucket_take(&s->said, clock_mono_us())) {
		s->unsaid++;
		return;
	}
	say_unsaid(s);
	fprintf(stderr, "sandbox-net: user %u: %s\n", uid, why);
}

/* What was not read would reach the other side as an error, before the answer. */
static void refuse(struct service *s, int sock, uid_t uid, uint32_t how, const char *why)
{
	struct answer_msg answer = { .magic = REQUEST_MAGIC, .refused = how };
	char scrap;

	snprintf(answer.text, sizeof(answer.text), "%s", why);
	say_refused(s, uid, why);
	(void)!recv(sock, &scrap, sizeof(scrap), MSG_DONTWAIT);
	(void)send(sock, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Only who may have a gate takes one of the places: a user has many ids to come with (/etc/subuid). */
static void begin(struct service *s, int sock, uid_t uid)
{
	char permits[PATH_MAX];
	struct err err;
	pid_t *place;

	if (permits_of(s, uid, permits, &err)) {
		refuse(s, sock, uid, REQUEST_REFUSED, err.text);
		return;
	}
	place = place_for(s, uid);
	if (!place) {
		refuse(s, sock, uid, REQUEST_BUSY, "the service is busy with other containers");
		return;
	}
	*place = fork();
	if (*place == 0) {
		work(s, sock, uid, permits);
		_exit(0);
	}
	if (*place < 0)
		*place = 0;
}

static void accept_one(struct service *s)
{
	int sock = accept4(s->sock, NULL, NULL, SOCK_CLOEXEC);
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (sock < 0)
		return;
	reap(s, WNOHANG);
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0)
		begin(s, sock, peer.uid);
	close(sock);
}

static int listen_there(struct service *s, struct err *err)
{
	const struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = REQUEST_PATH };
	char path[PATH_MAX];

	if (mkdir(REQUEST_DIRECTORY, 0755) && errno != EEXIST)
		return err_set_errno(err, errno, REQUEST_DIRECTORY);
	/* Not the directory itself: every user may open that, and could hold its lock against a service that starts. */
	s->lock = open(LOCK_PATH, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock < 0 || flock(s->lock, LOCK_EX | LOCK_NB))
		return err_set_errno(err, errno, LOCK_PATH " (does the service run already?)");
	if (place_write_resolv_conf(REQUEST_DIRECTORY, path, err))
		return -1;
	s->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (unlink(REQUEST_PATH) && errno != ENOENT)
		return err_set_errno(err, errno, REQUEST_PATH);
	if (s->sock < 0 || bind(s->sock, (const struct sockaddr *)&at, sizeof(at)) || chmod(REQUEST_PATH, 0666) ||
	    chmod(REQUEST_DIRECTORY, 0755) || listen(s->sock, SOMAXCONN))
		return err_set_errno(err, errno, REQUEST_PATH);
	return 0;
}

static int run(struct service *s, struct err *err)
{
	const struct sigaction action = { .sa_handler = on_signal };

	if (!place_is_host())
		return err_set(err, "the service is root's, in the host's own user namespace");
	if (listen_there(s, err))
		return -1;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	s->said = bucket_full(SAID_RATE, SAID_BURST, clock_mono_us());
	while (!stop)
		accept_one(s);
	say_unsaid(s);
	(void)unlink(REQUEST_PATH);
	return 0;
}

int oci_service_main(int argc, char **argv)
{
	static struct attach_options options;
	struct service s = { .options = &options, .sock = -1, .lock = -1 };
	struct err err = { "" };

	if (hook_options_parse(argc, argv, false, &options, &err) == 0) {
		if (options.help) {
			fputs(help, stdout);
			return 0;
		}
		s.users = options.permits ? options.permits : USERS_DIRECTORY;
		if (run(&s, &err) == 0)
			return 0;
	}
	fprintf(stderr, "sandbox-net: %s\n", err.text);
	return OCI_FAILED;
}
