/* SPDX-License-Identifier: MIT
 * Converts requests of Google's Gemini API to the form of OpenAI's chat requests. */
#ifndef WHIT_SERVER_GEMINI_H
#define WHIT_SERVER_GEMINI_H

#include "server/replies.h"

/* Converts the request to a chat request in OpenAI's form, which the caller owns. *shows_thoughts: the answer should
 * include the model's thinking. If the request is refused, returns NULL and replies with an error that names the
 * place. */
json_t *whit_gemini_read(const json_t *body, bool *shows_thoughts, whit_web_reply *reply);
/* Returns a member without a new reference; NULL if it is absent or null. `name` is its name in JSON, such as
 * "systemInstruction". If that is absent, its name in protocol buffers is tried, such as "system_instruction". */
json_t *whit_gemini_get(const json_t *object, const char *name);
/* Returns a member as a list, which the caller owns; a single object becomes a list of one, as the protocol allows. A
 * value of another type is returned unchanged; NULL if the member is absent. */
json_t *whit_gemini_list(const json_t *object, const char *name);

#endif
