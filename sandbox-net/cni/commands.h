/* SPDX-License-Identifier: Apache-2.0 */
/* What each command does. All return CNI_OK, or the code of an error; what they print is on stdout then. */
#ifndef SANDBOX_NET_CNI_COMMANDS_H
#define SANDBOX_NET_CNI_COMMANDS_H

#include "sandbox-net/cni/call.h"

/* Gives the container its gate, and prints the result. On an error nothing is left of it. */
enum cni_code cni_add(const struct cni_call *c, struct err *err);

/* Proves that the gate is there: its netgate answers for this very namespace, and the namespace has no other way out. */
enum cni_code cni_check(const struct cni_call *c, struct err *err);

/* Takes the gate away; also one that is gone already. */
enum cni_code cni_del(const struct cni_call *c, struct err *err);

/* Takes the gates of this network away that are not in "cni.dev/valid-attachments". */
enum cni_code cni_gc(const struct cni_call *c, struct err *err);

/* Whether gates can be made. */
enum cni_code cni_status(const struct cni_call *c, struct err *err);

#endif
