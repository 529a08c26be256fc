/* SPDX-License-Identifier: MIT
 * A generation, inside, and the parts of its protocol that loops over it use. */
#ifndef WHIT_RUNTIME_GENERATION_H
#define WHIT_RUNTIME_GENERATION_H

#include "runtime/draft.h"
#include "runtime/held.h"
#include "runtime/session.h"

struct whit_generation {
    whit_session *session;
    whit_sampler *sampler;
    const whit_allocator *allocator;
    whit_generate_options options; /* its stop strings are in `held`, its stages below */
    whit_stage *stages;            /* (n_stages) copies */
    float *edited;                 /* (n_vocab) logits that stages edit; NULL without */
    whit_logprob *logprobs;        /* (n_logprobs) NULL: not kept */
    whit_logprob *prompt_logprobs; /* (n_prompt) of them, where wanted */
    size_t n_logprobs, n_prompt_logprobs;
    whit_detokenizer *detokenizer; /* NULL without a tokenizer */
    whit_held held;
    whit_draft all; /* the prompt's ids, then those generated */
    size_t n_prompt, n_fed;
    uint32_t n_settled; /* tokens of the sequence that are part of the output or in front of it */
    uint32_t n_offered; /* tokens that it asked for, behind those */
    uint32_t n_guessed; /* of them, the last so many */
    int32_t next;       /* the first of them, once the prompt is fed */
    int32_t guessed[WHIT_DRAFT_MAX];
    int32_t end_ids[16];
    bool finished, refused; /* refused: on_text wants no more */
    bool served;            /* whit_generations_step: in this call */
    size_t i_wanted;        /* whit_generations_step: its first logits */
    uint64_t start_ns, fed_ns;
    whit_generate_result result;
    whit_error error;
};

static inline bool whit_generation_in_prompt(const whit_generation *g)
{
    return g->n_fed < g->n_prompt;
}

/* Before asking: is the sequence as it was left, with room for a token? Fails the generation if not. */
whit_status whit_generation_check(whit_generation *generation, whit_error *error);
/* As whit_generation_tokens, one by one: how many, and which. */
uint32_t whit_generation_want(whit_generation *generation, size_t capacity, size_t n_logits);
whit_step_token whit_generation_wanted(const whit_generation *generation, uint32_t i);
/* Finishes one because of an error from outside, such as a step's. */
void whit_generation_fail(whit_generation *generation, whit_status status, const whit_error *reason);

#endif
