/* SPDX-License-Identifier: MIT
 * Writes answers as JSON: complete, or as a stream of events during generation. */
#ifndef WHIT_SERVER_ANSWERS_H
#define WHIT_SERVER_ANSWERS_H

#include "server/ask.h"

/* Starts a stream if the request wants one, unless an answer failed before it got a slot; otherwise waits until all its
 * answers are complete, and replies. Takes ownership of `ask`. */
void whit_ask_reply(whit_ask *ask, whit_web_reply *reply);
/* Returns the timings of the request's first answer, which must have its first token, in llama.cpp's form. */
json_t *whit_ask_timings(const whit_ask *ask);
/* Appends an object's JSON text without its closing brace, so that more members can be appended. */
void whit_append_open(whit_buf *out, const json_t *object);

#endif
