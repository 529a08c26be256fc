/* SPDX-License-Identifier: MIT
 * Sessions: a compiled plan, worker threads and the KV caches of one or more sequences of tokens. A
 * session belongs to one thread at a time. */
#ifndef WHIT_SESSION_H
#define WHIT_SESSION_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct whit_session whit_session;
/* The last three types of KV cache keep old positions in few bits (docs/use/context.md): keys in 4 or 2 and values in
 * 2; both as trits in bitmaps. */
typedef enum whit_kv_type {
    WHIT_KV_F16 = 0,
    WHIT_KV_F32 = 1,
    WHIT_KV_I8 = 2,
    WHIT_KV_K4V2 = 3,
    WHIT_KV_K2V2 = 4,
    WHIT_KV_BITMAP = 5
} whit_kv_type;
#define WHIT_KV_TYPES 6
/* Activation format for coded weights (ternary BitLinear and float matrices have a fixed format). */
typedef enum whit_act_type {
    WHIT_ACT_F32 = 0,
    WHIT_ACT_I8 = 1,
    WHIT_ACT_Q2 = 2 /* {-2, -1, 1, 2} for b1 and q2 matrices, products by bit operations alone; i8 for others */
} whit_act_type;

typedef struct whit_session_options {
    size_t struct_bytes;
    uint32_t n_ctx_tokens;       /* per sequence; default 0: as trained, at most 4,096 */
    uint32_t n_batch_tokens;     /* most tokens in one pass; default 512 */
    uint32_t n_sequences;        /* default 1 */
    uint32_t n_threads;          /* default 0: physical cores */
    whit_kv_type kv;             /* default f16 */
    whit_act_type act;           /* default i8 */
    uint32_t n_logits;           /* most wanted tokens of a step; default 0: n_sequences */
    bool keep_hidden;            /* keep final hidden states, for whit_session_hidden */
    bool exact_head;             /* read the whole head also where n_top is set */
    bool no_fuse;                /* run every operation by itself: the same bits, slower; for checks */
    const char *cpu;             /* cap of the ISA level, as WHIT_CPU; NULL or "": no cap */
    const volatile bool *cancel; /* looked at between layers; may be set from a signal handler or a thread */
    bool endless;                /* tokens without end: beyond the context a token attends to the newest ones and to the
                                  * first n_sinks */
    uint32_t n_sinks;            /* at most 64; default 4 (docs/use/context.md) */
    uint32_t n_kv_window;        /* packed caches: full blocks of 64 before a token that it reads in f16; default 1 */
    uint32_t n_marks;       /* packed caches, recurrent layers: checkpoints to go back to, at most 4,096; default 4 */
    uint64_t state_bytes;   /* memory for checkpoints, which then decides how many there are; 0: n_marks decides */
    uint32_t n_mark_tokens; /* checkpoints at multiples of this; 0: chosen by their number, at least 1,024 */
    bool only_vectors;      /* no logits: wanted tokens have hidden states alone (whit_embed_texts); n_logits is
                                    by default n_batch_tokens */
} whit_session_options;
static inline whit_session_options whit_session_options_default(void)
{
    whit_session_options options;
    memset(&options, 0, sizeof options);
    options.struct_bytes = sizeof options;
    options.n_batch_tokens = 512;
    options.n_sequences = 1;
    options.act = WHIT_ACT_I8;
    options.n_sinks = 4;
    options.n_kv_window = 1;
    options.n_marks = 4;
    return options;
}
WHIT_API WHIT_CHECKED whit_status whit_session_open(const whit_model *model, const whit_session_options *options,
                                                    whit_session **session, whit_error *error);
WHIT_API void whit_session_close(whit_session *session);

/* Describes one token of one sequence. A step takes tokens of any sequences, each continuing its own. With n_top > 0
 * only the n_top largest logits are exact; the others may be estimates, each below those, which lets a head of codec
 * i8s be read by half (docs/dev/numerics.md). */
typedef struct whit_step_token {
    uint32_t sequence;
    int32_t id;
    bool want_logits;
    uint32_t n_top;      /* default 0: all logits */
    uint32_t token_type; /* BERT: 0 in the first part of a text, 1 in the second */
} whit_step_token;

/* Runs tokens through the model (any number; split into batches inside). Either all tokens are
 * appended to their sequences or, on failure, none. Logits of the wanted ones are kept until the
 * next step, in order, (vocab) f32 each; at most n_logits may be wanted at once. */
WHIT_API WHIT_CHECKED whit_status whit_session_step_strided(whit_session *session, const void *tokens, size_t n_tokens,
                                                            size_t stride_bytes, whit_error *error);
static inline whit_status whit_session_step(whit_session *session, const whit_step_token *tokens, size_t n_tokens,
                                            whit_error *error)
{
    return whit_session_step_strided(session, tokens, n_tokens, sizeof *tokens, error);
}
WHIT_API const float *whit_session_logits(const whit_session *session, size_t i_wanted);
/* Returns the values that a text's vector is pooled from, for a wanted token, (whit_model_embedding_size) f32: the
 * hidden state after the final norm, or after the dense layers of a model that has them. Needs keep_hidden. */
WHIT_API const float *whit_session_hidden(const whit_session *session, size_t i_wanted);
WHIT_API uint32_t whit_session_position(const whit_session *session, uint32_t sequence);
/* Forgets the tokens of a sequence from `n_tokens` on (0: all). A model with sliding windows, and an endless session,
 * keep 128 tokens more than they see, a packed cache 47, recurrent layers 8: further back a sequence may end up
 * shorter, with the longest prefix at which it can resume. Read whit_session_position, and feed the tokens from
 * there. */
WHIT_API WHIT_CHECKED whit_status whit_session_truncate(whit_session *session, uint32_t sequence, uint32_t n_tokens,
                                                        whit_error *error);
/* Makes sequence `to` the first n_tokens of `from`, or fewer as whit_session_truncate may; memory of the common prefix
 * is shared. If both are the same sequence, it is truncated. */
WHIT_API WHIT_CHECKED whit_status whit_session_share(whit_session *session, uint32_t from, uint32_t to,
                                                     uint32_t n_tokens, whit_error *error);
/* Makes a sequence the longest prefix of `ids` that is cached: in itself, in other sequences, or in blocks of sequences
 * that were truncated (whole blocks of 64 tokens, kept until their memory is needed), computed with the adapters that
 * it has mounted. Afterwards the sequence holds *n_present tokens of it, fewer than n_ids; the caller feeds the
 * remaining tokens. The result is as if all tokens had been fed. */
WHIT_API WHIT_CHECKED whit_status whit_session_reuse(whit_session *session, uint32_t sequence, const int32_t *ids,
                                                     size_t n_ids, uint32_t *n_present, whit_error *error);
/* For packed caches and models with recurrent layers, saves a checkpoint of a sequence's current position, which
 * whit_session_truncate, whit_session_share and whit_session_reuse can return to, for any sequence. If all places are
 * taken, the checkpoint whose loss costs least gives way: few tokens to compute again, few uses, long unused. The ends
 * of prompts, answers and messages, the ends of prefixes that could not be reused, and every n_mark_tokens tokens are
 * marked without this call, so that few programs need it. It has no effect on other caches. */
WHIT_API WHIT_CHECKED whit_status whit_session_mark(whit_session *session, uint32_t sequence, whit_error *error);
/* Counts a session's checkpoints. Set struct_bytes before the call. */
typedef struct whit_mark_counts {
    size_t struct_bytes;
    uint32_t n_marks, n_marks_max;      /* checkpoints that exist, and that there is memory for */
    uint64_t mark_bytes;                /* bytes of one checkpoint; 0: this cache needs no checkpoints */
    uint64_t n_made, n_used, n_evicted; /* since the session was opened */
} whit_mark_counts;
WHIT_API void whit_session_count_marks(const whit_session *session, whit_mark_counts *counts);
/* Predicts the counts (n_marks_max, mark_bytes) that a session with these options would have. */
WHIT_API WHIT_CHECKED whit_status whit_session_predict_marks(const whit_model *model,
                                                             const whit_session_options *options,
                                                             whit_mark_counts *counts, whit_error *error);
WHIT_API uint32_t whit_session_context_size(const whit_session *session);
/* Returns the bytes of the session's memory, except the memory for adapters. */
WHIT_API size_t whit_session_arena_bytes(const whit_session *session);

#ifdef __cplusplus
}
#endif
#endif
