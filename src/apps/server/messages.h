/* SPDX-License-Identifier: MIT
 * Converts requests of Anthropic's Messages API to OpenAI's form. */
#ifndef WHIT_SERVER_MESSAGES_H
#define WHIT_SERVER_MESSAGES_H

#include "server/replies.h"

/* Returns the request as a chat request in OpenAI's form, which the caller owns. counting: max_tokens may be absent.
 * Returns NULL if the request is refused; the reply names the message and the part. */
json_t *whit_anthropic_read(const json_t *body, bool counting, whit_web_reply *reply);

#endif
