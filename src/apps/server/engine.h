/* SPDX-License-Identifier: MIT
 * Declares the engine of a server: one thread steps all generations of a model together. */
#ifndef WHIT_SERVER_ENGINE_H
#define WHIT_SERVER_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "whit/steps.h"
#include "server/metrics.h"

/* A grammar that the answers of a request share. It is compiled once, and closed when its last holder releases it. Each
 * answer has its own state in it; after submission the states belong to the engine's thread. */
typedef struct whit_shared_grammar whit_shared_grammar;
/* Takes ownership of the grammar, also on failure. The caller is the first holder. Returns NULL if memory runs out. */
whit_shared_grammar *whit_shared_grammar_open(whit_grammar *grammar);
whit_shared_grammar *whit_shared_grammar_hold(whit_shared_grammar *shared);
void whit_shared_grammar_release(whit_shared_grammar *shared);
whit_grammar *whit_shared_grammar_get(const whit_shared_grammar *shared);

struct whit_vector_work;
struct whit_event_channel;

enum { WHIT_TOP_MAX = 20 }; /* largest n_top of a job */

/* Progress of a prompt after a step: how many of its tokens were computed or came from the cache, and the time. */
typedef struct whit_progress {
    uint32_t n_fed;
    uint64_t at_ns;
} whit_progress;

/* One answer in progress. The thread of the connection fills in the first part and submits the job; the engine fills in
 * the second part under its lock. Both hold the job, and the last one to release it frees it. */
typedef struct whit_job {
    int32_t *ids;
    size_t n_ids;
    whit_sampler_options sampling; /* the job owns bias_ids and bias_values */
    uint32_t n_tokens, n_top;
    bool logprobs, ignore_end, keep_special;
    bool logs_drawn; /* log-probabilities are those after the samplers, from the engine option `drawn` */
    /* log-probabilities of the prompt's tokens are also collected; then no cached prefix is reused */
    bool prompt_logprobs;
    int32_t end_id; /* a further token that ends the answer; -1: none */
    char **stops;
    size_t n_stops, n_own_stops;        /* the request names the first n_own_stops of `stops` */
    whit_mount mounts[WHIT_MOUNTS_MAX]; /* adapters to mount; they must outlive the engine */
    size_t n_mounts;
    whit_shared_grammar *grammar; /* may be NULL; the engine owns it and `state` after submission */
    whit_grammar_state *state;
    /* program that runs for every token; may be NULL; freed with the job */
    whit_program *program;
    whit_thinking_limit *limit; /* limit of the thinking section; may be NULL; freed with the job */
    uint64_t key;               /* hash of the API key; the queue shares slots fairly between keys */
    /* hash of the conversation's name, for choosing a slot; 0: no name */
    uint64_t conversation;
    int32_t id_slot;     /* the slot to use if it is free; -1: any */
    bool keeps_tokens;   /* the engine appends the answer's tokens to `tokens` */
    bool tells_progress; /* the engine appends to `progress` */
    bool is_clipped;     /* n_tokens was reduced to what the context allows */
    uint64_t deadline_ns;
    atomic_bool cancelled;

    whit_buf text;        /* all generated text so far, without an unfinished character or stop string */
    whit_buf logprobs_of; /* if `logprobs` is set, 1 + n_top entries (whit_logprob) for each token of the answer */
    /* 1 + n_top entries for each token of the prompt from the second on, appended all at once */
    whit_buf prompt_logprobs_of;
    whit_buf tokens; /* if `keeps_tokens` is set, token ids (int32_t) of the answer */
    uint32_t n_generated, n_cached;
    /* array of whit_progress, one for the job's first step and one for each later step that computed a part of the
     * prompt; empty unless tells_progress */
    whit_buf progress;
    bool started, finished;
    bool is_late; /* the running answer was ended at its deadline; finish is then WHIT_FINISH_CANCELLED */
    whit_finish finish;
    const char *stopped_by; /* the request's stop string that ended the answer; NULL if none did */
    whit_error error;       /* its status is WHIT_OK if there is no error */
    uint64_t queued_ns, started_ns, first_ns, last_ns, done_ns;

    atomic_int n_holders;
    struct whit_job *next;
} whit_job;

whit_job *whit_job_open(void);
void whit_job_close(whit_job *job); /* releases the caller's hold */
/* Releases the job's grammar and its state. Must be called in the thread that owns the grammar's states. */
void whit_job_drop_grammar(whit_job *job);

typedef struct whit_engine_counts {
    uint64_t n_prompt_tokens, n_cached_tokens, n_generated_tokens, n_requests, n_cancelled, n_steps, n_busy_slot_steps;
    uint64_t prompt_ns, generate_ns, queue_ns, first_token_ns;
    whit_histogram queued, first_token, per_token, whole; /* histograms of the times that requests wait, and need for
                                                           * the first token, each further token and in total */
    whit_histogram step;                                  /* histogram of the times of steps that generate tokens */
    /* histogram of the number of prompt tokens per step, for steps with any */
    whit_histogram prompt_piece;
    /* time budget of steps that generate tokens, and the predicted time of the last one */
    uint64_t step_budget_ns, step_predicted_ns;
    uint64_t n_steps_over;                      /* steps that generate tokens and took longer than the budget */
    uint64_t n_guessed_tokens, n_guessed_right; /* n_guessed_tokens: number of drafted tokens; n_guessed_right: number
                                                 * of drafted tokens that were right */
    uint32_t n_prompts_waiting;                 /* number of slots whose prompt was incomplete after the last step */
    uint32_t n_slots, n_busy, n_queued, n_ctx_tokens, n_kv_tokens;
    uint64_t mark_bytes, mark_bytes_max; /* memory for checkpoints of states: in use, and maximum */
    uint64_t n_marks_made, n_marks_used, n_marks_evicted;
    /* memory for experts: in use, and maximum; bytes read so far */
    uint64_t expert_bytes, expert_bytes_max, expert_read_bytes;
    /* Prefix cache: number of blocks that fit, and of blocks that a lookup can find. */
    uint32_t n_blocks, n_blocks_found;
    uint64_t running_loras, waiting_loras; /* bit k: a running (waiting) job uses adapter k of the server's options */
} whit_engine_counts;

#define WHIT_ENGINE_MOST_SLOTS 256u

typedef struct whit_engine whit_engine;
typedef struct whit_engine_options {
    uint32_t n_slots, n_threads, n_ctx_tokens, n_queue;
    whit_kv_type kv;
    uint32_t n_kv_window;
    uint64_t state_bytes;  /* memory for checkpoints of states; 0: the session's default number of checkpoints */
    uint64_t expert_bytes; /* memory for the experts of a mixture-of-experts model; 0: no limit */
    whit_act_type act;
    uint32_t n_batch_tokens;   /* maximum number of tokens of a step; 0: chosen by the engine */
    uint64_t step_budget_ns;   /* target time of steps that generate tokens; 0: no target */
    uint32_t n_draft_tokens;   /* maximum number of drafted tokens per step, as in whit_generate_options; at most 15 */
    bool has_draft_block;      /* the model's own draft block is used, if it has one */
    const whit_model *drafter; /* a separate draft model; NULL: none */
    bool exact_head;
    /* returns log-probabilities after the samplers, as in whit_server_options */
    void (*drawn)(whit_sampler *sampler, uint32_t n_top, whit_logprob *entries);
    const char *cache_dir; /* folder in which prefixes are saved for later engines; NULL: they are not saved */
    uint32_t i_server;     /* index of this server among the servers that use the folder at the same time */
    uint32_t i_twin;       /* index of this engine among those of the server with the same weights; each has its own
                            * files */
    /* channel to which changes of the prefix cache are published; NULL: they are not published */
    struct whit_event_channel *events;
    /* (n_adapters) adapters that jobs may mount, by their index in the server's options; an entry is NULL if that
     * adapter is not for this model */
    whit_adapter *const *adapters;
    size_t n_adapters;
} whit_engine_options;
/* Return the options of the engine's session, without the changes of whit_embedder_suit, and its draft model, or NULL
 * if it has no drafts. */
whit_session_options whit_engine_session_options(const whit_engine_options *options);
const whit_model *whit_engine_drafter(const whit_model *model, const whit_engine_options *options);
whit_status whit_engine_open(const whit_model *model, const whit_engine_options *options, whit_engine **engine,
                             whit_error *error);
void whit_engine_close(whit_engine *engine); /* also cancels running and waiting jobs */
uint32_t whit_engine_context_size(const whit_engine *engine);
/* Submits all jobs of a request or none of them. Errors: limit (the queue has no space for all, or the engine is
 * ending), unsupported (the model cannot generate text). */
whit_status whit_engine_submit(whit_engine *engine, whit_job *const *jobs, size_t n, whit_error *error);
/* Returns whether the engine would refuse n jobs now; to be asked before costly preparations. */
bool whit_engine_is_full(whit_engine *engine, size_t n);
void whit_engine_lock(whit_engine *engine);
void whit_engine_unlock(whit_engine *engine);
/* Waits until the state of a job changes, at most `ms` milliseconds. Must be called with the lock held, which is
 * released meanwhile. */
void whit_engine_wait(whit_engine *engine, uint32_t ms);
void whit_engine_count(whit_engine *engine, whit_engine_counts *counts);
/* Computes vectors or scores of texts. Blocks until the engine's thread has computed them, between two steps. */
whit_status whit_engine_vectors(whit_engine *engine, const struct whit_vector_work *work, whit_error *error);
/* An action on a slot, which must be free. */
typedef struct whit_slot_action {
    enum { WHIT_SLOT_SAVE, WHIT_SLOT_RESTORE, WHIT_SLOT_ERASE } kind;
    uint32_t id_slot;
    const char *path; /* path of the session file; NULL for WHIT_SLOT_ERASE */
    /* set by the engine: number of tokens that were saved (whole blocks of 64), restored or erased */
    size_t n_tokens;
} whit_slot_action;
/* Performs the action. Blocks until the engine's thread has done so, between two steps. */
whit_status whit_engine_act(whit_engine *engine, whit_slot_action *action, whit_error *error);
bool whit_engine_is_idle(whit_engine *engine);

#endif
