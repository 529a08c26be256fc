/* SPDX-License-Identifier: MIT
 * Lines of Ollama's streams. */
#ifndef WHIT_SERVER_OLLAMA_H
#define WHIT_SERVER_OLLAMA_H

#include "server/ask.h"

/* Makes a line of a stream, with text or thinking (may be NULL) and tool calls as in OpenAI's message (may be NULL; the
 * caller keeps ownership). If `done`, it has the counts and durations of the ended job. */
json_t *whit_ollama_line(const whit_ask *ask, const char *text, size_t n_text, const char *thinking, size_t n_thinking,
                         const json_t *calls, bool done);

#endif
