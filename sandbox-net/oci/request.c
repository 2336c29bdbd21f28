/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sandbox-net/oci/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define BUSY_PAUSE_US 200000 /* between two requests */
#define BUSY_TRIES    150

static int connect_service(struct err *err)
{
	const struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = REQUEST_PATH };
	const struct timeval wait = { .tv_sec = REQUEST_WAIT_S };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (sock < 0)
		return err_set_errno(err, errno, "socket");
	if (connect(sock, (const struct sockaddr *)&to, sizeof(to)) == 0 &&
	    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) == 0)
		return sock;
	err_set_errno(err, errno, REQUEST_PATH ": " REQUEST_NEEDED);
	close(sock);
	return -1;
}

/* Takes `msg`; NULL: there was no memory for it. Returns 0; REQUEST_BUSY with err set; or -1. */
static int ask(struct request_msg *msg, const char *id, const struct choice *choice, struct err *err)
{
	struct answer_msg answer;
	int sock = msg ? connect_service(err) : err_set(err, "out of memory");
	ssize_t n = -1;

	if (msg && sock >= 0) {
		msg->magic = REQUEST_MAGIC;
		msg->choice = *choice;
		snprintf(msg->id, sizeof(msg->id), "%s", id);
		/* A service that refuses at once does not wait for the request; the answer is there all the same. */
		(void)send(sock, msg, sizeof(*msg), MSG_NOSIGNAL);
		do
			n = recv(sock, &answer, sizeof(answer), MSG_TRUNC);
		while (n < 0 && (errno == ECONNRESET || errno == EINTR));
		close(sock);
	}
	free(msg);
	if (sock < 0)
		return -1;
	if (n != sizeof(answer) || answer.magic != REQUEST_MAGIC)
		return err_set(err, "root's service at " REQUEST_PATH " gave no answer");
	answer.text[sizeof(answer.text) - 1] = '\0';
	if (!answer.refused)
		return 0;
	err_set(err, "%s", answer.text);
	return answer.refused == REQUEST_BUSY ? REQUEST_BUSY : -1;
}

int request_service(const char *pid, const char *id, const struct choice *choice, bool alone, struct err *err)
{
	struct request_msg *msg = calloc(1, sizeof(*msg));

	if (msg) {
		msg->pid = (int32_t)strtol(pid, NULL, 10);
		msg->alone = alone;
	}
	return ask(msg, id, choice, err) ? -1 : 0;
}

static int ask_for_end(const char *id, const struct choice *choice, struct err *err)
{
	struct request_msg *msg = calloc(1, sizeof(*msg));

	if (msg)
		msg->ended = 1;
	return ask(msg, id, choice, err);
}

int request_end(const char *id, const struct choice *choice, struct err *err)
{
	int rc = ask_for_end(id, choice, err);

	for (int tries = 1; rc == REQUEST_BUSY && tries < BUSY_TRIES; tries++) {
		usleep(BUSY_PAUSE_US);
		rc = ask_for_end(id, choice, err);
	}
	return rc ? -1 : 0;
}
