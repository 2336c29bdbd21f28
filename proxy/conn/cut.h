/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Upstream connections that are cut at the upload limit. What may be sent must
 * arrive, and must not look whole: the reset comes when the last byte is acknowledged.
 */
#ifndef PROXY_CONN_CUT_H
#define PROXY_CONN_CUT_H

struct conn_env;

#define CUT_WAIT_S 5  /* for the acknowledgement; then it is reset all the same */
#define CUTS_MAX   64 /* that wait at one time; one more is reset at once */

/* Takes `fd` and resets it when its peer has everything, or cannot be waited for. */
void cut_delivered(struct conn_env *env, int fd);

/* Resets at once what still waits. */
void cut_all(struct conn_env *env);

#endif
