/* SPDX-License-Identifier: MIT
 * Functions for the chat APIs of other vendors, whose requests are converted to OpenAI's chat requests, and whose
 * answers are written in the vendor's form. */
#ifndef WHIT_SERVER_DIALECT_H
#define WHIT_SERVER_DIALECT_H

#include "server/answers.h"

/* Writes "event: TYPE", where TYPE is the event's member "type", and then the event as data. Takes ownership of the
 * event. */
void whit_dialect_send(whit_buf *out, json_t *event);
/* Returns bytes as a JSON string; they may end within a character. */
json_t *whit_dialect_text(const void *text, size_t n);
/* Parses a call's arguments into an object; returns NULL if they are not an object, such as when the call was cut
 * off. */
json_t *whit_dialect_arguments(const json_t *text);

#endif
