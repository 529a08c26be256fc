/* SPDX-License-Identifier: MIT
 * Renders conversations through a template, with the variables and rules of transformers' apply_chat_template; and the
 * line-by-line form of the command line. */
#ifndef WHIT_TEMPLATE_CHAT_H
#define WHIT_TEMPLATE_CHAT_H

#include "template/template.h"

/* Holds the variables of a conversation. Values come from whit_datum_from_json(..., user = true) or are built by hand;
 * a field of WHIT_DATUM_UNDEFINED (zero) is not given. */
typedef struct whit_chat {
    whit_datum messages;               /* a list of dicts */
    whit_datum tools;                  /* optional list */
    whit_datum documents;              /* optional list */
    whit_datum extra;                  /* a dict of further variables */
    const char *bos_token, *eos_token; /* NULL: not defined in the template */
    bool add_generation_prompt;
    bool continue_final_message; /* cut off what follows the last message's content */
} whit_chat;

/* Renders a conversation as whit_template_render does. A message's `role` does not count as the user's text if it is
 * one of the usual roles, because templates build special tokens of it ("<|" + role + "|>"). */
whit_status whit_template_chat(const whit_template *template, const whit_chat *chat,
                               const whit_template_options *options, whit_buf *out, whit_buf *segments,
                               whit_template_error *error);

/* Renders one line of `whit template --jsonl`: a JSON object with the fields of a conversation (messages, tools,
 * documents, add_generation_prompt, bos_token, eos_token, extra, continue_final_message), for which `template` is
 * needed, or {"source", "context"}. Appends one line with its line feed to `out`: {"text"} or {"error", "line",
 * "column"}. Fails, after appending an error line, only if the line is not a JSON object or memory is short. */
whit_status whit_template_jsonl_line(const whit_template *template, const whit_template_options *options,
                                     const char *line, size_t n_bytes, const whit_allocator *allocator, whit_buf *out,
                                     whit_error *error);

#endif
