/* SPDX-License-Identifier: MIT
 * Offers tools to models that know no notation of calls. The system message describes the tools, and the model calls
 * them by JSON objects in its text, {"tool": NAME, "arguments": {...}} or {"answer": TEXT}. */
#ifndef WHIT_AGENT_PLAIN_H
#define WHIT_AGENT_PLAIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Converts messages to a form that every template accepts: only the roles system, user and assistant, with calls and
 * results as text. The caller owns the result; NULL means that memory ran out. */
json_t *whit_plain_messages(const json_t *messages, const json_t *tools);

/* Parses an answer into a message with calls, or with text. Objects may stand between other words or in fences; the
 * text of patches in fences stays text. The ids of the calls are made of `number`. *is_formed becomes true if there was
 * an object of one of the two forms. The caller owns the message; NULL means that memory ran out. */
json_t *whit_plain_answer(const char *text, size_t n_bytes, uint64_t number, bool *is_formed);

#endif
