/* SPDX-License-Identifier: MIT
 * Messages as values of a template: reads and changes their texts and roles, and replaces system messages for templates
 * that accept none. */
#ifndef WHIT_RUNTIME_MESSAGE_VALUES_H
#define WHIT_RUNTIME_MESSAGE_VALUES_H

#include "base/json.h"
#include "template/chat.h"

/* Appends a JSON value on one line. Its strings are decoded and encoded again, so that texts that differ only in blanks
 * and escapes become equal. If not `compact`, a blank follows each comma and colon. Returns false if memory runs
 * out. */
bool whit_message_write_json(const whit_json *json, uint32_t at, bool compact, whit_buf *out);

/* Returns the value of `key` in a message if it is a text, else NULL. */
const whit_text *whit_message_text(const whit_datum *message, const char *key);
bool whit_message_has_role(const whit_datum *message, const char *role);
/* Sets `key` of a message to a text; returns false if `text` is NULL or memory runs out. */
bool whit_message_set_text(whit_datum_pool *pool, whit_datum *message, const char *key, const whit_text *text);
/* Returns first + between + second; `first` and `second` may be NULL. Returns NULL if memory runs out. */
const whit_text *whit_message_join(whit_datum_pool *pool, const whit_text *first, const char *between,
                                   const whit_text *second);

/* Counts the system messages: *n_all of them, *n_first at the beginning. */
void whit_message_count_system(const whit_datum *messages, size_t *n_all, size_t *n_first);
/* Returns whether a rendered prompt contains the texts of all system messages that come after another message. */
bool whit_message_has_late_system(const whit_datum *messages, const char *prompt, size_t n_bytes);
/* Removes system messages from the n_kept-th message on: each becomes a user message, joined to the user message before
 * or after it, because many templates want roles to alternate. Returns false if memory runs out. */
bool whit_message_fold_system(whit_datum_pool *pool, size_t n_kept, whit_datum *messages);

#endif
