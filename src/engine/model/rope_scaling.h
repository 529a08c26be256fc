/* SPDX-License-Identifier: MIT
 * Computes the frequencies of scaled RoPE for a table (whit_rope in model/config.h), when a session is opened.
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

/* Returns the name of the tensor whose elements divide a table's frequencies in contexts of n_tokens; NULL if no tensor
 * does. */
const char *whit_rope_divisors(const whit_rope *rope, uint32_t n_tokens);

/* Computes the frequencies (dims / 2) for contexts of n_tokens. divisors (dims / 2): the tensor that whit_rope_divisors
 * names, or NULL. */
void whit_rope_scaled_frequencies(const whit_rope *rope, uint32_t n_tokens, const float *divisors, double *frequencies);

/* Returns whether contexts of a and of b tokens have the same frequencies, so that a session with one context can use
 * keys that were computed with the other. */
bool whit_rope_same_frequencies(const whit_config *config, uint32_t a, uint32_t b);

/* Calls `visit` for every tensor of divisors that a configuration needs; n is the number of elements that it must
 * have. */
typedef whit_status whit_rope_visit_fn(void *context, const char *name, uint32_t n, whit_error *error);
whit_status whit_rope_visit(const whit_config *config, whit_rope_visit_fn *visit, void *context, whit_error *error);
/* Refuses a model in which a tensor of divisors is missing or not a vector of the right length; the error names the
 * tensor. */
whit_status whit_rope_check_tensors(const whit_config *config, const whit_resolver *resolver, const char *path,
                                    whit_error *error);

/* Returns the factor by which yarn multiplies cosines and sines: 0.1 scale ln(factor) + 1 if factor > 1, else 1. */
double whit_rope_yarn_magnitude(double factor, double scale);

/* Holds the parameters of Llama 3.1's rule. Wavelengths that are long relative to the original context are multiplied
 * by `factor`, short ones are unchanged, and those between are interpolated by the number of their periods in the
 * original context. */
typedef struct whit_rope_llama3 {
    double factor;
    double low_freq_factor, high_freq_factor; /* long wavelengths have fewer than low_freq_factor periods in the
                                               * original context, short ones more than high_freq_factor; low < high */
    double original_context;                  /* context of the original training, in tokens */
} whit_rope_llama3;

/* Computes the divisors (rope_dim / 2) of frequencies. Source: _compute_llama3_parameters in modeling_rope_utils.py. */
void whit_rope_llama3_factors(const whit_rope_llama3 *rule, double theta, uint32_t rope_dim, float *factors);

#endif
