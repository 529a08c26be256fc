/* SPDX-License-Identifier: MIT
 * Scaled RoPE as a vector of factors that divide the frequencies, one per pair of a head. */
#ifndef WHIT_MODEL_ROPE_SCALING_H
#define WHIT_MODEL_ROPE_SCALING_H

#include <stdint.h>

/* Llama 3.1's rule: long waves are stretched by `factor`, short ones left alone, those between
 * blended by how often they turn within the context that the model was first trained with. */
typedef struct whit_rope_llama3 {
    double factor;
    double low_freq_factor, high_freq_factor; /* low < high */
    double original_context;                  /* tokens */
} whit_rope_llama3;

/* factors (rope_dim / 2). Source: transformers, modeling_rope_utils.py,
 * _compute_llama3_parameters. */
void whit_rope_llama3_factors(const whit_rope_llama3 *rule, double theta, uint32_t rope_dim, float *factors);

#endif
