/* SPDX-License-Identifier: MIT
 * Messages as values of a template: reads and changes their texts and roles, and replaces system messages for templates
 * that accept none. */
#ifndef WHIT_RUNTIME_MESSAGE_VALUES_H
#define WHIT_RUNTIME_MESSAGE_VALUES_H

#include "base/json.h"
#include "template/chat.h"

/* Appends JSON value `at` on one line. Strings are decoded and encoded again, so that values that differ only in white
 * space and escapes give the same text. Unless `compact`, a space follows each comma and colon. Returns false if memory
 * runs out. */
bool whit_message_write_json(const whit_json *json, uint32_t at, bool compact, whit_buf *out);

/* Returns the value of `key` in a message if it is a string, else NULL. */
const whit_text *whit_message_text(const whit_datum *message, const char *key);
bool whit_message_has_role(const whit_datum *message, const char *role);
/* Sets `key` of a message to `text`; returns false if `text` is NULL or memory runs out. */
bool whit_message_set_text(whit_datum_pool *pool, whit_datum *message, const char *key, const whit_text *text);
/* Returns the concatenation of first, between and second; `first` and `second` may be NULL. Returns NULL if memory runs
 * out. */
const whit_text *whit_message_join(whit_datum_pool *pool, const whit_text *first, const char *between,
                                   const whit_text *second);

/* Counts the messages with the role system or developer: *n_all of them, *n_first at the beginning. */
void whit_message_count_system(const whit_datum *messages, size_t *n_all, size_t *n_first);
/* Returns whether a rendered prompt contains the texts of all system messages that are not at the beginning of the
 * list. */
bool whit_message_has_late_system(const whit_datum *messages, const char *prompt, size_t n_bytes);
/* Converts system messages from message n_kept on to user messages, which are joined with a user message before or
 * after them, because many templates require alternating roles. Returns false if memory runs out. */
bool whit_message_fold_system(whit_datum_pool *pool, size_t n_kept, whit_datum *messages);

#endif
