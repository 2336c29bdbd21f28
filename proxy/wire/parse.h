/* SPDX-License-Identifier: Apache-2.0 */
/* What every parser answers. MORE at a parser's cap is BAD. */
#ifndef PROXY_WIRE_PARSE_H
#define PROXY_WIRE_PARSE_H

enum parse { PARSE_OK, PARSE_MORE, PARSE_BAD };

#endif
