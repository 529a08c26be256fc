/* SPDX-License-Identifier: MIT
 * Answers as JSON: whole, or as events while they are written. */
#ifndef WHIT_SERVER_ANSWERS_H
#define WHIT_SERVER_ANSWERS_H

#include "server/ask.h"

/* Waits for the end and replies, or starts a stream. Takes the ask over. */
void whit_ask_reply(whit_ask *ask, whit_web_reply *reply);
/* The times of its first answer, as llama.cpp has them. */
json_t *whit_ask_timings(const whit_ask *ask);
json_t *whit_ask_logprobs(const whit_ask *ask); /* a list by token */
/* The bytes that a token adds to a text, to be freed. */
whit_buf whit_api_token_bytes(const whit_api *api, int32_t id);
/* Whether they are characters, without a zero byte. */
bool whit_api_is_text(const whit_buf *bytes);
json_t *whit_api_byte_list(const whit_buf *bytes);

#endif
