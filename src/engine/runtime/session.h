/* SPDX-License-Identifier: MIT
 * A session, inside: the plan of a model bound to one arena, KV caches and threads. */
#ifndef WHIT_RUNTIME_SESSION_H
#define WHIT_RUNTIME_SESSION_H

#include "model/exec.h"
#include "runtime/marks.h"
#include "runtime/model.h"

/* What is mounted on a sequence, as the caller said it (without strengths of 0). */
typedef struct whit_session_mounts {
    uint32_t n;
    whit_mount items[WHIT_MOUNTS_MAX];
} whit_session_mounts;

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
    whit_pool *pool;
    void *arena;
    size_t arena_bytes;
    uint32_t *positions;         /* (n_sequences) tokens of each sequence */
    whit_session_mounts *mounts; /* (n_sequences) */
    bool *is_mixed;              /* (n_sequences) its tokens were not all computed with what is mounted now */
    int32_t *tokens;             /* (n_sequences, n_ctx_tokens) the ids at the positions of each sequence */
    uint32_t *to_mark;           /* (n_sequences) a position that is marked when it is passed; 0: none */
    uint32_t *advanced;          /* (n_sequences) of the step that runs */
    bool *is_damaged;            /* (n_sequences) the last step gave it logits that are not finite */
    int32_t *ids;                /* (n_batch_tokens) of the pass that runs, as the four below */
    uint32_t *row_sequences, *row_positions;
    uint32_t *wanted;    /* row -> which wanted one it is, from 1; 0: none */
    uint32_t *selected;  /* wanted one -> row */
    uint32_t *tops;      /* wanted one -> how many of its logits must be right, 0: all */
    uint32_t n_selected; /* of the last step */
};

/* Takes a step in which no sequence can harm another: where whit_session_step fails because logits are not finite, this
 * one leaves the sequences that they belong to as they were before, sets is_damaged for them, and advances the others.
 * Logits of a damaged sequence are not to be read. */
whit_status whit_session_step_each(whit_session *session, const whit_step_token *tokens, size_t n_tokens,
                                   whit_error *error);
/* The ids of a sequence; those of its positions count. */
static inline int32_t *whit_session_tokens_of(const whit_session *session, uint32_t sequence)
{
    return session->tokens + (size_t)sequence * session->options.n_ctx_tokens;
}
/* Makes a sequence the longest beginning of `ids`, at most n_ids of them, that it can go on from by what the session
 * holds, computed with what is mounted on it: a mark, or whole blocks. Where that is less than n_ids, the next time
 * that it passes n_ids is marked. */
void whit_session_go_back(whit_session *session, uint32_t sequence, const int32_t *ids, uint32_t n_ids);
/* Names the blocks that were closed from position `from` to `to`, so that they can be found again. */
void whit_session_name_blocks(whit_session *session, uint32_t sequence, uint32_t from, uint32_t to);
/* Marks a position of a sequence, where it can: packed caches alone, while its tail is there. */
void whit_session_keep_mark(whit_session *session, uint32_t sequence, uint32_t n_tokens);
/* Tokens that a sequence can take yet. */
static inline uint32_t whit_session_room(const whit_session *session, uint32_t sequence)
{
    return (session->options.endless ? UINT32_MAX : session->options.n_ctx_tokens) - session->positions[sequence];
}

#endif
