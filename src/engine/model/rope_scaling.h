/* SPDX-License-Identifier: MIT
 * Computes scaled RoPE: the frequencies of a RoPE table (model/config.h), which are computed when a session is opened.
 *
 * Source of all formulas: transformers, modeling_rope_utils.py. With n = dims and f_i = theta^(-2i / n), i < n / 2:
 *
 *   linear   f_i / factor
 *   dynamic  theta is first multiplied by (factor L / length - (factor - 1))^(n / (n - 2)), L = max(tokens, length)
 *   yarn     f_i (1 - t_i) + f_i / factor t_i, where t rises from 0 at the pair that turns beta_fast times within
 *            `length` to 1 at the pair that turns beta_slow times
 *   long     f_i / d_i, d of tensor "rope_factors_short", in contexts of more than `length` tokens of
 *            "rope_factors_long"
 *
 * The tensor "rope_factors" holds the divisors of Llama 3.1's rule or of Gemma's proportional RoPE. */
#ifndef WHIT_MODEL_ROPE_SCALING_H
#define WHIT_MODEL_ROPE_SCALING_H

#include "model/graph.h"

/* Returns the name of the tensor that divides a table's frequencies in contexts of n_tokens, or NULL. */
const char *whit_rope_divisors(const whit_rope *rope, uint32_t n_tokens);

/* Computes frequencies (dims / 2) for contexts of n_tokens. divisors (dims / 2): the values of whit_rope_divisors'
 * tensor, or NULL. */
void whit_rope_scaled_frequencies(const whit_rope *rope, uint32_t n_tokens, const float *divisors, double *frequencies);

/* Returns whether contexts of a and b tokens have the same frequencies, so that keys of one serve in the other. */
bool whit_rope_same_frequencies(const whit_config *config, uint32_t a, uint32_t b);

/* Calls `visit` for every tensor of divisors that a configuration needs, with the length that it must have. */
typedef whit_status whit_rope_visit_fn(void *context, const char *name, uint32_t n, whit_error *error);
whit_status whit_rope_visit(const whit_config *config, whit_rope_visit_fn *visit, void *context, whit_error *error);
/* Refuses, by name, a tensor of divisors that is missing, or that is not a vector of the right length. */
whit_status whit_rope_check_tensors(const whit_config *config, const whit_resolver *resolver, const char *path,
                                    whit_error *error);

/* Returns yarn's factor of cosines and sines for a multiplier `scale`: 0.1 scale ln(factor) + 1, but 1 for factors up
 * to 1. */
double whit_rope_yarn_magnitude(double factor, double scale);

/* Holds the parameters of Llama 3.1's rule: wavelengths that are long relative to the original context are multiplied
 * by `factor`, short ones are unchanged, and those between are blended by the number of their periods in the original
 * context. */
typedef struct whit_rope_llama3 {
    double factor;
    double low_freq_factor, high_freq_factor; /* low < high */
    double original_context;                  /* context of the first training, in tokens */
} whit_rope_llama3;

/* Computes divisors (rope_dim / 2). Source: _compute_llama3_parameters in modeling_rope_utils.py. */
void whit_rope_llama3_factors(const whit_rope_llama3 *rule, double theta, uint32_t rope_dim, float *factors);

#endif
