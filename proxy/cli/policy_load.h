/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a policy from what the command line names. */
#ifndef PROXY_CLI_POLICY_LOAD_H
#define PROXY_CLI_POLICY_LOAD_H

struct err;
struct options;
struct policy;

/* From --allow, --deny, --policy and --audit, in order. NULL with an error. */
struct policy *policy_load_options(const struct options *o, struct err *err);

/* From one file ("-": standard input). NULL with an error. */
struct policy *policy_load_file(const char *path, struct err *err);

#endif
