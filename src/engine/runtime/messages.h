/* SPDX-License-Identifier: MIT
 * The messages of a conversation, and their form as a file.
 *
 * A list owns its texts. At most one message is the system's, and it comes first. */
#ifndef WHIT_RUNTIME_MESSAGES_H
#define WHIT_RUNTIME_MESSAGES_H

#include "base/mem.h"

typedef enum whit_role { WHIT_ROLE_SYSTEM, WHIT_ROLE_USER, WHIT_ROLE_ASSISTANT } whit_role;

const char *whit_role_name(whit_role role); /* "system", "user", "assistant" */

typedef struct whit_message {
    whit_role role;
    char *text; /* UTF-8, may hold zeros; terminated by one that text_bytes does not count */
    size_t text_bytes;
    size_t n_left_out; /* the list's n_left_out when the message was added */
} whit_message;

/* Zero-initialise with the allocator of `items` set; free with whit_messages_free. */
typedef struct whit_messages {
    whit_buf items;    /* whit_message[] */
    size_t n_left_out; /* how many messages, the oldest after the system message, are not in prompts */
} whit_messages;

void whit_messages_free(whit_messages *messages);
size_t whit_messages_count(const whit_messages *messages);
/* i < count; valid until the list changes. */
const whit_message *whit_messages_at(const whit_messages *messages, size_t i);
/* Returns the system message, or NULL. */
const whit_message *whit_messages_system(const whit_messages *messages);

/* Appends a copy; bytes that are not UTF-8 become U+FFFD. Not for the system message. */
whit_status whit_messages_add(whit_messages *messages, whit_role role, const char *text, size_t text_bytes,
                              whit_error *error);
/* Sets the system message, or removes it if text_bytes is 0. On failure it is unchanged. */
whit_status whit_messages_set_system(whit_messages *messages, const char *text, size_t text_bytes, whit_error *error);
/* Removes the last message if it has that role, and restores the messages that were left out for it. */
bool whit_messages_take_back(whit_messages *messages, whit_role role);
/* Removes all messages except the system message. */
void whit_messages_clear(whit_messages *messages);

/* Appends {"messages": [{"role": "user", "content": "..."}, ...]} and a line feed: JSON on one
 * line, as `whit template --jsonl` takes it. */
whit_status whit_messages_write(const whit_messages *messages, whit_buf *out, whit_error *error);
/* Replaces the list by the messages in such a text; on failure it is unchanged. `name` begins error
 * lines. Members other than "messages" are ignored; messages that the list cannot represent (other
 * roles, contents that are not text, tool calls) are refused. */
whit_status whit_messages_read(whit_messages *messages, const char *name, const char *text, size_t text_bytes,
                               whit_error *error);

#endif
