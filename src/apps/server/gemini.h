/* SPDX-License-Identifier: MIT
 * Converts requests of Google's Gemini API to the form of OpenAI's chat requests. */
#ifndef WHIT_SERVER_GEMINI_H
#define WHIT_SERVER_GEMINI_H

#include "server/replies.h"

/* Returns the request as a chat request, which the caller owns. *shows_thoughts: whether the answer's thinking is
 * requested. Returns NULL if the request is refused; the reply names the place. */
json_t *whit_gemini_read(const json_t *body, bool *shows_thoughts, whit_web_reply *reply);
/* Returns a borrowed member, or NULL if it is absent or null. `name` is its JSON name, such as "systemInstruction";
 * without one, the member with its protocol name, such as "system_instruction", is returned. */
json_t *whit_gemini_get(const json_t *object, const char *name);
/* Returns a member as a list, which the caller owns: the protocol reads a single object as a list of one. NULL means
 * that the member is absent. */
json_t *whit_gemini_list(const json_t *object, const char *name);

#endif
