/* SPDX-License-Identifier: MIT
 * Internals of a generation, and the functions with which scheduling loops (whit_generations_step) run it. */
#ifndef WHIT_RUNTIME_GENERATION_H
#define WHIT_RUNTIME_GENERATION_H

#include "runtime/held.h"
#include "runtime/session.h"

struct whit_generation {
    whit_session *session;
    whit_sampler *sampler;
    const whit_allocator *allocator;
    whit_generate_options options; /* the caller's options; copies of stop strings are in `held`, copies of stages in
                                    * `stages` */
    whit_stage *stages;            /* (n_stages) copies of the caller's stages */
    float *edited;                 /* (n_vocab): copy of the logits that stages edit; NULL without stages */
    whit_logprob *logprobs;        /* (n_logprobs): log-probabilities of picked tokens, 1 + n_top_logprobs entries
                                    * each; NULL: not wanted */
    whit_logprob *prompt_logprobs; /* (n_prompt_logprobs): log-probabilities of the prompt's tokens, 1 +
                                    * n_top_logprobs entries each; NULL: not wanted */
    size_t n_logprobs, n_prompt_logprobs;
    whit_detokenizer *detokenizer; /* NULL: the model has no tokenizer */
    whit_held held;
    whit_draft all; /* ids of the prompt, then generated ids; in a full endless session the oldest ids are dropped */
    size_t n_prompt, n_fed;
    uint32_t n_settled; /* number of confirmed tokens in the sequence, which are not guesses */
    uint32_t n_offered; /* number of tokens, after the confirmed ones, that are offered for the next step */
    uint32_t n_guessed; /* number of guesses, which are the last of the offered tokens */
    int32_t next;       /* once the prompt is fed: the first offered token, which was picked but not yet fed */
    int32_t guessed[WHIT_DRAFT_MAX];
    whit_draft_odds odds; /* odds that guesses by lookup are right */
    /* Guesses of the draft model; they are made once per position, even if several steps ask for them. */
    struct {
        whit_draft_odds odds;
        int32_t ids[WHIT_DRAFT_MAX];
        uint32_t n;       /* number of guesses that follow `next` */
        bool is_made;     /* the guesses were made after the last accepted step */
        uint64_t made_ns; /* time that making them took */
    } model;
    int32_t end_ids[16];
    bool finished, refused; /* refused: on_text asked to stop */
    uint32_t n_right;       /* number of guesses of the last step that were right */
    bool is_alone;          /* the step has no tokens of other sequences */
    bool served;            /* whit_generations_step: the generation already had tokens in a step of this call */
    size_t i_wanted;        /* whit_generations_step: index of its first row of logits in the step */
    uint64_t start_ns, fed_ns;
    whit_generate_result result;
    whit_error error;
};

static inline bool whit_generation_in_prompt(const whit_generation *g)
{
    return g->n_fed < g->n_prompt;
}

/* Checks, before tokens are offered, that the sequence is unchanged and has room for a token; if not, finishes the
 * generation with an error. */
whit_status whit_generation_check(whit_generation *generation, whit_error *error);
/* The two parts of whit_generation_tokens: _want chooses the next tokens, at most `capacity` with at most n_logits rows
 * of logits, and returns their number; _wanted returns token i. */
uint32_t whit_generation_want(whit_generation *generation, size_t capacity, size_t n_logits);
whit_step_token whit_generation_wanted(const whit_generation *generation, uint32_t i);
/* Finishes the generation with an error that occurred outside of it, such as in a step. */
void whit_generation_fail(whit_generation *generation, whit_status status, const whit_error *reason);

#endif
