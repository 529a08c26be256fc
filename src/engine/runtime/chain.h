/* SPDX-License-Identifier: MIT
 * Runs the chain of samplers, from logits to one token id.
 *
 * The stages are logit biases, penalties, dry, top_n_sigma, top_k, typical, top_p, min_p, xtc, temperature, then one
 * draw; with mirostat: biases, temperature, mirostat. If the temperature is not positive, the greatest logit after
 * biases, penalties and dry is picked (with mirostat: after biases). Names, order and defaults are those of llama.cpp.
 * The chain does not depend on models; runtime/sampler.c combines the two. */
#ifndef WHIT_RUNTIME_CHAIN_H
#define WHIT_RUNTIME_CHAIN_H

#include "base/rng.h"
#include "runtime/history.h"

typedef struct whit_chain {
    whit_sampler_options options;
    int32_t *bias_ids; /* copies of the options' arrays */
    float *bias_values;
    whit_candidates candidates;
    whit_history history;
    whit_rng rng;
    double mirostat_mu; /* mirostat's threshold: candidates with more surprise, in bits, are cut */
    /* The last draw: key of the picked candidate, and the softmax over the candidates. sum 0: the last token was not
     * drawn at random. */
    uint64_t drawn_key;
    struct {
        double max, temperature, sum;
    } drawn;
    const whit_allocator *allocator;
} whit_chain;

/* Opens a chain. `breakers` is passed to the whit_history, and must outlive the chain. An invalid option is refused
 * with WHIT_ERROR_ARGUMENT, and the message names it. */
whit_status whit_chain_open(uint32_t n_vocab, const whit_sampler_options *options, const uint8_t *breakers,
                            const whit_allocator *allocator, whit_chain *chain, whit_error *error);
void whit_chain_close(whit_chain *chain);
/* Picks a token and adds it to the history. logits (n_vocab) are -infinity where an id is banned; any other logit that
 * is not finite is WHIT_ERROR_NUMERIC. If every id is banned, the error is WHIT_ERROR_ARGUMENT. */
whit_status whit_chain_pick(whit_chain *chain, const float *logits, uint32_t *id, whit_error *error);
void whit_chain_accept(whit_chain *chain, uint32_t id);
/* Writes the log-probabilities of the last pick and of n_top candidates to `entries`, in the form of whit_sampler_drawn
 * (drawn.h). */
void whit_chain_drawn(whit_chain *chain, uint32_t n_top, whit_logprob *entries);
void whit_chain_reset(whit_chain *chain);
/* Returns whether a pick depends only on the *k greatest logits, so that the others need not be exact. */
bool whit_chain_needs_only_top(const whit_chain *chain, uint32_t *k);

#endif
