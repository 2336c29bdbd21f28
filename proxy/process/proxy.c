/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy's life, in order:
 *
 *   set-up    event base, resolver, guard: what needs a path or another kind of socket
 *   isolate   no privilege, no files, seccomp (isolation.h), while the launcher still builds
 *   gate      the launcher's sockets arrive; from here on hostile bytes may come
 *   READY     the launcher probes: every door answers with its nonce
 *   ARMED     the start record is written, the policy is in force, the command starts
 *   FINISH    the sandbox is gone: take what still waits, end every connection, read G's
 *             counters through the monitor, write the difference and the end record
 *
 * Size: one life told in one place; what is done at each stage is in files of its own.
 */
#include "proxy/process/proxy.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fdpass.h"
#include "base/report.h"
#include "base/tell.h"
#include "proxy/audit/audit.h"
#include "proxy/audit/drops.h"
#include "proxy/audit/outcome.h"
#include "proxy/audit/quic.h"
#include "proxy/conn/charge.h"
#include "proxy/conn/env.h"
#include "proxy/conn/pipe_pool.h"
#include "proxy/dns/dns_map.h"
#include "proxy/dns/dns_server.h"
#include "proxy/guest/guest.h"
#include "proxy/process/attribution.h"
#include "proxy/process/descriptors.h"
#include "proxy/process/handoff.h"
#include "proxy/process/isolation.h"
#include "proxy/process/link.h"
#include "proxy/process/probe.h"
#include "proxy/upstream/dial.h"
#include "proxy/upstream/guard.h"
#include "proxy/upstream/resolver.h"
#include "proxy/wire/http1.h"
#include "proxy/wire/tls_hello.h"
#include "rules/policy.h"

#define FLUSH_MAX_US (5 * 1000000u) /* how long bytes that a finished command left behind may take to go upstream */
#define FINISH_TURNS 4		    /* turns of the loop that take what waits in the sockets of G */

struct proxy {
	const struct proxy_config *config;
	struct event_base *base;
	struct resolver *resolver;
	struct guard *guard;
	struct audit *audit;
	struct quic *quic;
	struct dialer dialer;
	struct dns_map *map;
	struct dns_server *dns;
	struct drops *drops;
	struct guest *guest; /* NULL: the sandbox is no virtual machine */
	struct attribution *attribution;
	struct probe *probe;
	struct listener *listener;
	struct conn_env env;
	struct descriptors descriptors;
	struct link_watch *link; /* of an attached sandbox */
	struct event *handoff_ev, *monitor_ev;
	int log_fd;
	int handoff_fd; /* -1 once armed */
	int gate[HANDOFF_FDS];
	struct handoff_msg given; /* with the sockets */
	uint64_t probe_datagrams; /* of the launcher, which G counts as DNS */
	int32_t wait_status;
	uint32_t end; /* enum monitor_end */
	struct resource_hits hits;
	bool armed, monitor_gone, ended;
	bool ok;   /* the end record is written */
	bool told; /* a person knows why it is not */
};

static void complain(struct proxy *p, const char *text)
{
	p->told = true;
	if (p->config->result_fd >= 0)
		outcome_write_error(p->config->result_fd, text);
	else
		tell(p->config->tell_fd, "%s", text);
}

/* ---- the end ---- */

static void print_summary(const struct proxy *p)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return;
	audit_summary(p->audit, f);
	if (fclose(f) == 0 && len > 0 && p->config->sandbox)
		tell(p->config->tell_fd, "sandbox %s:", p->config->sandbox);
	if (len > 0)
		tell_write(p->config->tell_fd, text, len);
	free(text);
}

static const char *end_word(uint32_t end)
{
	static const char *const words[MONITOR_END_COUNT] = {
#define X(id, word) [MONITOR_END_##id] = word,
		MONITOR_ENDS
#undef X
	};

	return end < MONITOR_END_COUNT ? words[end] : NULL;
}

static void finish_with_counters(struct proxy *p, const struct monitor_msg *counted)
{
	struct audit_end end = {
		.wait_status = p->wait_status, .hits = p->hits, .ended = end_word(p->end), .accepts = p->env.accepts
	};

	if (counted && !counted->failed) {
		drops_reconcile(p->drops, counted->packets, counted->bytes, p->env.accepts + p->env.probes, true);
		drops_record_untaken(p->audit, 53, REASON_DNS_OVERFLOW, counted->packets[GATE_COUNTER_DNS],
				     p->probe_datagrams + dns_server_taken(p->dns));
		drops_record_untaken(p->audit, 67, REASON_UDP, counted->packets[GATE_COUNTER_DHCP],
				     p->guest ? guest_taken(p->guest) : 0);
		end.syns = counted->packets[GATE_COUNTER_SYN] - p->env.probes;
		end.counted = true;
	}
	p->ended = true;
	p->ok = audit_end(p->audit, &end) == 0;
	if (!p->ok)
		complain(p, "the end of this job could not be recorded: the log can't be written");
	if (p->config->result_fd >= 0)
		audit_outcomes(p->audit, p->config->result_fd);
	else if (p->config->summary)
		print_summary(p);
	if (!p->monitor_gone) {
		struct monitor_msg ended = { .type = MONITOR_ENDED };

		audit_head(p->audit, ended.head);
		(void)!fdpass_send(p->config->monitor_fd, &ended, sizeof(ended), NULL, 0);
	}
}

/* Whether the sandbox goes on and still has its link: an attached one whose gate is taken away. */
static bool sandbox_goes_on(const struct proxy *p)
{
	return p->end != MONITOR_END_COMMAND && p->end != MONITOR_END_SANDBOX_GONE &&
	       p->end != MONITOR_END_LINK_DELETED;
}

/*
 * Takes what waits in G's sockets and lets bytes that a finished command left behind reach their upstream. A sandbox that
 * goes on could leave ever more of them: nothing is waited for.
 */
static void drain(struct proxy *p)
{
	uint64_t end = clock_mono_us() + (sandbox_goes_on(p) ? 0 : FLUSH_MAX_US);
	const struct timeval tick = { .tv_usec = 20000 };

	for (int i = 0; i < FINISH_TURNS; i++)
		event_base_loop(p->base, EVLOOP_NONBLOCK);
	listener_stop(p->listener);
	while (conn_any_pending(&p->env) && clock_mono_us() < end) {
		event_base_loopexit(p->base, &tick);
		event_base_loop(p->base, EVLOOP_ONCE);
	}
	conn_end_all(&p->env);
	attribution_finish(p->attribution);
	drops_flush(p->drops);
}

/* The sandbox is gone, or the monitor: brings the job to its end. Runs outside of the loop, which it turns itself. */
static void finish(struct proxy *p)
{
	const struct monitor_msg ask = { .type = MONITOR_COUNTERS };

	drain(p);
	if (!p->monitor_gone && fdpass_send(p->config->monitor_fd, &ask, sizeof(ask), &p->gate[HANDOFF_NFT], 1) == 0)
		event_base_loop(p->base, EVLOOP_NO_EXIT_ON_EMPTY);
	if (!p->ended)
		finish_with_counters(p, NULL);
}

/* ---- events ---- */

/* The log goes on in this file, if it is one. Takes `fd`. */
static void move_log(struct proxy *p, int fd)
{
	int former = audit_move(p->audit, fd) == 0 ? p->log_fd : fd;

	if (former == p->log_fd)
		p->log_fd = fd;
	close(former);
}

static void on_monitor(evutil_socket_t fd, short what, void *arg)
{
	struct proxy *p = arg;
	struct monitor_msg msg;
	size_t n_fds = 0;
	int fd_in = -1;
	ssize_t n = fdpass_recv((int)fd, &msg, sizeof(msg), &fd_in, 1, &n_fds);

	(void)what;
	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n != sizeof(msg)) {
		/* The monitor is gone, and with it the sandbox: record the end and die, which closes G's last sockets. */
		p->monitor_gone = true;
		if (p->config->attached && p->end == MONITOR_END_COMMAND)
			p->end = MONITOR_END_KILLED;
		event_base_loopbreak(p->base);
		return;
	}
	if (msg.type == MONITOR_FINDER && n_fds == 1) {
		attribution_use(p->attribution, fd_in);
		return;
	}
	if (msg.type == MONITOR_SETTLED && n_fds == 0 && p->link) {
		link_watch_settle(p->link);
		return;
	}
	if (msg.type == MONITOR_LOG && n_fds == 1) {
		move_log(p, fd_in);
		return;
	}
	if (n_fds > 0)
		close(fd_in);
	if (msg.type == MONITOR_FINISH) {
		p->wait_status = msg.status;
		p->end = msg.ended;
		p->hits = msg.hits;
	} else if (msg.type == MONITOR_COUNTED && p->armed) {
		finish_with_counters(p, &msg);
	}
	event_base_loopbreak(p->base);
}

/* Nothing can come from the sandbox any more. The monitor finds out why, and has the end recorded. */
static void on_link_gone(void *arg)
{
	const struct monitor_msg gone = { .type = MONITOR_LINK_GONE };
	struct proxy *p = arg;

	(void)!fdpass_send(p->config->monitor_fd, &gone, sizeof(gone), NULL, 0);
}

/* The record comes first; when it can't be written, all the more must the monitor know. */
static void on_link_other(void *arg, const char *name)
{
	const struct monitor_msg other = { .type = MONITOR_LINK_OTHER };
	struct proxy *p = arg;

	(void)audit_interface(p->audit, name);
	(void)!fdpass_send(p->config->monitor_fd, &other, sizeof(other), NULL, 0);
}

/* The sandbox is a virtual machine: its guest is at the other end, and its processes are nobody's to see. */
static bool is_machine(const struct proxy *p)
{
	return p->gate[HANDOFF_GUEST] >= 0;
}

static void on_connection(void *arg, uint64_t conn, const struct endpoint *src, const struct endpoint *dst)
{
	struct proxy *p = arg;

	if (!is_machine(p))
		attribution_tcp(p->attribution, conn, src, dst);
}

static void on_connection_end(void *arg, uint64_t conn, int fd)
{
	struct proxy *p = arg;

	attribution_close(p->attribution, conn, fd);
}

static void on_query(void *arg, const struct endpoint *src, const struct endpoint *dst)
{
	struct proxy *p = arg;

	if (!is_machine(p))
		attribution_udp(p->attribution, src, dst);
}

static int record_start(struct proxy *p)
{
	const struct audit_attached *attached = p->config->attached;
	int ret = attached ? audit_start_attached(p->audit, attached) : audit_start(p->audit, p->config->command);
	struct err err = { "" };

	if (ret < 0) {
		(void)err_set(&err, "the log can't be written (%s), so the %s", audit_why(ret),
			      attached ? "sandbox was not attached" : "command was not started");
		complain(p, err.text);
	}
	return ret;
}

/*
 * An attached sandbox's end is seen by its link; a command's by its launcher. That one's socket for links is closed: open, the kernel would
 * go by it at every change of a link, route or address in whichever namespace, and each start would be slower by every sandbox there is.
 */
static int watch_link(struct proxy *p)
{
	if (p->config->attached) {
		p->link = link_watch_new(p->base, &(struct link_watch_config){ .fd = p->gate[HANDOFF_LINK],
									       .tap = p->given.tap,
									       .gone = on_link_gone,
									       .other = on_link_other,
									       .arg = p });
		return p->link ? 0 : -ENOMEM;
	}
	close(p->gate[HANDOFF_LINK]);
	p->gate[HANDOFF_LINK] = -1;
	return 0;
}

/* The launcher's probes came back right: put the policy in force, and only then let the command start. */
static int arm(struct proxy *p, const uint32_t holder[static RESOURCE_COUNT])
{
	const struct dns_server_config dns = {
		.base = p->base,
		.policy = p->config->policy,
		.audit = p->audit,
		.map = p->map,
		.udp4 = p->gate[HANDOFF_UDP4],
		.udp6 = p->gate[HANDOFF_UDP6],
		.asked = on_query,
		.asked_arg = p,
	};

	p->probe_datagrams = probe_answered(p->probe);
	probe_free(p->probe);
	p->probe = NULL;
	p->dns = dns_server_new(&dns);
	if (!p->dns)
		return -ENOMEM;
	p->env.dns = p->dns;
	audit_holders(p->audit, holder);
	if (record_start(p) < 0)
		return -EIO;
	if (watch_link(p) < 0)
		return -ENOMEM;
	p->drops = drops_new(p->base, p->gate[HANDOFF_NFLOG], p->audit, p->quic);
	if (!p->drops)
		return -ENOMEM;
	if (is_machine(p)) {
		p->guest = guest_new(p->base, p->gate[HANDOFF_GUEST], p->audit);
		if (!p->guest)
			return -ENOMEM;
	}
	listener_probe(p->listener, NULL);
	p->armed = true;
	return handoff_say(p->handoff_fd, HANDOFF_ARMED);
}

static void on_handoff(evutil_socket_t fd, short what, void *arg)
{
	struct proxy *p = arg;
	uint32_t holder[RESOURCE_COUNT];
	int order = handoff_take_order((int)fd, holder);

	(void)what;
	if (order == 0)
		return;
	if (order < 0 || arm(p, holder) < 0) {
		event_base_loopbreak(p->base);
		return;
	}
	event_free(p->handoff_ev);
	p->handoff_ev = NULL;
	close(p->handoff_fd);
	p->handoff_fd = -1;
}

/* ---- set-up ---- */

static struct event_base *make_base(void)
{
	struct event_config *cfg = event_config_new();
	struct event_base *base;

	if (!cfg)
		return NULL;
	/* One epoll_ctl(2) for all that a turn changes about a descriptor. None is ever duplicated, which that asks for. */
	event_config_set_flag(cfg, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV |
					   EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
	base = event_base_new_with_config(cfg);
	event_config_free(cfg);
	return base;
}

static struct audit *make_audit(const struct proxy *p)
{
	const struct audit_config config = {
		.fd = p->log_fd,
		.verbose_fd = p->config->verbose ? p->config->tell_fd : -1,
		.tell_fd = p->config->tell_fd,
		.job = p->config->job,
		.sandbox = p->config->sandbox,
		.policy = p->config->policy,
		.fixed = p->config->fixed,
		.limits = p->config->limits,
		.base = p->base,
	};

	return audit_new(&config);
}

static int set_up(struct proxy *p, struct err *err)
{
	struct rlimit limit = { .rlim_cur = 0 };

	p->base = make_base();
	if (!p->base)
		return err_set(err, "cannot make an event base");
	p->resolver = resolver_new(p->base, p->config->resolvers, p->config->n_resolvers, err);
	p->guard = p->resolver ? guard_new(err) : NULL;
	if (!p->guard)
		return -1;
	/* The start record says whose job it is, so it asks before the isolation. */
	p->audit = make_audit(p);
	if (!p->audit)
		return err_set_errno(err, errno, "the audit log");
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	p->descriptors = descriptors_share(limit.rlim_cur);
	p->quic = quic_new();
	return p->quic ? 0 : err_set(err, "out of memory");
}

static int make_doors(struct proxy *p)
{
	const struct limits *limits = policy_limits(p->config->policy);
	struct conn_env *env = &p->env;

	p->map = dns_map_new();
	if (p->map && limits->max[LIMIT_NAMES])
		dns_map_limit(p->map, limits->max[LIMIT_NAMES]);
	p->attribution = attribution_new(p->base, p->audit);
	p->dialer = (struct dialer){ .base = p->base,
				     .resolver = p->resolver,
				     .guard = p->guard,
				     .audit = p->audit,
				     .policy = p->config->policy,
				     .races_max = p->descriptors.races };
	*env = (struct conn_env){ .base = p->base,
				  .policy = p->config->policy,
				  .audit = p->audit,
				  .map = p->map,
				  .dialer = &p->dialer,
				  .pool = pipe_pool_new(),
				  .scratch = malloc(TLS_HELLO_MAX),
				  .head = malloc(sizeof(struct http1_head)),
				  .budget = budget_of(limits, p->descriptors.connections, clock_mono_us()),
				  .witness = { on_connection, on_connection_end, p },
				  .next_id = 1 };
	env->gate4 = p->given.layout.gate4;
	env->gate6 = p->given.layout.gate6;
	LIST_INIT(&env->conns);
	LIST_INIT(&env->cuts);
	if (p->map && charge_init(env) < 0)
		return -1;
	p->listener = listener_new(env, p->gate[HANDOFF_TCP4], p->gate[HANDOFF_TCP6]);
	p->probe = probe_new(p->base, p->gate[HANDOFF_UDP4], p->gate[HANDOFF_UDP6], p->given.nonce);
	p->handoff_ev = event_new(p->base, p->handoff_fd, EV_READ | EV_PERSIST, on_handoff, p);
	p->monitor_ev = event_new(p->base, p->config->monitor_fd, EV_READ | EV_PERSIST, on_monitor, p);
	if (!p->map || !p->attribution || !env->pool || !env->scratch || !env->head || !p->listener || !p->probe ||
	    !p->handoff_ev || !p->monitor_ev || event_add(p->handoff_ev, NULL) < 0 ||
	    event_add(p->monitor_ev, NULL) < 0)
		return -1;
	listener_probe(p->listener, p->given.nonce);
	return 0;
}

static void tear_down(struct proxy *p)
{
	if (p->drops)
		drops_free(p->drops);
	quic_free(p->quic);
	guest_free(p->guest);
	if (p->dns)
		dns_server_free(p->dns);
	link_watch_free(p->link);
	listener_free(p->listener);
	probe_free(p->probe);
	attribution_free(p->attribution);
	if (p->handoff_ev)
		event_free(p->handoff_ev);
	if (p->monitor_ev)
		event_free(p->monitor_ev);
	if (p->resolver)
		resolver_free(p->resolver);
	if (p->guard)
		guard_free(p->guard);
	if (p->map)
		dns_map_free(p->map);
	if (p->audit)
		audit_free(p->audit);
	pipe_pool_free(p->env.pool);
	free(p->env.rule_budgets);
	free(p->env.scratch);
	free(p->env.head);
	if (p->base)
		event_base_free(p->base);
}

/* The terminal's and the group's signals are the command's and the monitor's business. */
static void ignore_signals(void)
{
	static const int signals[] = { SIGPIPE, SIGXFSZ, SIGINT,  SIGQUIT, SIGTERM, SIGHUP,
				       SIGTSTP, SIGTTOU, SIGTTIN, SIGUSR1, SIGUSR2 };

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], SIG_IGN);
}

int proxy_run(const struct proxy_config *config)
{
	struct proxy p = {
		.config = config, .log_fd = config->log_fd, .handoff_fd = config->handoff_fd, .wait_status = -1
	};
	struct err err = { "" };

	ignore_signals();
	if (set_up(&p, &err) < 0 || isolation_drop_privileges(&err) < 0 || isolation_seccomp(&err) < 0) {
		complain(&p, err.text);
	} else if (handoff_take_gate(p.handoff_fd, p.gate, &p.given, &err) < 0) {
		if (err.text[0])
			complain(&p, err.text);
	} else {
		if (make_doors(&p) < 0 || handoff_say(p.handoff_fd, HANDOFF_READY) < 0)
			complain(&p, "proxy: out of memory");
		else
			event_base_loop(p.base, EVLOOP_NO_EXIT_ON_EMPTY);
		if (p.armed)
			finish(&p);
	}
	tear_down(&p);
	return p.ok ? 0 : p.told ? PROXY_SAID_WHY : 1;
}
