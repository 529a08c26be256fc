/* SPDX-License-Identifier: MIT
 * Turns conversations into prompts: a prompter is a chat template, opened for one model, that renders messages to ids.
 *
 * The contents of messages are data: special tokens written in them are encoded as plain text. Rendering and encoding
 * follow transformers' apply_chat_template: no id is added that the template does not write, so a prompt begins with
 * BOS only if the template writes it. Templates get the time at which the prompter was opened, so that the prefix of a
 * conversation does not change at midnight.
 *
 * A prompter does not change after it is opened; it must not outlive its model. */
#ifndef WHIT_RUNTIME_PROMPTER_H
#define WHIT_RUNTIME_PROMPTER_H

#include "base/mem.h"
#include "template/chat.h"
#include "whit/chat.h"

/* A rendered prompt. Zero-initialise it except the allocators of the buffers; free it with whit_prompt_free. */
typedef struct whit_prompt {
    whit_buf text;    /* the rendered text */
    whit_buf ids;     /* ids of the text: int32_t[] */
    bool thinking;    /* the prompt opens a thinking section, which the answer continues */
    bool has_thought; /* the prompt opens and closes a thinking section, so that the answer begins after the section */
} whit_prompt;

size_t whit_prompt_n_ids(const whit_prompt *prompt);
const int32_t *whit_prompt_ids(const whit_prompt *prompt);
void whit_prompt_free(whit_prompt *prompt);

typedef struct whit_prompter whit_prompter;

/* Opens the template `source`, whose name in error messages is `place`; source NULL: the model's own template. Errors:
 * unsupported (the model has no template, or no tokenizer), format (the template cannot be parsed), memory. */
whit_status whit_prompter_open(const whit_model *model, const char *source, size_t source_bytes, const char *place,
                               whit_prompter **prompter, whit_error *error);
void whit_prompter_close(whit_prompter *prompter);

/* Renders messages, tools, variables and flags of `chat`; the model's BOS and EOS tokens replace those of `chat`.
 * Appends the rendered text to `text`, and its ranges that are data to `segments` (whit_template_segment[]). */
whit_status whit_prompter_render_chat(const whit_prompter *prompter, const whit_chat *chat, whit_buf *text,
                                      whit_buf *segments, whit_error *error);
/* Encodes prompt->text to prompt->ids, and sets `thinking` and `has_thought`. segments: ranges of the text that are
 * data. */
whit_status whit_prompter_encode(const whit_prompter *prompter, const whit_buf *segments, whit_prompt *prompt,
                                 whit_error *error);
/* Adds the variables for the thinking mode (none for WHIT_THINKING_AUTO) to a dict, which is created if necessary;
 * returns false if memory runs out. */
bool whit_prompter_set_thinking(whit_datum_pool *pool, whit_thinking thinking, whit_datum *variables);
/* Return the template's source, and the allocator that the prompter was opened with. */
const char *whit_prompter_source(const whit_prompter *prompter, size_t *n_bytes);
const whit_allocator *whit_prompter_allocator(const whit_prompter *prompter);
/* returns the special token that ends a turn; -1: none */
int32_t whit_prompter_turn_end(const whit_prompter *prompter);

/* Returns the text that ends a turn, such as "\nUser:", if no special token ends it; else NULL. NULL also if the text
 * has more than 63 bytes, or the template refuses or drops the messages from which it is found. */
const char *whit_prompter_stop(const whit_prompter *prompter);
/* Return the markers that begin and end a thinking section: the markers in the template, else "<think>" and
 * "</think>". */
const char *whit_prompter_thinking_open(const whit_prompter *prompter);
const char *whit_prompter_thinking_close(const whit_prompter *prompter);

#endif
