/* SPDX-License-Identifier: MIT
 * Holds conversations: messages in, answers out, with a chat template and one sequence of a session.
 *
 *     open -> say -> answer -> (next_call -> return -> answer) -> say -> ...
 *
 * Messages are JSON as OpenAI's chat API has them. An answer depends only on the messages, the messages that earlier
 * prompts left out, the tools, the template, the sampler, the options and the context's size: every prompt is rendered
 * and encoded as a whole. Tokens that the sequence already has are not computed again. When the context is full,
 * prompts leave out the oldest turns, but not the system message; the conversation still contains these turns. */
#ifndef WHIT_CONVERSATION_H
#define WHIT_CONVERSATION_H

#include "calls.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Only the session's thread may use a conversation. The session and the template must outlive it. */
typedef struct whit_conversation whit_conversation;

WHIT_API WHIT_CHECKED whit_status whit_conversation_open(whit_session *session, uint32_t sequence,
                                                         const whit_chat_template *chat,
                                                         whit_conversation **conversation, whit_error *error);
WHIT_API void whit_conversation_close(whit_conversation *conversation);

/* ---- messages ------------------------------------------------------------------------------------- */

/* Appends a message with this role ("user", "assistant", "system") and text; bytes that are not UTF-8 become U+FFFD. */
WHIT_API WHIT_CHECKED whit_status whit_conversation_say(whit_conversation *conversation, const char *role,
                                                        const char *text, size_t text_bytes, whit_error *error);
/* Appends JSON: a message, a list of messages, or an object whose "messages" is such a list. On failure nothing is
 * appended. The result of a call (role "tool") must follow an assistant's message with calls. */
WHIT_API WHIT_CHECKED whit_status whit_conversation_append(whit_conversation *conversation, const char *json,
                                                           size_t json_bytes, whit_error *error);
/* Sets the system message at the beginning; removes it if text_bytes is 0. On failure it is unchanged. */
WHIT_API WHIT_CHECKED whit_status whit_conversation_set_system(whit_conversation *conversation, const char *text,
                                                               size_t text_bytes, whit_error *error);
WHIT_API size_t whit_conversation_count(const whit_conversation *conversation);
/* Returns message i as one line of JSON, not terminated, valid until the messages change; NULL if i >= count. */
WHIT_API const char *whit_conversation_message(const whit_conversation *conversation, size_t i, size_t *json_bytes);
/* Removes all messages after the first n. Later prompts can contain older messages again that were left out to make
 * room for the removed ones. */
WHIT_API void whit_conversation_keep(whit_conversation *conversation, size_t n);
/* Removes the last user message and all that follows it, or, without one, all messages after the system messages;
 * returns the number of removed messages. */
WHIT_API size_t whit_conversation_undo(whit_conversation *conversation);
/* Returns the number of messages that prompts leave out: the oldest ones after the system message. */
WHIT_API size_t whit_conversation_n_left_out(const whit_conversation *conversation);

/* Writes {"messages": [...]} and a line feed, atomically. An existing file is replaced only if it holds a conversation
 * and nothing else (WHIT_ERROR_FORMAT otherwise), so that no member of another program's file is lost. */
WHIT_API WHIT_CHECKED whit_status whit_conversation_save(const whit_conversation *conversation, const char *path,
                                                         whit_error *error);
/* Replaces the messages by those of a file as whit_conversation_save writes it; on failure they are unchanged. */
WHIT_API WHIT_CHECKED whit_status whit_conversation_load(whit_conversation *conversation, const char *path,
                                                         whit_error *error);

/* ---- tools ---------------------------------------------------------------------------------------- */

/* Sets the tools that answers may call: a JSON list, which is copied; NULL or an empty list: no tools. The error is
 * WHIT_ERROR_UNSUPPORTED if the template does not support tools (see whit_chat_template_options.tool_fallback). */
WHIT_API WHIT_CHECKED whit_status whit_conversation_set_tools(whit_conversation *conversation, const char *tools,
                                                              size_t tools_bytes, whit_error *error);

/* Describes a call of a function; the texts are terminated, and valid until the messages change or the next
 * whit_conversation_next_call. */
typedef struct whit_conversation_call {
    const char *id, *name;
    const char *arguments; /* JSON as the model wrote it; can be malformed, especially from small models */
    size_t arguments_bytes;
} whit_conversation_call;

/* Returns the first call of the last answer that has no result yet; NULL if there is no such call or no memory. */
WHIT_API const whit_conversation_call *whit_conversation_next_call(whit_conversation *conversation);
/* Appends the result of the call that whit_conversation_next_call returns. The error is WHIT_ERROR_ARGUMENT if there is
 * no such call. */
WHIT_API WHIT_CHECKED whit_status whit_conversation_return(whit_conversation *conversation, const char *text,
                                                           size_t text_bytes, whit_error *error);

/* ---- answers -------------------------------------------------------------------------------------- */

typedef struct whit_answer_options {
    size_t struct_bytes;
    uint32_t n_tokens;       /* maximum tokens to generate; default UINT32_MAX: until the context is full */
    uint32_t n_draft_tokens; /* maximum guessed tokens per step, as in whit_generate_options */
    bool ignore_end;         /* keep generating after end tokens */
    whit_thinking thinking;
    const char *const *stop; /* at most 32 stop strings, in addition to the template's own */
    size_t n_stop;
    const whit_stage *const *stages; /* at most 15 stages, as in whit_generate_options */
    size_t n_stages;
    whit_chat_event_fn *on_event; /* receives text, thinking and calls as they become final; may be NULL */
    whit_text_fn *on_text;        /* receives the answer as the model writes it, with markers; may be NULL */
    void *user;                   /* passed to on_event and on_text */
    /* A grammar constrains calls if they are required or single, if a tool is "strict", or if the template does not
     * know tools and there are no stages (see whit_call_options). */
    whit_call_choice choice;
    const char *call_name; /* the only function that may be called; a call is then required; NULL: any function */
    bool single_call;      /* allow one call at most, which a grammar enforces */
    bool keep_all;         /* do not leave out messages: WHIT_ERROR_LIMIT if fewer than n_room tokens remain for the
                            * answer */
    uint32_t n_room;       /* with keep_all: tokens that must remain for the answer; default 1 */
    uint32_t n_thinking_tokens; /* maximum tokens of the thinking section, which then ends; 0: no limit */
} whit_answer_options;
static inline whit_answer_options whit_answer_options_default(void)
{
    whit_answer_options options;
    memset(&options, 0, sizeof options);
    options.struct_bytes = sizeof options;
    options.n_tokens = UINT32_MAX;
    options.n_room = 1;
    return options;
}

typedef struct whit_answer {
    size_t struct_bytes;
    uint32_t n_kept;      /* prompt tokens that the sequence already had */
    uint32_t n_prompt;    /* prompt tokens that were evaluated */
    uint32_t n_generated; /* tokens of the answer */
    uint32_t n_calls;     /* calls in the answer */
    uint64_t prompt_ns, generate_ns;
    whit_finish finish;
    uint32_t n_left_out; /* number of messages that this prompt left out and earlier prompts did not */
    bool full;           /* the answer ended because the context is full */
    bool is_held;        /* a grammar constrained the calls */
} whit_answer;
static inline whit_answer whit_answer_default(void)
{
    whit_answer answer;
    memset(&answer, 0, sizeof answer);
    answer.struct_bytes = sizeof answer;
    return answer;
}

/* Generates an answer to the last message and appends it. If the answer fails or is cancelled, appends the text
 * generated until then; without any text the messages are as before. `answer` may be NULL. Errors: WHIT_ERROR_LIMIT
 * (one turn is longer than the context), WHIT_ERROR_ARGUMENT (there is no message, or a call has no result yet), and
 * the errors of the template and the session. */
WHIT_API WHIT_CHECKED whit_status whit_conversation_answer(whit_conversation *conversation, whit_sampler *sampler,
                                                           const whit_answer_options *options, whit_answer *answer,
                                                           whit_error *error);
/* Returns the rendered prompt of the last answer; not terminated. */
WHIT_API const char *whit_conversation_prompt(const whit_conversation *conversation, size_t *text_bytes);
/* Returns the ids in the sequence: those of the last prompt, then those of the answer except its last id. */
WHIT_API const int32_t *whit_conversation_ids(const whit_conversation *conversation, size_t *n_ids);

#ifdef __cplusplus
}
#endif
#endif
