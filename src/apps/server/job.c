/* SPDX-License-Identifier: MIT
 * Opens and closes jobs, which are answers to be generated, and the grammars that jobs share. */
#include <stdlib.h>

#include "server/engine.h"

struct whit_shared_grammar {
    whit_grammar *grammar;
    atomic_int n_holders;
};

whit_shared_grammar *whit_shared_grammar_open(whit_grammar *grammar)
{
    whit_shared_grammar *shared = calloc(1, sizeof *shared);
    if (!shared) {
        whit_grammar_close(grammar);
        return NULL;
    }
    shared->grammar = grammar;
    atomic_store(&shared->n_holders, 1);
    return shared;
}

whit_shared_grammar *whit_shared_grammar_hold(whit_shared_grammar *shared)
{
    atomic_fetch_add(&shared->n_holders, 1);
    return shared;
}

void whit_shared_grammar_release(whit_shared_grammar *shared)
{
    if (!shared || atomic_fetch_sub(&shared->n_holders, 1) > 1) return;
    whit_grammar_close(shared->grammar);
    free(shared);
}

whit_grammar *whit_shared_grammar_get(const whit_shared_grammar *shared)
{
    return shared->grammar;
}

void whit_job_drop_grammar(whit_job *job)
{
    whit_grammar_state_close(job->state);
    whit_shared_grammar_release(job->grammar);
    job->state = NULL;
    job->grammar = NULL;
}

whit_job *whit_job_open(void)
{
    whit_job *job = calloc(1, sizeof *job);
    if (job) {
        atomic_store(&job->n_holders, 1);
        job->end_id = job->id_slot = -1;
    }
    return job;
}

void whit_job_close(whit_job *job)
{
    if (!job || atomic_fetch_sub(&job->n_holders, 1) > 1) return;
    for (size_t i = 0; i < job->n_stops; i++) free(job->stops[i]);
    free(job->stops);
    free(job->ids);
    free((void *)job->sampling.bias_ids);
    free((void *)job->sampling.bias_values);
    whit_job_drop_grammar(job);
    whit_program_close(job->program);
    whit_thinking_limit_close(job->limit);
    whit_buf_free(&job->text);
    whit_buf_free(&job->logprobs_of);
    whit_buf_free(&job->tokens);
    whit_buf_free(&job->progress);
    whit_buf_free(&job->prompt_logprobs_of);
    free(job);
}
