/* SPDX-License-Identifier: MIT
 * Converts tools and calls of OpenAI's chat requests that are not functions: custom tools, lists of allowed tools, and
 * calls in the older form, from before there were tools. */
#ifndef WHIT_SERVER_CHAT_TOOLS_H
#define WHIT_SERVER_CHAT_TOOLS_H

#include "server/replies.h"

/* Returns the request with functions only; the caller owns it. A custom tool becomes a function with one text, `input`.
 * *kinds has the custom tools by name; the caller owns it, and it is NULL if there are no custom tools. Returns NULL if
 * the request is refused; the reply names the place. */
json_t *whit_chat_tools_read(const json_t *body, json_t **kinds, whit_web_reply *reply);
/* Returns whether calls of the function `name` are calls of a custom tool. */
bool whit_chat_is_custom(const json_t *kinds, const char *name, size_t n_name);
/* Converts the calls of custom tools among `calls` to the form of custom calls. */
void whit_chat_name_custom(const json_t *kinds, json_t *calls);

#endif
