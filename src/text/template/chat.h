/* SPDX-License-Identifier: MIT
 * Renders conversations through a template, with the variables and rules of transformers' apply_chat_template. Also
 * renders single lines of JSON for the command line. */
#ifndef WHIT_TEMPLATE_CHAT_H
#define WHIT_TEMPLATE_CHAT_H

#include "template/template.h"

/* Variables of a conversation. Values come from whit_datum_from_json(..., user = true) or are built by the caller. A
 * value of kind WHIT_DATUM_UNDEFINED (zero) is not given. */
typedef struct whit_chat {
    whit_datum messages;               /* list of dicts */
    whit_datum tools;                  /* list; optional */
    whit_datum documents;              /* list; optional */
    whit_datum extra;                  /* dict of further variables; optional */
    const char *bos_token, *eos_token; /* NULL: the variable is not defined in the template */
    bool add_generation_prompt;
    bool continue_final_message; /* remove everything after the last message's content */
} whit_chat;

/* Renders a conversation like whit_template_render. A message's `role` is not marked as the user's text if it is one of
 * the usual roles (system, user, assistant, tool and others, see chat.c), because templates build special tokens from
 * it ("<|" + role + "|>"). */
whit_status whit_template_chat(const whit_template *template, const whit_chat *chat,
                               const whit_template_options *options, whit_buf *out, whit_buf *segments,
                               whit_template_error *error);

/* Renders one line of `whit template --jsonl`. The line is a JSON object with the fields of a conversation (messages,
 * tools, documents, add_generation_prompt, bos_token, eos_token, extra, continue_final_message), which is rendered by
 * `template`, or {"source", "context"}, which needs no template. Appends one line to `out`: {"text"}, or {"error",
 * "line", "column"}. Returns an error only if the line is not a JSON object or memory is exhausted; in the first case
 * an error line was appended too. */
whit_status whit_template_jsonl_line(const whit_template *template, const whit_template_options *options,
                                     const char *line, size_t n_bytes, const whit_allocator *allocator, whit_buf *out,
                                     whit_error *error);

#endif
