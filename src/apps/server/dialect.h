/* SPDX-License-Identifier: MIT
 * Other vendors' chat APIs: their requests become OpenAI's chat requests, and answers are written in their own form. */
#ifndef WHIT_SERVER_DIALECT_H
#define WHIT_SERVER_DIALECT_H

#include "server/answers.h"

/* Writes "event: TYPE" and the data, whose ownership it takes; the type is its member "type". */
void whit_dialect_send(whit_buf *out, json_t *event);
/* Returns a string of bytes that may end within a character. */
json_t *whit_dialect_text(const void *text, size_t n);
/* Parses a call's arguments into an object; NULL if they are not an object, for example when the call was cut off. */
json_t *whit_dialect_arguments(const json_t *text);

#endif
