/* SPDX-License-Identifier: Apache-2.0 */
/* How a check fails: it says where and what, shows the log so far, and ends the program. */
#ifndef TESTS_SCENARIO_FAIL_H
#define TESTS_SCENARIO_FAIL_H

/* A printf-like text. What fail_at() said goes before it, the records behind it. */
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);

/* Where we are: "tests/scenarios/http.txt:12"; the text is copied. */
__attribute__((format(printf, 1, 2))) void fail_at(const char *format, ...);

#endif
