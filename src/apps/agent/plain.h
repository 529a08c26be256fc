/* SPDX-License-Identifier: MIT
 * Offers tools to models without a notation for calls. The system message describes the tools, and the model calls
 * them by writing JSON objects in its text: {"tool": NAME, "arguments": {...}} for a call, {"answer": TEXT} to end
 * the task. */
#ifndef WHIT_AGENT_PLAIN_H
#define WHIT_AGENT_PLAIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Converts messages to a form that every chat template accepts: only the roles system, user and assistant, and calls
 * and results as text. The text of a message with calls is left out. The system message also describes `tools`. The
 * caller owns the result; NULL means that memory ran out. */
json_t *whit_plain_messages(const json_t *messages, const json_t *tools);

/* Parses an answer into a message with calls, or with text. Objects for calls and answers may be surrounded by other
 * words or fences. An answer with a fenced patch is text as a whole, unless it begins with '{'. `number` makes the ids
 * of the calls unique. *is_formed becomes true if there was a call object or an answer object. The caller owns the
 * message; NULL means that memory ran out. */
json_t *whit_plain_answer(const char *text, size_t n_bytes, uint64_t number, bool *is_formed);

#endif
