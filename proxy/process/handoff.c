/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "proxy/process/handoff.h"

#include <errno.h>
#include <string.h>
#include <sys/types.h>

#include "base/fdpass.h"

int handoff_take_gate(int fd, int gate[static HANDOFF_FDS], uint8_t nonce[static HANDOFF_NONCE],
		      struct gate_layout *layout)
{
	struct handoff_msg msg;
	size_t n_fds = 0;
	ssize_t n;

	gate[HANDOFF_GUEST] = -1;
	do
		n = fdpass_recv(fd, &msg, sizeof(msg), gate, HANDOFF_FDS, &n_fds);
	while (n == -EINTR);
	if (n != sizeof(msg) || msg.magic != HANDOFF_MAGIC || msg.type != HANDOFF_GATE ||
	    (n_fds != HANDOFF_FDS && n_fds != HANDOFF_GUEST) || !layout_ok(&msg.layout))
		return -1;
	memcpy(nonce, msg.nonce, HANDOFF_NONCE);
	*layout = msg.layout;
	return 0;
}

int handoff_say(int fd, enum handoff_type type)
{
	const struct handoff_msg msg = { .magic = HANDOFF_MAGIC, .type = type };

	return fdpass_send(fd, &msg, sizeof(msg), NULL, 0);
}

int handoff_take_order(int fd, uint32_t holder[static RESOURCE_COUNT])
{
	struct handoff_msg msg;
	size_t n_fds = 0;
	ssize_t n = fdpass_recv(fd, &msg, sizeof(msg), NULL, 0, &n_fds);

	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n != sizeof(msg) || msg.magic != HANDOFF_MAGIC || msg.type != HANDOFF_ARM)
		return -1;
	memcpy(holder, msg.holder, sizeof(msg.holder));
	return 1;
}
