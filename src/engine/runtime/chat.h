/* SPDX-License-Identifier: MIT
 * Internals of the public chat interface, and the answer parser without a template, for tests. */
#ifndef WHIT_RUNTIME_CHAT_H
#define WHIT_RUNTIME_CHAT_H

#include "runtime/tool_style.h"

/* Opens a parser of answers. thinking: the prompt has opened a thinking section. The markers think_open and think_close
 * must outlive the parser. */
whit_status whit_answer_open(whit_call_syntax syntax, bool tools, const char *think_open, const char *think_close,
                             bool thinking, whit_chat_event_fn *on_event, void *user, const whit_allocator *allocator,
                             whit_chat_parser **parser, whit_error *error);
/* Sets the list of tools, which is copied; the parser reads tagged arguments by their schemas. */
whit_status whit_answer_set_tools(whit_chat_parser *parser, const char *tools, size_t tools_bytes, whit_error *error);
/* Reserves memory for an answer of usual length, so that buffers do not grow token by token, and sets the number in the
 * id of the first call. */
whit_status whit_answer_prepare(whit_chat_parser *parser, uint32_t first_id, whit_error *error);
/* Returns the tool style that was detected when the template was opened. */
const whit_tool_style *whit_chat_template_style(const whit_chat_template *chat);
const whit_model *whit_chat_template_model(const whit_chat_template *chat);
/* Sets *open and *close to the markers around a thinking section; returns false if the template's source does not
 * contain the closing marker. */
bool whit_chat_template_thinking(const whit_chat_template *chat, const char **open, const char **close);
/* Return whether the prompt has opened a thinking section (thinks), and whether it has opened and closed one
 * (has_thought). */
bool whit_chat_prompt_thinks(const whit_chat_prompt *prompt);
bool whit_chat_prompt_has_thought(const whit_chat_prompt *prompt);
/* Returns the marker that precedes calls in a syntax. */
const char *whit_answer_section(whit_call_syntax syntax);

#endif
