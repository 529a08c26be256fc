/* SPDX-License-Identifier: MIT
 * Runs draft models, which guess the next tokens of a sequence from the model's last hidden states
 * (docs/dev/drafts.md). A draft model is a small graph that reads each token and the target's hidden state at the
 * position before it, and computes logits and the state from which the following token is guessed. The target checks
 * the guesses, so they only change the speed.
 *
 * The target's hidden states are copied after every pass, the newest WHIT_DRAFTER_ROWS of each sequence. The draft
 * model reads them only when guesses are wanted, so a session that never guesses only makes the copies. If more hidden
 * states were skipped than are stored, the draft model starts again at the oldest one that is stored. */
#ifndef WHIT_RUNTIME_DRAFTER_H
#define WHIT_RUNTIME_DRAFTER_H

#include "model/exec.h"
#include "runtime/model.h"
#include "whit/session.h"

enum {
    WHIT_DRAFTER_ROWS = 256, /* number of newest hidden states that are stored per sequence */
    WHIT_DRAFTER_BATCH = 32, /* number of rows of a pass of the draft model */
    /* Maximum number of positions of a sequence in the draft model's own cache, besides WHIT_DRAFT_MAX positions of
     * guesses; a full cache begins anew at the oldest stored hidden state. */
    WHIT_DRAFTER_CTX = 4096,
};

/* State of a sequence in the draft model. Positions are positions of the target's sequence. */
typedef struct whit_drafter_sequence {
    uint32_t begin, end; /* hidden states of positions [begin, end) are stored */
    uint32_t first;      /* position whose row is the first in the draft model's cache */
    uint32_t n_fed;      /* number of rows in the draft model's cache */
} whit_drafter_sequence;

typedef struct whit_drafter {
    const whit_model *target;
    const whit_model *model; /* model that contains the draft model's tensors; may be the target */
    const whit_allocator *allocator;
    const whit_kernels *kernels;
    whit_config config; /* configuration of the draft model */
    whit_graph graph;
    whit_kv_layer *kv_layers; /* (config.n_layers) */
    whit_plan plan;
    whit_exec_schedules schedules;
    whit_exec exec;
    whit_kv kv;        /* cache of the draft model's own layers, or a view of the target's cache (reads_target) */
    bool reads_target; /* the draft model computes no keys, and reads the target's cache */
    uint32_t *owners;  /* (config.n_layers): the target's layer whose keys and values each layer reads; NULL: every
                        * layer has its own */
    const whit_tensor *embedding; /* the target's embedding table if input rows begin with an embedding; else NULL */
    float embedding_scale;        /* factor by which embeddings are multiplied */
    uint32_t given;               /* value of the plan to which input rows are written */
    uint32_t n_sequences;
    uint32_t n_ctx_tokens; /* capacity of a sequence in the draft model's own cache, in positions */
    uint32_t width;        /* number of elements of a hidden state */
    whit_ref source;       /* the target's graph value before its final norm, whose rows are stored */
    const whit_node *norm; /* the target's final norm */
    bool exact_head;
    whit_drafter_sequence *sequences; /* (n_sequences) */
    float *hidden; /* (n_sequences, WHIT_DRAFTER_ROWS, width): hidden states after the norm; position p is row p mod
                   * WHIT_DRAFTER_ROWS */
    int32_t *ids;  /* (n_sequences, WHIT_DRAFTER_ROWS): tokens at the positions of `hidden` */
} whit_drafter;

/* Opens the draft model of a session: `model`, or its draft block if it has one; the target itself may be such a model.
 * Fails if the draft model does not fit the target. `kernels` must outlive the drafter. */
whit_status whit_drafter_open(const whit_model *target, const whit_model *model, const whit_session_options *options,
                              const whit_kernels *kernels, whit_drafter **drafter, whit_error *error);
void whit_drafter_close(whit_drafter *drafter);
/* Returns the name of the target's value (`source`) that the target's plan must keep. */
const char *whit_drafter_source(const whit_drafter *drafter);
/* Takes the drafter's memory from the arena, which only counts it or returns it. target: the session's cache, which
 * must be placed before. */
void whit_drafter_place(whit_drafter *drafter, const whit_session_options *options, const whit_kv *target,
                        whit_arena *arena);
/* Normalises and stores the hidden states of the pass `batch` that the target's executor has just run: all of them, or
 * those of the selected rows if the target computes `source` only for these. */
void whit_drafter_keep(whit_drafter *drafter, const whit_exec *target, const whit_batch *batch);
/* Forgets the hidden states of a sequence from position n_tokens on; 0: all. */
void whit_drafter_truncate(whit_drafter *drafter, uint32_t sequence, uint32_t n_tokens);
/* Guesses the tokens after `next`, the token that follows the n_tokens tokens of a sequence. Writes at most n_most
 * guesses to ids, fewer if cancelled, and returns their number; 0 if the last token's hidden state is not stored. */
uint32_t whit_drafter_guess(whit_drafter *drafter, uint32_t sequence, uint32_t n_tokens, int32_t next, uint32_t n_most,
                            int32_t *ids, const volatile bool *cancel);

#endif
