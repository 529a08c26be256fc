/* SPDX-License-Identifier: MIT
 * Requests of OpenAI's Responses API, read into the form of its chats, and the kinds of their tools. */
#ifndef WHIT_SERVER_RESPONSES_H
#define WHIT_SERVER_RESPONSES_H

#include "server/replies.h"

/* Returns the request as a chat request, the caller's. *kinds: an object with an entry by name for each tool that is
 * offered to the model as a function but is not a plain one, also the caller's. NULL: refused, and the reply names the
 * place. */
json_t *whit_responses_read(const json_t *body, json_t **kinds, whit_web_reply *reply);

/* ---- kinds of tools (response_tools.c) ------------------------------------------------------------ */

/* Copies the tools of `body`, and the choice among them, to `chat`, without the ones that OpenAI runs itself. */
bool whit_response_tools_read(const json_t *body, json_t *chat, json_t *kinds, whit_web_reply *reply);
/* Returns whether a tool of this kind (NULL: a function) may be offered under a name. Replies 400 if the name is in
 * `list` for another kind, since a call of it could mean either. */
bool whit_response_may_offer(const json_t *list, const json_t *kinds, const json_t *name, const json_t *kind,
                             whit_web_reply *reply);
/* Appends a custom tool, whose call is a text, to `list` as a function, and to `kinds`. The prompt tells the grammar of
 * the text. False: the tool has no name, or the reply says why it is refused. */
bool whit_response_custom_read(const json_t *tool, json_t *list, json_t *kinds, whit_web_reply *reply);
/* Returns whether OpenAI's server runs tools of that type itself. */
bool whit_response_is_server_run(const char *type);
/* An earlier call or result of `item`, which is not a message, as OpenAI's chat has it: a call for an assistant's
 * message, or a whole message of the role tool. False: the item is of another kind. */
bool whit_response_call_read(const json_t *item, json_t **call);
bool whit_response_result_read(const json_t *item, const char **output_key);
/* Returns the finished item of a call of the function `name`, of its kind, without id and status. `arguments`: JSON
 * text. */
json_t *whit_response_call_item(const json_t *kinds, const char *name, const char *arguments, size_t n_arguments);
/* Returns whether the call's arguments are streamed like a function's. */
bool whit_response_is_function(const json_t *kinds, const char *name);
bool whit_response_is_custom(const json_t *kinds, const char *name);

#endif
