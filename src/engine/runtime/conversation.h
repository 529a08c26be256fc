/* SPDX-License-Identifier: MIT
 * A conversation with a model: its messages, and a sequence of a session that holds the keys and
 * values of the last prompt and answer.
 *
 * An answer depends on the messages, the template, the sampler and the context's size alone: every
 * prompt is rendered and encoded whole, and what it has in common with the tokens that the sequence
 * holds is not computed again. When the context ends, the oldest turns are left out of the prompt
 * (the system message stays); they stay among the messages.
 *
 * Belongs to the session's thread. Session and prompter must outlive it. */
#ifndef WHIT_RUNTIME_CONVERSATION_H
#define WHIT_RUNTIME_CONVERSATION_H

#include "runtime/prompter.h"
#include "runtime/thinking.h"

typedef struct whit_conversation whit_conversation;

whit_status whit_conversation_open(whit_session *session, uint32_t sequence, const whit_prompter *prompter,
                                   whit_conversation **conversation, whit_error *error);
void whit_conversation_close(whit_conversation *conversation);

/* For the caller to read and to change between answers. */
whit_messages *whit_conversation_messages(whit_conversation *conversation);

typedef struct whit_answer_options {
    uint32_t n_tokens;       /* maximum tokens to generate; UINT32_MAX: until the context is full */
    uint32_t n_draft_tokens; /* as in whit_generate_options */
    bool ignore_end;         /* keep generating after end tokens */
    whit_thinking thinking;
    const char *const *stop; /* stop strings, beside the template's own */
    size_t n_stop;
    const whit_stage *const *stages; /* as in whit_generate_options */
    size_t n_stages;
    whit_part_fn *on_part; /* the answer as it becomes final; NULL is fine */
    void *user;
} whit_answer_options;

typedef struct whit_answer {
    uint32_t n_kept;   /* prompt tokens that were in the sequence already */
    uint32_t n_prompt; /* prompt tokens that were evaluated */
    uint32_t n_generated;
    uint64_t prompt_ns, generate_ns;
    whit_finish finish;
    uint32_t n_left_out; /* messages that this prompt is the first to leave out */
    bool full;           /* the answer ended with the context */
} whit_answer;

/* Answers the last message and appends the answer; after a cancel, what there is of it. Where
 * nothing was generated in a failed or cancelled call, the messages are as before. Errors: limit (a
 * single turn is longer than the context), the template's, the session's. `answer` may be NULL. */
whit_status whit_conversation_answer(whit_conversation *conversation, whit_sampler *sampler,
                                     const whit_answer_options *options, whit_answer *answer, whit_error *error);
/* Returns the prompt of the last answer, as rendered; not terminated. */
const char *whit_conversation_prompt(const whit_conversation *conversation, size_t *n_bytes);
/* Returns the ids that the sequence holds: the last prompt's, then the answer's except its last. */
const int32_t *whit_conversation_ids(const whit_conversation *conversation, size_t *n_ids);
/* Returns the ids of the last turn: n_given ids of the prompt, then the picked ids, of which the last may
 * not be in the sequence. */
const int32_t *whit_conversation_turn(const whit_conversation *conversation, size_t *n_ids, size_t *n_given);
/* Resumes from a session file: declares that the sequence holds these ids (or all but the last). */
whit_status whit_conversation_resume(whit_conversation *conversation, const int32_t *ids, size_t n_ids,
                                     whit_error *error);

#endif
