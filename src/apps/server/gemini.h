/* SPDX-License-Identifier: MIT
 * Requests of Google's Gemini API, read into the form of OpenAI's chats. */
#ifndef WHIT_SERVER_GEMINI_H
#define WHIT_SERVER_GEMINI_H

#include "server/replies.h"

/* Returns the request as a chat request, the caller's. *shows_thoughts: whether the answer's thinking is wanted. NULL:
 * refused, and the reply names the place. */
json_t *whit_gemini_read(const json_t *body, bool *shows_thoughts, whit_web_reply *reply);
/* Returns a member under its JSON name, `systemInstruction`, or its protocol name, `system_instruction`. */
json_t *whit_gemini_get(const json_t *object, const char *name);
/* Returns a member as a list, which the caller owns: the protocol reads a single object as a list of one. NULL if
 * absent. */
json_t *whit_gemini_list(const json_t *object, const char *name);

#endif
