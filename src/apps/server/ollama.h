/* SPDX-License-Identifier: MIT
 * Declares a function that makes lines of Ollama's streams. */
#ifndef WHIT_SERVER_OLLAMA_H
#define WHIT_SERVER_OLLAMA_H

#include "server/ask.h"

/* Makes a line of a stream, or a complete answer, with text or thinking (either may be NULL), and tool calls in the
 * form of OpenAI's message (may be NULL; the caller keeps ownership). done: it is the last line, with counts and
 * durations. */
json_t *whit_ollama_line(const whit_ask *ask, const char *text, size_t n_text, const char *thinking, size_t n_thinking,
                         const json_t *calls, bool done);

#endif
