/* SPDX-License-Identifier: MIT
 * Conversations as prompts: a chat template, opened for one model, that renders messages to ids.
 *
 * The contents of messages are data: special tokens written in them are not honoured. Rendering and
 * encoding follow transformers' apply_chat_template: no id is added that the template does not
 * write, so a model gets BOS where its template says so. The clock that a template may read is
 * stopped at opening, so that a conversation keeps its beginning past midnight.
 *
 * A prompter is only read after opening; it must not outlive its model. */
#ifndef WHIT_RUNTIME_PROMPTER_H
#define WHIT_RUNTIME_PROMPTER_H

#include "base/mem.h"
#include "template/chat.h"
#include "whit/chat.h"

/* Zero-initialise (buffers with the allocator set); free with whit_prompt_free. */
typedef struct whit_prompt {
    whit_buf text;    /* as rendered */
    whit_buf ids;     /* int32_t[] */
    bool thinking;    /* the prompt opens a thinking section, which the answer continues */
    bool has_thought; /* the prompt opens a thinking section and closes it: the answer begins after it */
} whit_prompt;

size_t whit_prompt_n_ids(const whit_prompt *prompt);
const int32_t *whit_prompt_ids(const whit_prompt *prompt);
void whit_prompt_free(whit_prompt *prompt);

typedef struct whit_prompter whit_prompter;

/* Opens the template `source`, named `place` in messages; the model's own if NULL. Errors: unsupported (the model
 * has no template, or no tokenizer), format (a template that cannot be parsed), memory. */
whit_status whit_prompter_open(const whit_model *model, const char *source, size_t source_bytes, const char *place,
                               whit_prompter **prompter, whit_error *error);
void whit_prompter_close(whit_prompter *prompter);

/* Renders messages, tools, variables and flags of `chat`, with the model's special tokens. Appends the text and the
 * ranges of it that are data (whit_template_segment[]). */
whit_status whit_prompter_render_chat(const whit_prompter *prompter, const whit_chat *chat, whit_buf *text,
                                      whit_buf *segments, whit_error *error);
/* Encodes the rendered text of a prompt into its ids. */
whit_status whit_prompter_encode(const whit_prompter *prompter, const whit_buf *segments, whit_prompt *prompt,
                                 whit_error *error);
/* Adds the variables by which templates learn the thinking mode to a dict; false: out of memory. */
bool whit_prompter_set_thinking(whit_datum_pool *pool, whit_thinking thinking, whit_datum *variables);
/* Return the template's source, and the allocator that the prompter was opened with. */
const char *whit_prompter_source(const whit_prompter *prompter, size_t *n_bytes);
const whit_allocator *whit_prompter_allocator(const whit_prompter *prompter);
int32_t whit_prompter_turn_end(const whit_prompter *prompter); /* -1: none */

/* Returns the text that ends a turn ("\nUser:") if no special token does; else NULL. */
const char *whit_prompter_stop(const whit_prompter *prompter);
/* The markers around a thinking section: "<think>" and "</think>", or the ones in the template. */
const char *whit_prompter_thinking_open(const whit_prompter *prompter);
const char *whit_prompter_thinking_close(const whit_prompter *prompter);

#endif
