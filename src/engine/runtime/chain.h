/* SPDX-License-Identifier: MIT
 * The chain of samplers: from logits to one token id.
 *
 * Logit biases, penalties, dry, top_n_sigma, top_k, typical, top_p, min_p, xtc, temperature, then
 * one draw; with mirostat: biases, temperature, mirostat. Names, order and defaults are
 * llama.cpp's. The chain knows nothing of models; runtime/sampler.c joins the two. */
#ifndef WHIT_RUNTIME_CHAIN_H
#define WHIT_RUNTIME_CHAIN_H

#include "base/rng.h"
#include "runtime/history.h"

typedef struct whit_chain {
    whit_sampler_options options;
    int32_t *bias_ids; /* own copies */
    float *bias_values;
    whit_candidates candidates;
    whit_history history;
    whit_rng rng;
    double mirostat_mu; /* the surprise, in bits, above which mirostat cuts */
    /* The last draw: the picked candidate, and the softmax over the candidates; sum 0: there was no draw. */
    uint64_t drawn_key;
    struct {
        double max, temperature, sum;
    } drawn;
    const whit_allocator *allocator;
} whit_chain;

/* `breakers` as in whit_history; it must outlive the chain. A value that makes no sense is
 * WHIT_ERROR_ARGUMENT and names its option. */
whit_status whit_chain_open(uint32_t n_vocab, const whit_sampler_options *options, const uint8_t *breakers,
                            const whit_allocator *allocator, whit_chain *chain, whit_error *error);
void whit_chain_close(whit_chain *chain);
/* Picks and remembers. (n_vocab) logits, -infinity where an id is banned; WHIT_ERROR_NUMERIC where
 * one is not finite otherwise. */
whit_status whit_chain_pick(whit_chain *chain, const float *logits, uint32_t *id, whit_error *error);
void whit_chain_accept(whit_chain *chain, uint32_t id);
/* Log-probabilities of the last pick and of n_top candidates, as whit_sampler_drawn (drawn.h) has them. */
void whit_chain_drawn(whit_chain *chain, uint32_t n_top, whit_logprob *entries);
void whit_chain_reset(whit_chain *chain);
/* True if a pick depends only on the *k greatest logits, so that the others need not be exact. */
bool whit_chain_needs_only_top(const whit_chain *chain, uint32_t *k);

#endif
