/* SPDX-License-Identifier: MIT
 * Writes answers as JSON: complete, or as events while they are generated. */
#ifndef WHIT_SERVER_ANSWERS_H
#define WHIT_SERVER_ANSWERS_H

#include "server/ask.h"

/* Waits for the end of the answers and replies, or starts a stream. Takes ownership of `ask`, which is the request. */
void whit_ask_reply(whit_ask *ask, whit_web_reply *reply);
/* Returns the timings of the request's first answer, in llama.cpp's form. */
json_t *whit_ask_timings(const whit_ask *ask);
/* Appends an object's text without its closing brace, so that more members can follow. */
void whit_append_open(whit_buf *out, const json_t *object);

#endif
