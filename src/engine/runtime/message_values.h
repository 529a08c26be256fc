/* SPDX-License-Identifier: MIT
 * Messages as values of a template: their texts and roles, and system messages where a template takes none. */
#ifndef WHIT_RUNTIME_MESSAGE_VALUES_H
#define WHIT_RUNTIME_MESSAGE_VALUES_H

#include "base/json.h"
#include "template/chat.h"

/* Appends a JSON value on one line, its strings decoded and written again, so that texts that differ in blanks and
 * escapes alone become the same. Not compact: a blank follows each comma and colon. False: out of memory. */
bool whit_message_write_json(const whit_json *json, uint32_t at, bool compact, whit_buf *out);

/* Returns a member of a message that is a text, or NULL. */
const whit_text *whit_message_text(const whit_datum *message, const char *key);
bool whit_message_has_role(const whit_datum *message, const char *role);
/* Sets a member; false if `text` is NULL or memory is out. */
bool whit_message_set_text(whit_datum_pool *pool, whit_datum *message, const char *key, const whit_text *text);
/* Returns first + between + second, each of which may be absent except `between`; NULL if out of memory. */
const whit_text *whit_message_join(whit_datum_pool *pool, const whit_text *first, const char *between,
                                   const whit_text *second);

/* Counts system messages: all, and those at the beginning. */
void whit_message_count_system(const whit_datum *messages, size_t *n_all, size_t *n_first);
/* Returns whether a rendered prompt has the texts of all system messages after the first others. */
bool whit_message_has_late_system(const whit_datum *messages, const char *prompt, size_t n_bytes);
/* Makes system messages from the n_kept-th message on the person's, each joined to the person's message before or after
 * it, because many templates want roles to alternate. False: out of memory. */
bool whit_message_fold_system(whit_datum_pool *pool, size_t n_kept, whit_datum *messages);

#endif
