/* SPDX-License-Identifier: MIT
 * Holds the messages of a session, keeps them within the model's context and saves them in a file. */
#ifndef WHIT_AGENT_MESSAGES_H
#define WHIT_AGENT_MESSAGES_H

#include "base/mem.h"

#include <jansson.h>

typedef struct whit_agent_messages {
    json_t *list;
    /* limit on the bytes of the contents; older results become one line each before it is reached */
    size_t limit_bytes;
} whit_agent_messages;

/* Begins with the system message, which contains the project's AGENTS.md. Errors: io, memory. */
whit_status whit_agent_messages_begin(whit_agent_messages *messages, const char *project, size_t limit_bytes,
                                      whit_error *error);
void whit_agent_messages_free(whit_agent_messages *messages);
/* Adds a message; for a tool's result, `call_id` is the id of its call. Bytes that are not UTF-8 become '?'. */
whit_status whit_agent_messages_add(whit_agent_messages *messages, const char *role, const char *call_id,
                                    const char *text, size_t n_bytes, whit_error *error);
/* Adds an assistant's message, with its calls if it has any. */
whit_status whit_agent_messages_add_answer(whit_agent_messages *messages, const json_t *message, whit_error *error);
/* Replaces old results by one line each if they exceed the space for messages; the person's and the model's words
 * always stay. */
void whit_agent_messages_shorten(whit_agent_messages *messages);

/* These functions save and load the session's file, with mode 0600; it is written as a whole or stays unchanged.
 * Loading adds the file's messages after the system message; *there is false if there is no such file. Errors: io,
 * format (the file is not a session's). */
whit_status whit_agent_messages_save(const whit_agent_messages *messages, const char *path, whit_error *error);
whit_status whit_agent_messages_load(whit_agent_messages *messages, const char *path, bool *there, whit_error *error);
/* Reserves the session's file for this process, so that no other agent replaces its content. *lock is a descriptor,
 * which the caller closes to release the file; -1 means that another process has reserved the file. The lock's file is
 * in the state folder (state_dir as in whit_agent_state_path). Errors: io. */
whit_status whit_agent_messages_reserve(const char *path, const char *state_dir, int *lock, whit_error *error);
whit_status whit_agent_messages_parse(whit_agent_messages *messages, const char *text, size_t n_bytes, const char *name,
                                      whit_error *error);

#endif
