/* SPDX-License-Identifier: Apache-2.0 */
/* The system call filters of the finder, made by finder_filter.gen.c. */
#ifndef PROXY_PROCESS_FINDER_FILTER_H
#define PROXY_PROCESS_FINDER_FILTER_H

#include <linux/filter.h>

/* At 1: for a sandbox that is attached. */
extern const struct sock_fprog finder_filters[2];

#endif
