/* SPDX-License-Identifier: MIT
 * The engine of a server: one thread steps all generations of a model together. */
#ifndef WHIT_SERVER_ENGINE_H
#define WHIT_SERVER_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "server/metrics.h"

/* A grammar that the answers of a request share, each with a state of its own: compiled once, closed by the last
 * holder. Its states belong to the engine's thread from submission on. */
typedef struct whit_shared_grammar whit_shared_grammar;
/* Takes the grammar over, also on failure (NULL: no memory); the caller is the first holder. */
whit_shared_grammar *whit_shared_grammar_open(whit_grammar *grammar);
whit_shared_grammar *whit_shared_grammar_hold(whit_shared_grammar *shared);
void whit_shared_grammar_release(whit_shared_grammar *shared);
whit_grammar *whit_shared_grammar_get(const whit_shared_grammar *shared);

/* How far a prompt was after a step: tokens that were computed or cached, and when. */
typedef struct whit_progress {
    uint32_t n_fed;
    uint64_t at_ns;
} whit_progress;

/* One answer in the making. The connection's thread fills in the first part and submits it; the engine
 * fills in the second under the engine's lock. Both hold it; the last to let go frees it. */
typedef struct whit_job {
    int32_t *ids;
    size_t n_ids;
    whit_sampler_options sampling; /* bias_ids and bias_values belong to the job */
    uint32_t n_tokens, n_top;
    bool logprobs, ignore_end, keep_special;
    bool prompt_logprobs; /* of the prompt's tokens, too; nothing of it is taken from what is held */
    int32_t end_id;       /* one more that ends the answer; -1: none */
    char **stops;
    size_t n_stops, n_own_stops;        /* own: those that were asked for, which come first */
    whit_mount mounts[WHIT_MOUNTS_MAX]; /* adapters; their owner outlives the engine */
    size_t n_mounts;
    whit_shared_grammar *grammar; /* NULL: none. With `state`, the engine's from submission on */
    whit_grammar_state *state;
    whit_program *program; /* also the engine's from submission on; NULL: none */
    uint64_t key;          /* whose request it is, for fairness */
    uint64_t conversation; /* a hash of its name: it goes to the slot that holds it; 0: without a name */
    int32_t id_slot;       /* the slot to take where it is free; -1: any */
    bool keeps_tokens;     /* `tokens` is wanted */
    bool tells_progress;   /* `progress` is */
    bool is_clipped;       /* the context ends it before the number of tokens that was asked for */
    uint64_t deadline_ns;
    atomic_bool cancelled;

    whit_buf text;               /* all of it so far */
    whit_buf logprobs_of;        /* whit_logprob[1 + n_top] by token */
    whit_buf prompt_logprobs_of; /* the same of the prompt's tokens from the second on, all at once */
    whit_buf tokens;             /* int32_t ids of the answer */
    uint32_t n_generated, n_cached;
    whit_buf progress; /* whit_progress by step, until the prompt is done */
    bool started, finished;
    bool is_late; /* finished by its deadline, as WHIT_FINISH_CANCELLED */
    whit_finish finish;
    const char *stopped_by; /* of `stops`, the one of its own that ended it; NULL: none did */
    whit_error error;       /* status WHIT_OK: none */
    uint64_t queued_ns, started_ns, first_ns, last_ns, done_ns;

    atomic_int n_holders;
    struct whit_job *next;
} whit_job;

whit_job *whit_job_open(void);
void whit_job_close(whit_job *job); /* lets go */

typedef struct whit_engine_counts {
    uint64_t n_prompt_tokens, n_cached_tokens, n_generated_tokens, n_requests, n_cancelled, n_steps, n_busy_slot_steps;
    uint64_t prompt_ns, generate_ns, queue_ns, first_token_ns;
    whit_histogram queued, first_token, per_token, whole; /* times of requests and tokens */
    uint32_t n_slots, n_busy, n_queued, n_ctx_tokens, n_kv_tokens;
} whit_engine_counts;

#define WHIT_ENGINE_MOST_SLOTS 256u

typedef struct whit_engine whit_engine;
typedef struct whit_engine_options {
    uint32_t n_slots, n_threads, n_ctx_tokens, n_queue;
    whit_kv_type kv;
    uint32_t n_kv_window;
    whit_act_type act;
    uint32_t n_batch_tokens; /* 0: as many as keep the time between two tokens of others short */
    bool exact_head;
    const char *cache_dir; /* where beginnings outlive the engine; NULL: nowhere */
    uint32_t i_twin;       /* among engines of the same weights in that folder, each of which has files of its own */
} whit_engine_options;
/* Of the session that it opens. */
whit_session_options whit_engine_session_options(const whit_engine_options *options);
/* The same of the session for embeddings, which is opened at the first one. */
whit_session_options whit_engine_embedder_options(const whit_engine_options *options);
whit_status whit_engine_open(const whit_model *model, const whit_engine_options *options, whit_engine **engine,
                             whit_error *error);
void whit_engine_close(whit_engine *engine); /* cancels what runs */
uint32_t whit_engine_context_size(const whit_engine *engine);
/* Submits all jobs of a request, or none: WHIT_ERROR_LIMIT where the queue has no place for them. */
whit_status whit_engine_submit(whit_engine *engine, whit_job *const *jobs, size_t n, whit_error *error);
/* Whether it would refuse n jobs now: asked before costly preparations. */
bool whit_engine_is_full(whit_engine *engine, size_t n);
void whit_engine_lock(whit_engine *engine);
void whit_engine_unlock(whit_engine *engine);
/* With the lock held: until something changed, at most so long. */
void whit_engine_wait(whit_engine *engine, uint32_t ms);
void whit_engine_count(whit_engine *engine, whit_engine_counts *counts);
/* The mean of the hidden states of `ids`, of length 1, into `values` (whit_model_embedding_size). Waits until the
 * engine's thread has computed it, between two steps. */
whit_status whit_engine_embed(whit_engine *engine, const int32_t *ids, size_t n_ids, float *values, whit_error *error);
/* What is done to a slot that answers nothing. */
typedef struct whit_slot_action {
    enum { WHIT_SLOT_SAVE, WHIT_SLOT_RESTORE, WHIT_SLOT_ERASE } kind;
    uint32_t id_slot;
    const char *path; /* a session file; NULL where the slot is erased */
    size_t n_tokens;  /* saved (whole blocks of 64 tokens), restored or erased; set by the engine */
} whit_slot_action;
/* Waits until the engine's thread has done it, between two steps. */
whit_status whit_engine_act(whit_engine *engine, whit_slot_action *action, whit_error *error);
bool whit_engine_is_idle(whit_engine *engine);

#endif
