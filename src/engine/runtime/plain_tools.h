/* SPDX-License-Identifier: MIT
 * Tools for templates without tools: described in the system message, called as <tool_call>{...}</tool_call> in the
 * text, with results in messages of the person. */
#ifndef WHIT_RUNTIME_PLAIN_TOOLS_H
#define WHIT_RUNTIME_PLAIN_TOOLS_H

#include "runtime/tool_style.h"

/* Rewrites a list of messages whose calls are already in their contents: messages of the role tool become the
 * person's, and `tools` (a JSON list; NULL: none) are described in the system message, or before the person's first
 * words where the template takes none. Values belong to the pool. */
whit_status whit_plain_tools_write(const whit_tool_style *style, const char *tools, size_t n_bytes,
                                   whit_datum_pool *pool, whit_datum *messages, whit_error *error);

#endif
