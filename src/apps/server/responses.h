/* SPDX-License-Identifier: MIT
 * Converts requests of OpenAI's Responses API to chat requests, and remembers the kinds of their tools. */
#ifndef WHIT_SERVER_RESPONSES_H
#define WHIT_SERVER_RESPONSES_H

#include "server/replies.h"

/* Converts the request to a chat request, which the caller owns. *kinds: an object, also owned by the caller, with an
 * entry for each tool, by the name under which the model sees it, that is not a function or is a function of a
 * namespace. If the request is refused, returns NULL, sets *kinds to NULL and replies with an error that names the
 * place. */
json_t *whit_responses_read(const json_t *body, json_t **kinds, whit_web_reply *reply);

/* ---- kinds of tools (response_tools.c) ------------------------------------------------------------ */

/* Converts the tools of `body` and the tool_choice, and adds them to `chat`. Leaves out tools that OpenAI runs itself.
 * Returns false after refusing the request. */
bool whit_response_tools_read(const json_t *body, json_t *chat, json_t *kinds, whit_web_reply *reply);
/* Returns whether a tool of this kind (NULL: a function) may have this name. Replies 400 if another kind of tool in
 * `list` has it, because calls would be ambiguous. */
bool whit_response_may_offer(const json_t *list, const json_t *kinds, const json_t *name, const json_t *kind,
                             whit_web_reply *reply);
/* Adds a custom tool, whose calls have a text as input, to `list` as a function, and to `kinds`. Its description
 * includes the grammar of the text, if there is one. Returns false if the tool has no name, or after refusing it with a
 * reply. */
bool whit_response_custom_read(const json_t *tool, json_t *list, json_t *kinds, whit_web_reply *reply);
/* Returns whether OpenAI's server itself runs tools of this type. */
bool whit_response_is_server_run(const char *type);
/* Read items that are not messages: earlier calls and their results. The first function sets *call to a call of an
 * assistant's message in the form of chats, which the caller owns; NULL if the item lacks a member. The second sets
 * *output_key to the name of the item's member that has the result. Both return false if the item is of another
 * kind. */
bool whit_response_call_read(const json_t *item, json_t **call);
bool whit_response_result_read(const json_t *item, const char **output_key);
/* Returns the item for a call of the function `name`, in the form of the tool's kind, without id and status. arguments:
 * JSON text. */
json_t *whit_response_call_item(const json_t *kinds, const char *name, const char *arguments, size_t n_arguments);
/* Return whether `name` is a function, perhaps of a namespace, whose arguments are streamed, and whether it is a custom
 * tool. */
bool whit_response_is_function(const json_t *kinds, const char *name);
bool whit_response_is_custom(const json_t *kinds, const char *name);

#endif
