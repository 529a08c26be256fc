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
/* K4V2, K2V2 and BITMAP store old positions in few bits (docs/use/context.md): K4V2 keys in 4 bits and values in 2,
 * K2V2 both in 2 bits, BITMAP both as trits in bitmaps. */
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
    uint32_t n_ctx_tokens;       /* context of each sequence; default 0: as trained, at most 4,096 */
    uint32_t n_batch_tokens;     /* maximum number of tokens in one pass; default 512; raised to n_ctx_tokens if tokens
                                  * attend to both sides; limited to the contexts of all sequences together */
    uint32_t n_sequences;        /* default 1 */
    uint32_t n_threads;          /* default 0: the number of physical cores, at most the CPU quota */
    whit_kv_type kv;             /* default f16 */
    whit_act_type act;           /* default i8 */
    uint32_t n_logits;           /* maximum number of wanted tokens in a step; default 0: n_sequences, or n_batch_tokens
                                  * with only_vectors */
    bool keep_hidden;            /* keep final hidden states, for whit_session_hidden */
    bool exact_head;             /* compute all logits exactly, even for tokens with n_top */
    bool no_fuse;                /* run every operation separately, without fusing: same bits, slower; for checks */
    const char *cpu;             /* name of the highest ISA level to use, as in the environment variable WHIT_CPU; NULL
                                  * or "": no limit */
    const volatile bool *cancel; /* checked between layers (before a step, if several processes run the model): true
                                  * stops the step; a signal handler or another thread may set it */
    bool endless;                /* no limit on tokens: beyond the context a token attends to the newest tokens and to
                                  * the first n_sinks */
    uint32_t n_sinks;            /* number of first tokens that every token attends to in an endless session; at most
                                  * 64, and less than n_ctx_tokens; default 4 (docs/use/context.md) */
    uint32_t n_kv_window;        /* packed caches: least number of full blocks of 64 positions before a token that the
                                  * token reads in f16; default 1 */
    uint32_t n_marks;       /* packed caches and recurrent layers: maximum number of checkpoints, at most 4,096; default
                             * 4 */
    uint64_t state_bytes;   /* memory for checkpoints, which determines their number; 0: n_marks determines it */
    uint32_t n_mark_tokens; /* checkpoints are also saved at multiples of this number of tokens; 0: chosen from the
                             * context and the number of checkpoints, at least 1,024 */
    bool only_vectors;      /* compute no logits: wanted tokens have only hidden states (whit_embed_texts); n_logits is
                             * by default n_batch_tokens */
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

/* Describes one token of one sequence. A step computes tokens of any sequences, and appends each to its sequence. With
 * n_top > 0 only the n_top largest logits are exact; the others may be estimates, all smaller than these. For a head of
 * codec i8s this halves the bytes that are read (docs/dev/numerics.md). */
typedef struct whit_step_token {
    uint32_t sequence;
    int32_t id;
    bool want_logits;
    uint32_t n_top;      /* default 0: all logits */
    uint32_t token_type; /* BERT: 0 in the first part of a text, 1 in the second */
} whit_step_token;

/* Runs one or more tokens through the model, in batches if needed. Either all tokens are appended to their sequences
 * or, on failure, none; under the limits of whit_session_truncate a failed step can also shorten its sequences. The
 * logits of wanted tokens, (vocab) f32 each, are available in the tokens' order until the next step; at most n_logits
 * tokens may be wanted in a step. If the model's tokens attend to both sides, a step takes whole texts in empty
 * sequences, together at most n_batch_tokens tokens. */
WHIT_API WHIT_CHECKED whit_status whit_session_step_strided(whit_session *session, const void *tokens, size_t n_tokens,
                                                            size_t stride_bytes, whit_error *error);
static inline whit_status whit_session_step(whit_session *session, const whit_step_token *tokens, size_t n_tokens,
                                            whit_error *error)
{
    return whit_session_step_strided(session, tokens, n_tokens, sizeof *tokens, error);
}
/* Returns the logits of a wanted token; NULL if i_wanted is too large, or with only_vectors. */
WHIT_API const float *whit_session_logits(const whit_session *session, size_t i_wanted);
/* Returns the values of a wanted token that are pooled into a text's vector, (whit_model_embedding_size) f32: the
 * hidden state after the final norm, or after the dense layers of a model that has them, or the scores of a
 * classification head. NULL if i_wanted is too large, or without keep_hidden and only_vectors. */
WHIT_API const float *whit_session_hidden(const whit_session *session, size_t i_wanted);
WHIT_API uint32_t whit_session_position(const whit_session *session, uint32_t sequence);
/* Removes the tokens of a sequence from index `n_tokens` on (0: all), which is at most the number of its tokens. How
 * far a sequence can go back is limited: sliding windows and endless sessions store 128 tokens more than a token
 * attends to, a packed cache 47 more, recurrent layers 8. Truncated further back, a sequence can become shorter than
 * n_tokens: it becomes the longest prefix at which it can resume. Read whit_session_position afterwards, and feed the
 * tokens from that position on. */
WHIT_API WHIT_CHECKED whit_status whit_session_truncate(whit_session *session, uint32_t sequence, uint32_t n_tokens,
                                                        whit_error *error);
/* Replaces sequence `to` by the first n_tokens of `from`, or by fewer under the limits of whit_session_truncate; the
 * two sequences share the memory of the common prefix. If both are the same sequence, it is truncated. */
WHIT_API WHIT_CHECKED whit_status whit_session_share(whit_session *session, uint32_t from, uint32_t to,
                                                     uint32_t n_tokens, whit_error *error);
/* Replaces a sequence by the longest prefix of `ids` that is cached: in this sequence; or, in whole blocks of 64 tokens
 * or up to a checkpoint, in other sequences and in blocks of truncated sequences, which are kept until their memory is
 * needed. Only tokens count that were computed with the adapters that the sequence has mounted. *n_present is the
 * length of that prefix, less than n_ids; the caller feeds the remaining tokens. The result is as if all tokens had
 * been fed. */
WHIT_API WHIT_CHECKED whit_status whit_session_reuse(whit_session *session, uint32_t sequence, const int32_t *ids,
                                                     size_t n_ids, uint32_t *n_present, whit_error *error);
/* For packed caches and models with recurrent layers, saves a checkpoint at a sequence's current position.
 * whit_session_truncate, whit_session_share and whit_session_reuse can return to it, for any sequence. If no place is
 * free, the checkpoint whose loss costs least is evicted (few tokens to recompute, few uses, long unused). Few programs
 * need this call: checkpoints are saved automatically at the ends of prompts, answers and messages, at the ends of
 * prefixes that could not be reused, and every n_mark_tokens tokens. The call has no effect on other caches, beyond the
 * context of an endless session, and on a sequence whose adapters were changed while it had tokens. */
WHIT_API WHIT_CHECKED whit_status whit_session_mark(whit_session *session, uint32_t sequence, whit_error *error);
/* Holds counts of a session's checkpoints. Set struct_bytes before the call. */
typedef struct whit_mark_counts {
    size_t struct_bytes;
    uint32_t n_marks, n_marks_max;      /* number of checkpoints that exist; number that there is memory for */
    uint64_t mark_bytes;                /* bytes of one checkpoint; 0: the cache needs no checkpoints */
    uint64_t n_made, n_used, n_evicted; /* since the session was opened: checkpoints saved, times that a sequence
                                         * resumed at one, checkpoints evicted */
} whit_mark_counts;
WHIT_API void whit_session_count_marks(const whit_session *session, whit_mark_counts *counts);
/* Predicts n_marks_max and mark_bytes of a session with these options. */
WHIT_API WHIT_CHECKED whit_status whit_session_predict_marks(const whit_model *model,
                                                             const whit_session_options *options,
                                                             whit_mark_counts *counts, whit_error *error);
WHIT_API uint32_t whit_session_context_size(const whit_session *session);
/* Returns the number of bytes of the session's memory, without the memory for adapters. */
WHIT_API size_t whit_session_arena_bytes(const whit_session *session);

#ifdef __cplusplus
}
#endif
#endif
