/* SPDX-License-Identifier: MIT
 * Converts requests of OpenAI's Responses API to the form of its chat requests, with the kinds of their tools. */
#ifndef WHIT_SERVER_RESPONSES_H
#define WHIT_SERVER_RESPONSES_H

#include "server/replies.h"

/* Returns the request as a chat request, which the caller owns. *kinds: an object, also owned by the caller, with an
 * entry by name for each tool that is offered to the model as a function but is not a plain function. Returns NULL if
 * the request is refused; the reply names the place. */
json_t *whit_responses_read(const json_t *body, json_t **kinds, whit_web_reply *reply);

/* ---- kinds of tools (response_tools.c) ------------------------------------------------------------ */

/* Copies the tools of `body`, and the choice among them, to `chat`, without the tools that OpenAI runs itself. */
bool whit_response_tools_read(const json_t *body, json_t *chat, json_t *kinds, whit_web_reply *reply);
/* Returns whether a tool of this kind (NULL: a function) may be offered under a name. Replies 400 if the name is
 * already in `list` for another kind, because a call of it would be ambiguous. */
bool whit_response_may_offer(const json_t *list, const json_t *kinds, const json_t *name, const json_t *kind,
                             whit_web_reply *reply);
/* Appends a custom tool, whose call is a text, to `list` as a function, and to `kinds`. The prompt describes the
 * grammar of the text. Returns false if the tool has no name or is refused; in the latter case fills in the reply. */
bool whit_response_custom_read(const json_t *tool, json_t *list, json_t *kinds, whit_web_reply *reply);
/* Returns whether OpenAI's server runs tools of that type itself. */
bool whit_response_is_server_run(const char *type);
/* Read an earlier call or an earlier result, which are items but not messages. The first function makes *call, a call
 * of an assistant's message in OpenAI's chat form, which the caller owns; it is NULL if the item lacks a part. The
 * second sets *output_key to the name of the member with the result. Both return false if the item is of another
 * kind. */
bool whit_response_call_read(const json_t *item, json_t **call);
bool whit_response_result_read(const json_t *item, const char **output_key);
/* Returns the finished item of a call of the function `name`, in the form of its kind, without id and status.
 * `arguments` is JSON text. */
json_t *whit_response_call_item(const json_t *kinds, const char *name, const char *arguments, size_t n_arguments);
/* Return whether the call's arguments are streamed like those of a function, and whether it is a call of a custom
 * tool. */
bool whit_response_is_function(const json_t *kinds, const char *name);
bool whit_response_is_custom(const json_t *kinds, const char *name);

#endif
