/* SPDX-License-Identifier: MIT
 * Requests of Google's Gemini API, read into the form of OpenAI's chats. */
#ifndef WHIT_SERVER_GEMINI_H
#define WHIT_SERVER_GEMINI_H

#include "server/replies.h"

/* The request as a chat request, the caller's. *shows_thoughts: whether the answer's thinking is wanted. NULL: refused,
 * and the reply names the place. */
json_t *whit_gemini_read(const json_t *body, bool *shows_thoughts, whit_web_reply *reply);
/* The member by its name in JSON, `systemInstruction`, or by the one in the protocol, `system_instruction`. */
json_t *whit_gemini_get(const json_t *object, const char *name);
/* The member as a list, the caller's: the protocol reads an object in its place as a list of one. NULL: absent. */
json_t *whit_gemini_list(const json_t *object, const char *name);

#endif
