/* SPDX-License-Identifier: MIT
 * Declares the engine of a server: one thread steps all generations of a model together. */
#ifndef WHIT_SERVER_ENGINE_H
#define WHIT_SERVER_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "whit/steps.h"
#include "server/metrics.h"

/* Describes a grammar that the answers of a request share, each with a state of its own. It is compiled once, and
 * closed when its last holder releases it. Its states belong to the engine's thread after submission. */
typedef struct whit_shared_grammar whit_shared_grammar;
/* Takes ownership of the grammar, also on failure (NULL: memory ran out); the caller is the first holder. */
whit_shared_grammar *whit_shared_grammar_open(whit_grammar *grammar);
whit_shared_grammar *whit_shared_grammar_hold(whit_shared_grammar *shared);
void whit_shared_grammar_release(whit_shared_grammar *shared);
whit_grammar *whit_shared_grammar_get(const whit_shared_grammar *shared);

struct whit_vector_work;
struct whit_event_channel;

enum { WHIT_TOP_MAX = 20 }; /* largest n_top of a job */

/* Holds the progress of a prompt after a step: number of tokens that were computed or cached, and the time. */
typedef struct whit_progress {
    uint32_t n_fed;
    uint64_t at_ns;
} whit_progress;

/* Describes one answer in progress. The connection's thread fills in the first part and submits the job; the engine
 * fills in the second part under the engine's lock. Both hold the job; the last holder to release it frees it. */
typedef struct whit_job {
    int32_t *ids;
    size_t n_ids;
    whit_sampler_options sampling; /* bias_ids and bias_values belong to the job */
    uint32_t n_tokens, n_top;
    bool logprobs, ignore_end, keep_special;
    bool logs_drawn; /* log-probabilities are those after the samplers, from the engine's `drawn` */
    /* log-probabilities of the prompt's tokens are collected, too; the prompt then reuses no cached prefix */
    bool prompt_logprobs;
    int32_t end_id; /* an additional token that ends the answer; -1: no such token */
    char **stops;
    size_t n_stops, n_own_stops;        /* the first n_own_stops are the requested stop strings */
    whit_mount mounts[WHIT_MOUNTS_MAX]; /* adapters; their owner outlives the engine */
    size_t n_mounts;
    whit_shared_grammar *grammar; /* may be NULL; owned by the engine after submission, like `state` */
    whit_grammar_state *state;
    /* program that runs for every token; owned by the engine after submission; may be NULL */
    whit_program *program;
    whit_thinking_limit *limit; /* limit of the thinking section; owned by the engine after submission; may be NULL */
    uint64_t key;               /* identifies the requester, for fairness */
    /* hash of the conversation's name: the job prefers the slot with that conversation; 0: no name */
    uint64_t conversation;
    int32_t id_slot;     /* the slot to use, if it is free; -1: any */
    bool keeps_tokens;   /* `tokens` are collected */
    bool tells_progress; /* `progress` is recorded */
    bool is_clipped;     /* the context ends the answer before the requested number of tokens */
    uint64_t deadline_ns;
    atomic_bool cancelled;

    whit_buf text;        /* all generated text so far */
    whit_buf logprobs_of; /* whit_logprob[1 + n_top] for each token */
    /* whit_logprob[1 + n_top] for each token of the prompt from the second on, all appended at once */
    whit_buf prompt_logprobs_of;
    whit_buf tokens; /* int32_t ids of the answer */
    uint32_t n_generated, n_cached;
    whit_buf progress; /* whit_progress of each step, until the prompt is complete */
    bool started, finished;
    bool is_late; /* the deadline ended the answer (WHIT_FINISH_CANCELLED) */
    whit_finish finish;
    const char *stopped_by; /* the requested stop string that ended the answer; NULL: no stop string did */
    whit_error error;       /* status WHIT_OK: no error */
    uint64_t queued_ns, started_ns, first_ns, last_ns, done_ns;

    atomic_int n_holders;
    struct whit_job *next;
} whit_job;

whit_job *whit_job_open(void);
void whit_job_close(whit_job *job); /* releases the caller's hold */
/* Closes the job's grammar and its state. Must be called in the thread that owns the states of the grammar. */
void whit_job_drop_grammar(whit_job *job);

typedef struct whit_engine_counts {
    uint64_t n_prompt_tokens, n_cached_tokens, n_generated_tokens, n_requests, n_cancelled, n_steps, n_busy_slot_steps;
    uint64_t prompt_ns, generate_ns, queue_ns, first_token_ns;
    whit_histogram queued, first_token, per_token, whole; /* histograms of times of requests and tokens */
    whit_histogram step;                                  /* histogram of times of steps in which answers grow */
    /* histogram of the numbers of prompt tokens in steps that have any */
    whit_histogram prompt_piece;
    /* budget of steps in which answers grow, and the last prediction */
    uint64_t step_budget_ns, step_predicted_ns;
    uint64_t n_steps_over;                      /* number of such steps that took longer than the budget */
    uint64_t n_guessed_tokens, n_guessed_right; /* number of tokens guessed ahead, and of right guesses */
    uint32_t n_prompts_waiting; /* number of prompts in slots that were not complete after the last step */
    uint32_t n_slots, n_busy, n_queued, n_ctx_tokens, n_kv_tokens;
    uint64_t mark_bytes, mark_bytes_max; /* memory of checkpoints: in use, and at most */
    uint64_t n_marks_made, n_marks_used, n_marks_evicted;
    /* memory of experts: in use, at most, and read so far */
    uint64_t expert_bytes, expert_bytes_max, expert_read_bytes;
    /* Prefix cache: number of blocks that fit, and of blocks that can be found. */
    uint32_t n_blocks, n_blocks_found;
    uint64_t running_loras, waiting_loras; /* bit k: adapter k of the server's options is used, or is waited for */
} whit_engine_counts;

#define WHIT_ENGINE_MOST_SLOTS 256u

typedef struct whit_engine whit_engine;
typedef struct whit_engine_options {
    uint32_t n_slots, n_threads, n_ctx_tokens, n_queue;
    whit_kv_type kv;
    uint32_t n_kv_window;
    uint64_t state_bytes;  /* memory for checkpoints; 0: the session's default number */
    uint64_t expert_bytes; /* memory for the experts of a mixture; 0: no limit */
    whit_act_type act;
    uint32_t n_batch_tokens;   /* maximum number of tokens of a step; 0: chosen by the engine */
    uint64_t step_budget_ns;   /* target for the time of a step in which answers grow; 0: no limit */
    uint32_t n_draft_tokens;   /* number of drafted tokens, as in whit_generate_options, at most 15 */
    bool has_draft_block;      /* the model's own block drafts tokens, if it has one */
    const whit_model *drafter; /* a separate draft model; NULL: no draft model */
    bool exact_head;
    /* function for log-probabilities after the samplers, as in whit_server_options */
    void (*drawn)(whit_sampler *sampler, uint32_t n_top, whit_logprob *entries);
    const char *cache_dir; /* folder in which prefixes are saved beyond the engine's life; NULL: not saved */
    uint32_t i_server;     /* index among the servers that use that folder at the same time */
    uint32_t i_twin;       /* index among engines with the same weights that use the folder; each has its own files */
    /* channel on which changes of the prefix cache are published; NULL: not published */
    struct whit_event_channel *events;
    /* (n_adapters) adapters that jobs may mount, by index; NULL: the adapter belongs to another model */
    whit_adapter *const *adapters;
    size_t n_adapters;
} whit_engine_options;
/* Return the options of the session that the engine opens, and its draft model, which is NULL if it has no draft
 * model. */
whit_session_options whit_engine_session_options(const whit_engine_options *options);
const whit_model *whit_engine_drafter(const whit_model *model, const whit_engine_options *options);
whit_status whit_engine_open(const whit_model *model, const whit_engine_options *options, whit_engine **engine,
                             whit_error *error);
void whit_engine_close(whit_engine *engine); /* cancels running jobs */
uint32_t whit_engine_context_size(const whit_engine *engine);
/* Submits all jobs of a request, or none: WHIT_ERROR_LIMIT if the queue has no space for them. */
whit_status whit_engine_submit(whit_engine *engine, whit_job *const *jobs, size_t n, whit_error *error);
/* Returns whether the engine would refuse n jobs now; asked before costly preparations. */
bool whit_engine_is_full(whit_engine *engine, size_t n);
void whit_engine_lock(whit_engine *engine);
void whit_engine_unlock(whit_engine *engine);
/* Waits until something changes, at most `ms` milliseconds. Must be called with the lock held. */
void whit_engine_wait(whit_engine *engine, uint32_t ms);
void whit_engine_count(whit_engine *engine, whit_engine_counts *counts);
/* Computes vectors or scores of texts. Waits until the engine's thread has computed them, between two steps. */
whit_status whit_engine_vectors(whit_engine *engine, const struct whit_vector_work *work, whit_error *error);
/* Describes an action on a free slot. */
typedef struct whit_slot_action {
    enum { WHIT_SLOT_SAVE, WHIT_SLOT_RESTORE, WHIT_SLOT_ERASE } kind;
    uint32_t id_slot;
    const char *path; /* path of a session file; NULL if the slot is erased */
    /* number of tokens that were saved (whole blocks of 64 tokens), restored or erased; set by the engine */
    size_t n_tokens;
} whit_slot_action;
/* Waits until the engine's thread has done the action, between two steps. */
whit_status whit_engine_act(whit_engine *engine, whit_slot_action *action, whit_error *error);
bool whit_engine_is_idle(whit_engine *engine);

#endif
