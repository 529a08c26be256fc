/* SPDX-License-Identifier: MIT
 * Internals of a generation, and the part of its protocol that scheduling loops use. */
#ifndef WHIT_RUNTIME_GENERATION_H
#define WHIT_RUNTIME_GENERATION_H

#include "runtime/held.h"
#include "runtime/session.h"

struct whit_generation {
    whit_session *session;
    whit_sampler *sampler;
    const whit_allocator *allocator;
    whit_generate_options options; /* copies of the options; stop strings are in `held`, stages below */
    whit_stage *stages;            /* (n_stages) copies */
    float *edited;                 /* (n_vocab) logits that stages edit; NULL without */
    whit_logprob *logprobs;        /* (n_logprobs) NULL: not kept */
    whit_logprob *prompt_logprobs; /* log-probabilities of the (n_prompt) prompt tokens, if wanted */
    size_t n_logprobs, n_prompt_logprobs;
    whit_detokenizer *detokenizer; /* NULL without a tokenizer */
    whit_held held;
    whit_draft all; /* the prompt's ids, then those generated */
    size_t n_prompt, n_fed;
    uint32_t n_settled; /* tokens of the sequence that are confirmed: before or in the output */
    uint32_t n_offered; /* tokens offered for the next step, after the confirmed ones */
    uint32_t n_guessed; /* how many of the offered tokens, at the end, are guesses */
    int32_t next;       /* the first offered token once the prompt is fed */
    int32_t guessed[WHIT_DRAFT_MAX];
    whit_draft_odds odds; /* odds of lookups */
    /* Guesses of the draft model. They are made once for each position, however often a step asks for them. */
    struct {
        whit_draft_odds odds;
        int32_t ids[WHIT_DRAFT_MAX];
        uint32_t n;       /* number of guesses that follow `next` */
        bool is_made;     /* since the last accepted step */
        uint64_t made_ns; /* time that drafting them took */
    } model;
    int32_t end_ids[16];
    bool finished, refused; /* refused: on_text asked to stop */
    uint32_t n_right;       /* how many guesses of the last step were right */
    bool is_alone;          /* no other sequence has a part in the step */
    bool served;            /* whit_generations_step: has tokens in this call */
    size_t i_wanted;        /* whit_generations_step: index of its first logits */
    uint64_t start_ns, fed_ns;
    whit_generate_result result;
    whit_error error;
};

static inline bool whit_generation_in_prompt(const whit_generation *g)
{
    return g->n_fed < g->n_prompt;
}

/* Checks before offering that the sequence is unchanged and has room for a token; fails the generation if not. */
whit_status whit_generation_check(whit_generation *generation, whit_error *error);
/* Like whit_generation_tokens, in two parts: returns the number of tokens, then token i. */
uint32_t whit_generation_want(whit_generation *generation, size_t capacity, size_t n_logits);
whit_step_token whit_generation_wanted(const whit_generation *generation, uint32_t i);
/* Finishes the generation with an external error, such as a step's. */
void whit_generation_fail(whit_generation *generation, whit_status status, const whit_error *reason);

#endif
