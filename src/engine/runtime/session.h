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

/* Holds the adapters mounted on a sequence, in the caller's order; those of strength 0 are left out. */
typedef struct whit_session_mounts {
    uint32_t n;
    whit_mount items[WHIT_MOUNTS_MAX];
} whit_session_mounts;

/* Size of whit_step_token in the first version of the library. */
#define WHIT_STEP_TOKEN_MIN_BYTES offsetof(whit_step_token, token_type)

struct whit_session {
    const whit_model *model;
    const whit_allocator *allocator;
    whit_session_options options; /* with defaults filled in */
    whit_kernels kernels;
    whit_plan plan;
    whit_exec_schedules schedules;
    whit_exec exec;
    whit_kv_layer *kv_layers; /* (n_layers of the model) */
    whit_kv kv;
    whit_marks marks;
    whit_step_costs costs;    /* measured times of steps */
    whit_draft_account draft; /* account of the guesses whose number is chosen by cost */
    whit_drafter *drafter;    /* draft model; NULL: none */
    whit_pool *pool;
    void *arena;
    size_t arena_bytes;
    uint32_t *positions;         /* (n_sequences) number of tokens of each sequence */
    whit_session_mounts *mounts; /* (n_sequences) */
    /* (n_sequences) some of the sequence's tokens were computed with other adapters than those mounted now */
    bool *is_mixed;
    int32_t *tokens;        /* (n_sequences, n_ctx_tokens) the ids at the positions of each sequence */
    uint32_t *to_mark;      /* (n_sequences) position to mark when the sequence passes it; 0: none */
    uint32_t *last_mark;    /* (n_sequences) last marked position, or a later one; 0: no mark */
    uint64_t *recent_marks; /* (n_sequences, WHIT_MARKS_RECENT) numbers of its newest marks in order; 0: no mark */
    uint32_t *advanced;     /* (n_sequences) number of tokens added by the current step */
    /* (n_sequences + 1) the last step computed logits that are not finite; the last element belongs to ranks
     * (split.h) */
    bool *is_damaged;
    uint64_t split_tail_bytes; /* size of the largest rank's tail of a split model; 0: not split */
    uint32_t split_number;     /* index of the session in the table of every rank (split.h) */
    int32_t *ids;              /* (n_batch_tokens) ids of the current pass; row_sequences and row_positions likewise */
    uint32_t *row_sequences, *row_positions;
    uint8_t *row_types;  /* (n_batch_tokens) token types */
    uint32_t *wanted;    /* by row: index among the requested rows plus 1; 0: its logits are not requested */
    uint32_t *selected;  /* by index among the requested rows: the row */
    uint32_t *tops;      /* by index among the requested rows: how many of its largest logits must be exact, 0: all */
    uint32_t n_selected; /* number of requested rows of the last step */
    whit_cache_event_fn *on_cache_event; /* may be NULL */
    void *cache_event_user;
};

/* Refuses a number that is not the number of a sequence of the session (argument error). */
whit_status whit_session_check_sequence(const whit_session *session, uint32_t sequence, whit_error *error);

/* Opens a session in this process alone. If the model is split, rank 0 has already asked the other ranks to do the
 * same. */
whit_status whit_session_open_here(const whit_model *model, const whit_session_options *options, whit_session **session,
                                   whit_error *error);
/* Runs a step in which no sequence can make another fail. If logits are not finite, whit_session_step fails; this
 * function leaves the sequences that they belong to unchanged, sets is_damaged for them, and advances the others.
 * Logits of a damaged sequence must not be read. */
whit_status whit_session_step_each(whit_session *session, const whit_step_token *tokens, size_t n_tokens,
                                   whit_error *error);
/* Returns the ids of a sequence; the first positions[sequence] are valid. */
static inline int32_t *whit_session_tokens_of(const whit_session *session, uint32_t sequence)
{
    return session->tokens + (size_t)sequence * session->options.n_ctx_tokens;
}
/* Truncates a sequence as whit_session_truncate does, without its checks and in this process alone. */
void whit_session_cut(whit_session *session, uint32_t sequence, uint32_t n_tokens);
/* Restores the longest prefix of `ids`, at most n_ids of them, that the session still stores as a mark or as whole
 * blocks computed with the sequence's adapters. If the restored prefix is shorter than n_ids, position n_ids is marked
 * when the sequence passes it. */
void whit_session_go_back(whit_session *session, uint32_t sequence, const int32_t *ids, uint32_t n_ids);
/* Enters the blocks closed between positions `from` and `to` into the prefix cache. */
void whit_session_name_blocks(whit_session *session, uint32_t sequence, uint32_t from, uint32_t to);
/* Computes the key of a sequence's first n_blocks blocks: a hash of everything that their contents depend on. */
void whit_session_block_key(const whit_session *session, uint32_t sequence, uint32_t n_blocks,
                            uint8_t key[WHIT_HASH_BYTES]);
/* Places the memory of the marks in the arena, which either measures it or hands it out. Tails come last, so that their
 * pages stay untouched until they are used. */
void whit_session_place_marks(whit_session *session, whit_arena *arena);
/* Returns whether a sequence is to be marked once it has n_tokens, the last of which is `id` (marks.h says where). */
bool whit_session_is_to_mark(const whit_session *session, uint32_t sequence, uint32_t n_tokens, int32_t id);
/* Marks a position of a sequence. Does nothing unless the cache needs marks (it is packed, or layers are recurrent) and
 * still has the tail of that position. */
void whit_session_keep_mark(whit_session *session, uint32_t sequence, uint32_t n_tokens);
/* Makes the mark with a serial number the newest mark of a sequence; the newest marks are evicted last. */
void whit_session_note_mark(whit_session *session, uint32_t sequence, uint64_t number);
/* Finds marks of a sequence's prefix that are worth saving beside its end: the last mark before the positions that the
 * tail of the end serves, and then the most used ones. Writes their indices, ordered by position, and returns their
 * number, at most `most`. */
uint32_t whit_session_find_marks(const whit_session *session, uint32_t sequence, uint32_t *marks, uint32_t most);
/* Makes the draft model, if there is one, forget a sequence from position n_tokens on. */
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
