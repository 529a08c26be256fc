/* SPDX-License-Identifier: MIT
 * Converts requests of Anthropic's Messages API to OpenAI's chat requests. */
#ifndef WHIT_SERVER_MESSAGES_H
#define WHIT_SERVER_MESSAGES_H

#include "server/replies.h"

/* Converts the request to a chat request in OpenAI's form, which the caller owns. counting: the request only counts
 * tokens, so max_tokens may be missing. If the request is refused, returns NULL and replies with an error that names
 * the message and the block. */
json_t *whit_anthropic_read(const json_t *body, bool counting, whit_web_reply *reply);

#endif
