/* SPDX-License-Identifier: MIT */
#include "model/rope_scaling.h"

#include "kernels/math.h"

#include <math.h>

void whit_rope_llama3_factors(const whit_rope_llama3 *rule, double theta, uint32_t rope_dim, float *factors)
{
    for (uint32_t i = 0; i < rope_dim / 2; i++) {
        double frequency = whit_pow_f64(theta, -2.0 * i / rope_dim);
        double turns = rule->original_context * frequency / (2 * M_PI);
        double unscaled = (turns - rule->low_freq_factor) / (rule->high_freq_factor - rule->low_freq_factor);
        if (turns > rule->high_freq_factor)
            factors[i] = 1;
        else if (turns < rule->low_freq_factor)
            factors[i] = (float)rule->factor;
        else
            factors[i] = (float)(1 / ((1 - unscaled) / rule->factor + unscaled));
    }
}
