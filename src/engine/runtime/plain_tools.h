/* SPDX-License-Identifier: MIT
 * Tools for templates that do not support them: tools are described in the system message, called as
 * <tool_call>{...}</tool_call> in the text, and their results are put into user messages. */
#ifndef WHIT_RUNTIME_PLAIN_TOOLS_H
#define WHIT_RUNTIME_PLAIN_TOOLS_H

#include "runtime/tool_style.h"

/* Rewrites a list of messages whose calls are already part of their contents: messages with the role tool become user
 * messages, and `tools` (a JSON list; NULL: no tools) are described in the system message that begins the list, or, if
 * the template accepts no system message, before the text of the first user message; if that message is absent, it is
 * added. The pool owns the new values. */
whit_status whit_plain_tools_write(const whit_tool_style *style, const char *tools, size_t n_bytes,
                                   whit_datum_pool *pool, whit_datum *messages, whit_error *error);

#endif
