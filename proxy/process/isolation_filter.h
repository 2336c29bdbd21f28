/* SPDX-License-Identifier: Apache-2.0 */
/* The system call filter of the proxy, made by isolation_filter.gen.c. */
#ifndef PROXY_PROCESS_ISOLATION_FILTER_H
#define PROXY_PROCESS_ISOLATION_FILTER_H

#include <linux/filter.h>

extern const struct sock_fprog isolation_filter[1];

#endif
