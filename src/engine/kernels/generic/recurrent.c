/* SPDX-License-Identifier: MIT
 * Specifies recurrent layers: the causal convolution and the gated delta rule (Yang, Kautz and Hatamizadeh, "Gated
 * Delta Networks", 2024, equation 10). Elements of a value head do not mix, so every width of vector gives the same
 * bits. */
#include "kernels/kernels.h"
#include "kernels/math.h"

void whit_causal_conv_generic(const float *const *rows, const float *weight, size_t weight_stride, uint32_t n_taps,
                              bool is_silu, uint32_t n, float *out)
{
    for (uint32_t c = 0; c < n; c++) {
        float sum = weight[c] * rows[0][c];
        for (uint32_t j = 1; j < n_taps; j++) sum = fmaf(weight[j * weight_stride + c], rows[j][c], sum);
        out[c] = is_silu ? sum / (1.0f + whit_exp_f32(-sum)) : sum;
    }
}

void whit_delta_apply_generic(const whit_delta_update *updates, uint32_t n_updates, const float *from, float *to,
                              uint32_t key_dim, uint32_t value_dim)
{
    for (uint32_t i = 0; i < key_dim; i++)
        for (uint32_t c = 0; c < value_dim; c++) {
            const size_t at = (size_t)i * value_dim + c;
            float state = from ? from[at] : 0.0f;
            for (uint32_t t = 0; t < n_updates; t++)
                state = fmaf(updates[t].key[i], updates[t].change[c], updates[t].decay * state);
            to[at] = state;
        }
}

void whit_delta_step_generic(float *state, const float *query, const float *value, float beta,
                             const whit_delta_update *update, uint32_t key_dim, uint32_t value_dim, float *out)
{
    const float *key = update->key;
    for (uint32_t c = 0; c < value_dim; c++) {
        float read = 0, seen = 0;
        for (uint32_t i = 0; i < key_dim; i++)
            read = fmaf(update->decay * state[(size_t)i * value_dim + c], key[i], read);
        const float change = update->change[c] = beta * (value[c] - read);
        for (uint32_t i = 0; i < key_dim; i++) {
            float *s = &state[(size_t)i * value_dim + c];
            *s = fmaf(key[i], change, update->decay * *s);
            seen = fmaf(*s, query[i], seen);
        }
        out[c] = seen;
    }
}
