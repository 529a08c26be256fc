/* SPDX-License-Identifier: MIT
 * Requests of Anthropic's Messages API, read into OpenAI's form. */
#ifndef WHIT_SERVER_MESSAGES_H
#define WHIT_SERVER_MESSAGES_H

#include "server/replies.h"

/* Returns the request as a chat request in OpenAI's form, the caller's; `counting`: max_tokens may be absent. NULL:
 * refused, and the reply names the message and the part. */
json_t *whit_anthropic_read(const json_t *body, bool counting, whit_web_reply *reply);

#endif
