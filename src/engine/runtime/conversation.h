/* SPDX-License-Identifier: MIT
 * Internals of a conversation: its list of messages (conversation_messages.c) and the last prompt (conversation.c). */
#ifndef WHIT_RUNTIME_CONVERSATION_H
#define WHIT_RUNTIME_CONVERSATION_H

#include "base/mem.h"
#include "whit/conversation.h"

typedef enum whit_role {
    WHIT_ROLE_SYSTEM, /* also "developer" */
    WHIT_ROLE_USER,
    WHIT_ROLE_ASSISTANT,
    WHIT_ROLE_TOOL,
    WHIT_ROLE_OTHER,
} whit_role;

typedef struct whit_message {
    whit_role role;
    uint32_t n_calls; /* number of tool calls in the message */
    char *json;       /* the message on one line; followed by a zero that json_bytes does not count */
    size_t json_bytes;
    size_t n_left_out; /* value of the conversation's n_left_out when the message was added */
} whit_message;

struct whit_conversation {
    whit_session *session;
    const whit_chat_template *chat;
    const whit_allocator *allocator;
    uint32_t sequence;
    whit_buf messages; /* whit_message[] */
    size_t n_left_out; /* number of messages, the oldest after the system messages, that prompts leave out */
    whit_conversation_call call;
    whit_buf call_texts;                 /* the strings that `call` points to */
    whit_buf tools;                      /* JSON list of tools; empty: no tools */
    bool is_strict;                      /* a tool has "strict": true */
    whit_grammar_vocabulary *vocabulary; /* vocabulary for grammars of calls; NULL until needed */
    whit_chat_prompt *prompt;            /* the prompt of the last answer; NULL before it */
    whit_buf held;  /* int32_t[]: the ids in the sequence, and possibly the last picked one, which is not fed yet */
    size_t n_given; /* number of ids in `held` that belong to the last prompt */
};

const whit_message *whit_messages_of(const whit_conversation *conversation);
/* Returns the number of system messages at the beginning of the conversation. */
size_t whit_conversation_n_system(const whit_conversation *conversation);
/* Appends one message: valid JSON on one line. */
whit_status whit_conversation_add(whit_conversation *conversation, whit_role role, uint32_t n_calls, const char *json,
                                  size_t json_bytes, whit_error *error);
/* Returns whether a call of the last answer has no result yet. */
bool whit_conversation_waits(const whit_conversation *conversation);
/* Appends a JSON list of the first n_system messages and of the messages from index `first` on. Returns false if memory
 * runs out. */
bool whit_conversation_write(const whit_conversation *conversation, size_t n_system, size_t first, whit_buf *out);

/* Returns the ids of the last turn, for session files: n_given ids of the prompt, then the picked ids; the last of them
 * may not be in the sequence. */
const int32_t *whit_conversation_turn(const whit_conversation *conversation, size_t *n_ids, size_t *n_given);
/* Sets the ids of the sequence after a session was restored: the sequence contains all of them, or all but the last. */
whit_status whit_conversation_resume(whit_conversation *conversation, const int32_t *ids, size_t n_ids,
                                     whit_error *error);
/* Sets how many messages after the system messages prompts leave out; returns false if there are fewer. */
bool whit_conversation_leave_out(whit_conversation *conversation, size_t n);

#endif
