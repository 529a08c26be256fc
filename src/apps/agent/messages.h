/* SPDX-License-Identifier: MIT
 * Keeps the messages of a conversation, shortens them to the model's context, and saves them in a file. */
#ifndef WHIT_AGENT_MESSAGES_H
#define WHIT_AGENT_MESSAGES_H

#include "base/mem.h"

#include <jansson.h>

typedef struct whit_agent_messages {
    json_t *list;
    /* limit on the size of the messages' contents in bytes; whit_agent_messages_shorten() replaces older results by one
     * line each if it is exceeded */
    size_t limit_bytes;
} whit_agent_messages;

/* Begins a conversation with the system message, which contains the project's AGENTS.md, if there is one, without keys
 * and cut to an eighth of limit_bytes (at most 32 KiB). Errors: io, memory. */
whit_status whit_agent_messages_begin(whit_agent_messages *messages, const char *project, size_t limit_bytes,
                                      whit_error *error);
void whit_agent_messages_free(whit_agent_messages *messages);
/* Appends a message. For a tool's result, `call_id` is the id of its call. In a text that is not valid UTF-8 every byte
 * above 0x7F becomes '?'. */
whit_status whit_agent_messages_add(whit_agent_messages *messages, const char *role, const char *call_id,
                                    const char *text, size_t n_bytes, whit_error *error);
/* Appends an assistant's message, with its calls if it has any. */
whit_status whit_agent_messages_add_answer(whit_agent_messages *messages, const json_t *message, whit_error *error);
/* If the messages exceed limit_bytes, replaces tool results by one line each, the oldest first, until they do not. The
 * 8 newest messages, results under 300 bytes, and all words of the person and of the model stay, so the messages may
 * still exceed the limit. */
void whit_agent_messages_shorten(whit_agent_messages *messages);

/* Save and load a conversation's file, with mode 0600. Saving replaces the file as a whole or leaves it unchanged.
 * Loading appends the file's messages except the first, which is the system message of an earlier session; *there is
 * false if the file does not exist. Errors: io, memory, format (the file is not a saved conversation). */
whit_status whit_agent_messages_save(const whit_agent_messages *messages, const char *path, whit_error *error);
whit_status whit_agent_messages_load(whit_agent_messages *messages, const char *path, bool *there, whit_error *error);
/* Locks the conversation's file for this process, so that no other agent replaces its content. *lock is a descriptor,
 * which the caller closes to unlock; -1 means that another process has locked the file. The lock file is in the state
 * folder (state_dir as `given` of whit_agent_state_path). Errors: io. */
whit_status whit_agent_messages_reserve(const char *path, const char *state_dir, int *lock, whit_error *error);
whit_status whit_agent_messages_parse(whit_agent_messages *messages, const char *text, size_t n_bytes, const char *name,
                                      whit_error *error);

#endif
