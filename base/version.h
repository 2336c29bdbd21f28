/* SPDX-License-Identifier: Apache-2.0 */
/* The version of both programs, as --version and the start record say it. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#define NETGATE_VERSION "0.1.0"

#endif
