/* SPDX-License-Identifier: MIT
 * Tools for models that know no notation of calls: described in the system message, called by JSON objects in the text,
 * {"tool": NAME, "arguments": {...}} or {"answer": TEXT}. */
#ifndef WHIT_AGENT_PLAIN_H
#define WHIT_AGENT_PLAIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Converts messages to a form that every template accepts: only system, user and assistant, with calls and results
 * as text. The caller owns the result; NULL if out of memory. */
json_t *whit_plain_messages(const json_t *messages, const json_t *tools);

/* Parses an answer into a message with calls, or with text: objects may stand between other words or in fences, and the
 * text of patches in fences stays text. `number` makes the ids of its calls. *is_formed: whether there was an object of
 * one of the two forms. The message is the caller's; NULL if memory runs out. */
json_t *whit_plain_answer(const char *text, size_t n_bytes, uint64_t number, bool *is_formed);

#endif
