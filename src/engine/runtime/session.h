/* SPDX-License-Identifier: MIT
 * Internals of a session: the plan of a model bound to one arena, KV caches and threads. */
#ifndef WHIT_RUNTIME_SESSION_H
#define WHIT_RUNTIME_SESSION_H

#include <stddef.h>

#include "model/exec.h"
#include "runtime/draft_choice.h"
#include "runtime/drafter.h"
#include "runtime/marks.h"
#include "runtime/model.h"
#include "whit/cache.h"

/* Adapters mounted on a sequence, in the caller's order, without adapters of scale 0. */
typedef struct whit_session_mounts {
    uint32_t n;
    whit_mount items[WHIT_MOUNTS_MAX];
} whit_session_mounts;

/* Size of whit_step_token in the first version of the library. */
#define WHIT_STEP_TOKEN_MIN_BYTES offsetof(whit_step_token, token_type)

struct whit_session {
    const whit_model *model;
    const whit_allocator *allocator;
    whit_session_options options; /* the caller's options, after fill_options */
    whit_kernels kernels;
    whit_plan plan;
    whit_exec_schedules schedules;
    whit_exec exec;
    whit_kv_layer *kv_layers; /* (model->config.n_layers) */
    whit_kv kv;
    whit_marks marks;
    whit_step_costs costs;    /* measured times of steps */
    whit_draft_account draft; /* time that guesses may cost, if their number is chosen by cost */
    whit_drafter *drafter;    /* NULL: the session has no draft model */
    whit_pool *pool;
    void *arena;
    size_t arena_bytes;
    uint32_t *positions;         /* (n_sequences): number of tokens of each sequence */
    whit_session_mounts *mounts; /* (n_sequences) */
    /* (n_sequences): some tokens of the sequence may have been computed with other adapters than the present ones */
    bool *is_mixed;
    int32_t *tokens;        /* (n_sequences, n_ctx_tokens): ids of each sequence by position */
    uint32_t *to_mark;      /* (n_sequences): position that is marked when the sequence reaches it; 0: none */
    uint32_t *last_mark;    /* (n_sequences): last position that was marked, or at which the sequence resumed or was
                             * truncated */
    uint64_t *recent_marks; /* (n_sequences, WHIT_MARKS_RECENT): serial numbers of the sequence's newest marks,
                             * newest first; 0: no mark */
    uint32_t *advanced;     /* (n_sequences): number of tokens that the current step has added */
    /* (n_sequences + 1): the last step computed logits (without logits, vectors) of the sequence that are not finite;
     * split.c uses the last element for the messages between ranks */
    bool *is_damaged;
    uint64_t split_tail_bytes; /* split model: size of the largest tail on any rank; otherwise 0 */
    uint32_t split_number;     /* split model: index of the session in `sessions` on every rank (split.h) */
    int32_t *ids;              /* (n_batch_tokens): ids of the rows of the current pass; row_sequences, row_positions
                                * and row_types have the same shape */
    uint32_t *row_sequences, *row_positions;
    uint8_t *row_types;  /* token types */
    uint32_t *wanted;    /* (n_batch_tokens): 1 + the row's index among the rows of the pass whose logits are
                          * requested; 0: not requested */
    uint32_t *selected;  /* (n_batch_tokens): by that index, the row */
    uint32_t *tops;      /* (n_batch_tokens): by that index, how many of the row's largest logits must be exact; 0:
                          * all */
    uint32_t n_selected; /* number of rows of the last step whose logits were requested; 0 if it failed or the context
                          * was full; other steps that are refused leave it unchanged */
    whit_cache_event_fn *on_cache_event; /* may be NULL */
    void *cache_event_user;
};

/* Fails with an argument error if `sequence` is not a sequence of the session. */
whit_status whit_session_check_sequence(const whit_session *session, uint32_t sequence, whit_error *error);

/* Opens a session in this process only. If the model is split, every rank calls this for the session. */
whit_status whit_session_open_here(const whit_model *model, const whit_session_options *options, whit_session **session,
                                   whit_error *error);
/* Runs a step like whit_session_step, but does not fail if logits are not finite: sets is_damaged for their sequences,
 * resets these like a failed step (they may become shorter), and advances all other sequences. Logits of a damaged
 * sequence must not be read. */
whit_status whit_session_step_each(whit_session *session, const whit_step_token *tokens, size_t n_tokens,
                                   whit_error *error);
/* Returns the ids of a sequence, an array (n_ctx_tokens) of which the first positions[sequence] elements (at most
 * n_ctx_tokens) are valid. */
static inline int32_t *whit_session_tokens_of(const whit_session *session, uint32_t sequence)
{
    return session->tokens + (size_t)sequence * session->options.n_ctx_tokens;
}
/* Truncates a sequence like whit_session_truncate, but without checks and only in this process. */
void whit_session_cut(whit_session *session, uint32_t sequence, uint32_t n_tokens);
/* Replaces a sequence by the longest prefix of the n_ids `ids` that the session still stores as a mark or as whole
 * blocks computed with the sequence's adapters. If the prefix is shorter than n_ids, position n_ids is marked when the
 * sequence reaches it. */
void whit_session_go_back(whit_session *session, uint32_t sequence, const int32_t *ids, uint32_t n_ids);
/* Enters the blocks of a sequence that became full between positions `from` and `to`, except blocks beyond the context,
 * into the prefix cache, unless the sequence is mixed (is_mixed). */
void whit_session_name_blocks(whit_session *session, uint32_t sequence, uint32_t from, uint32_t to);
/* Computes the key of a sequence's first n_blocks blocks: a hash of everything that their contents depend on. */
void whit_session_block_key(const whit_session *session, uint32_t sequence, uint32_t n_blocks,
                            uint8_t key[WHIT_HASH_BYTES]);
/* Takes the memory of the marks from the arena, which only counts it or returns it. The tails are last, so that their
 * pages stay untouched until they are used. */
void whit_session_place_marks(whit_session *session, whit_arena *arena);
/* Returns whether a step is to mark a sequence when it has n_tokens tokens, the last of which is `id`: at multiples of
 * the interval, at to_mark, and at ends of messages (marks.h), within the context. Callers mark ends of prompts and
 * answers themselves. */
bool whit_session_is_to_mark(const whit_session *session, uint32_t sequence, uint32_t n_tokens, int32_t id);
/* Marks position n_tokens of a sequence, if the session has marks, the position is not beyond the context, the sequence
 * is not mixed (is_mixed), and the cache still has the tail of the position. */
void whit_session_keep_mark(whit_session *session, uint32_t sequence, uint32_t n_tokens);
/* Makes the mark with serial number `number` the newest mark of a sequence; eviction prefers other marks to the newest
 * ones. */
void whit_session_note_mark(whit_session *session, uint32_t sequence, uint64_t number);
/* Finds at most `most` marks of a sequence's prefix that are worth saving: the last mark before the positions at which
 * the sequence can resume from the tail of its end, and then the most used marks. Writes their indices, ordered by
 * position, to `marks` and returns their number; 0 for a mixed sequence (is_mixed) and beyond the context. */
uint32_t whit_session_find_marks(const whit_session *session, uint32_t sequence, uint32_t *marks, uint32_t most);
/* Makes the draft model, if there is one, forget the hidden states of a sequence from position n_tokens on. */
static inline void whit_session_forget_drafts(whit_session *session, uint32_t sequence, uint32_t n_tokens)
{
    if (session->drafter) whit_drafter_truncate(session->drafter, sequence, n_tokens);
}
/* Returns the number of tokens that can still be appended to a sequence. */
static inline uint32_t whit_session_room(const whit_session *session, uint32_t sequence)
{
    return (session->options.endless ? UINT32_MAX : session->options.n_ctx_tokens) - session->positions[sequence];
}

#endif
