/* SPDX-License-Identifier: MIT
 * Converts the tools and calls of OpenAI's chat requests that are not functions: custom tools, lists of allowed tools,
 * and the older form of calls, "function_call". */
#ifndef WHIT_SERVER_CHAT_TOOLS_H
#define WHIT_SERVER_CHAT_TOOLS_H

#include "server/replies.h"

/* Returns a copy of the request in which all tools are functions; the caller owns it. A custom tool becomes a function
 * with one string parameter, `input`; tools that OpenAI's server itself runs are left out; tool_choice and the calls in
 * messages are converted, too. *kinds: the custom tools by name, which the caller owns; NULL without custom tools. If
 * the request is refused, returns NULL and replies with an error that names the place. */
json_t *whit_chat_tools_read(const json_t *body, json_t **kinds, whit_web_reply *reply);
/* Returns whether `name` is a custom tool of the request. */
bool whit_chat_is_custom(const json_t *kinds, const char *name, size_t n_name);
/* Converts those of the calls in an answer that call custom tools back to the form of custom calls. */
void whit_chat_name_custom(const json_t *kinds, json_t *calls);

#endif
