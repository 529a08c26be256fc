/* SPDX-License-Identifier: MIT
 * Declares helper functions for the chat APIs of other vendors. Their requests are converted to OpenAI's chat requests,
 * and their answers are written in the vendor's form. */
#ifndef WHIT_SERVER_DIALECT_H
#define WHIT_SERVER_DIALECT_H

#include "server/answers.h"

/* Appends "event: TYPE", where TYPE is the event's member "type", and the event as data. Takes ownership of the
 * event. */
void whit_dialect_send(whit_buf *out, json_t *event);
/* Returns bytes as a JSON string; "" if they are not valid UTF-8. */
json_t *whit_dialect_text(const void *text, size_t n);
/* Parses the arguments of a call into an object, which the caller owns; an empty text or "null" gives an empty object.
 * Returns NULL if they are not an object, for example because the answer was cut off. */
json_t *whit_dialect_arguments(const json_t *text);

#endif
