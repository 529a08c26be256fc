/* SPDX-License-Identifier: MIT
 * Samples tokens: chooses one token from logits. A sampler serves one sequence of tokens. */
#ifndef WHIT_SAMPLER_H
#define WHIT_SAMPLER_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct whit_sampler whit_sampler;
/* The samplers form llama.cpp's chain, with its names, order and defaults: penalties, dry, top_n_sigma, top_k, typical,
 * top_p, min_p, xtc, temperature; with mirostat, only temperature and mirostat. Logit biases come first in both. The
 * first number in a member's comment is its default; "off" marks the value that disables a sampler. */
typedef struct whit_sampler_options {
    size_t struct_bytes;
    uint64_t seed;              /* default 0 */
    float temperature;          /* 0.8; 0 or less picks the token with the largest logit */
    float dynatemp_range;       /* 0: off */
    float dynatemp_exponent;    /* 1 */
    int32_t top_k;              /* 40; 0 is off */
    float top_p;                /* 0.95; 1 is off */
    float min_p;                /* 0.05; 0 is off */
    float typical_p;            /* 1: off */
    float top_n_sigma;          /* -1: off */
    float xtc_probability;      /* 0: off */
    float xtc_threshold;        /* 0.1; above 0.5 is off */
    float repeat_penalty;       /* 1: off */
    float presence_penalty;     /* 0: off */
    float frequency_penalty;    /* 0: off */
    int32_t penalty_last_n;     /* 64; 0 is off, -1 all remembered tokens */
    float dry_multiplier;       /* 0: off */
    float dry_base;             /* 1.75; below 1 is off */
    int32_t dry_allowed_length; /* 2 */
    int32_t dry_penalty_last_n; /* -1: all remembered tokens; 0 is off */
    int32_t mirostat;           /* 0: off; 1 or 2: version of mirostat */
    float mirostat_tau;         /* 5 */
    float mirostat_eta;         /* 0.1 */
    const int32_t *bias_ids;    /* logit biases, n_biases of them; copied at open */
    const float *bias_values;
    size_t n_biases;
    uint32_t n_history_tokens; /* maximum number of tokens remembered; default 0: the model's context, at least 4,096 */
} whit_sampler_options;
static inline whit_sampler_options whit_sampler_options_default(void)
{
    whit_sampler_options options;
    memset(&options, 0, sizeof options);
    options.struct_bytes = sizeof options;
    options.temperature = 0.8f;
    options.dynatemp_exponent = 1;
    options.top_k = 40;
    options.top_p = 0.95f;
    options.min_p = 0.05f;
    options.typical_p = 1;
    options.top_n_sigma = -1;
    options.xtc_threshold = 0.1f;
    options.repeat_penalty = 1;
    options.penalty_last_n = 64;
    options.dry_base = 1.75f;
    options.dry_allowed_length = 2;
    options.dry_penalty_last_n = -1;
    options.mirostat_tau = 5;
    options.mirostat_eta = 0.1f;
    return options;
}
WHIT_API WHIT_CHECKED whit_status whit_sampler_open(const whit_model *model, const whit_sampler_options *options,
                                                    whit_sampler **sampler, whit_error *error);
/* Picks an id from (vocab) logits, which it does not change, and remembers the id for penalties. An id whose logit is
 * -INFINITY is never picked. Errors: WHIT_ERROR_NUMERIC (a logit is NaN or +INFINITY), WHIT_ERROR_ARGUMENT (every logit
 * is -INFINITY). */
WHIT_API WHIT_CHECKED whit_status whit_sampler_pick(whit_sampler *sampler, const float *logits, int32_t *id,
                                                    whit_error *error);
/* Returns the n_top for the step before a pick (whit_step_token): the number of largest logits that the sampler's picks
 * depend on; 0: they depend on all logits. */
WHIT_API uint32_t whit_sampler_n_top(const whit_sampler *sampler);
/* remembers a token of the prompt, for penalties */
WHIT_API void whit_sampler_accept(whit_sampler *sampler, int32_t id);
WHIT_API void whit_sampler_reset(whit_sampler *sampler);
WHIT_API void whit_sampler_close(whit_sampler *sampler);

/* Holds the logarithm of a token's probability under the softmax of the logits, before any sampler. */
typedef struct whit_logprob {
    int32_t id;
    float logprob;
} whit_logprob;
/* Computes log-probabilities from (n_vocab) logits, which must all be exact (a step with n_top 0): entries[0] belongs
 * to `id`, and the n_top most likely tokens follow, most likely first, ties by id. n_top is at most n_vocab; `entries`
 * has room for 1 + n_top. */
WHIT_API WHIT_CHECKED whit_status whit_logprobs(const float *logits, uint32_t n_vocab, int32_t id, uint32_t n_top,
                                                whit_logprob *entries, whit_error *error);

#ifdef __cplusplus
}
#endif
#endif
