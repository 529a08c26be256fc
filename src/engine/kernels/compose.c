/* SPDX-License-Identifier: MIT
 * Computes tables for RoPE, and finishes a screened output head with the kernels of any ISA. */
#include "kernels/kernels.h"
#include "kernels/math.h"

void whit_rope_frequencies(double theta, uint32_t n_pairs, const float *factors, double *frequencies)
{
    for (uint32_t i = 0; i < n_pairs; i++) {
        frequencies[i] = whit_pow_f64(theta, -(double)i / n_pairs);
        if (factors) frequencies[i] /= (double)factors[i];
    }
}

void whit_rope_table(const double *frequencies, uint32_t n_pairs, uint32_t position, float *table)
{
    for (uint32_t i = 0; i < n_pairs; i++) {
        double sine, cosine;
        whit_sincos_f64(position * frequencies[i], &sine, &cosine);
        table[i] = (float)cosine;
        table[n_pairs + i] = (float)sine;
    }
}

void whit_kv_offset_table(const double *frequencies, uint32_t n_pairs, float *table)
{
    for (uint32_t i = 0; i < n_pairs; i++)
        for (uint32_t j = 0; j < WHIT_KV_BLOCK_TOKENS; j++) {
            double sine, cosine;
            whit_sincos_f64(j * frequencies[i], &sine, &cosine);
            table[i * WHIT_KV_BLOCK_TOKENS + j] = (float)cosine;
            table[(n_pairs + i) * WHIT_KV_BLOCK_TOKENS + j] = (float)sine;
        }
}

/* ---- the screened head ---------------------------------------------------------------------- */

#define STANDARD_ERRORS     8.0
#define LOW_NIBBLE_VARIANCE 21.25 /* variance of a uniform integer in 0..15: (16^2 - 1) / 12 */

float whit_screen_bound(const whit_acts *x, uint32_t token)
{
    const int8_t *q = x->i8 + token * x->stride;
    const float *scales = x->scales + (size_t)token * x->n_steps;
    double energy = 0;
    for (uint32_t step = 0; step < x->n_steps; step++) {
        int64_t squares = 0;
        for (uint32_t k = whit_acts_step_begin(x, step); k < whit_acts_step_end(x, step); k++) squares += q[k] * q[k];
        energy += (double)scales[step] * (double)scales[step] * (double)squares;
    }
    return (float)(STANDARD_ERRORS * sqrt(LOW_NIBBLE_VARIANCE * energy));
}

/* Replaces the screened logits of n rows by their exact logits. */
static void rescore_in_place(const whit_kernels *kernels, const whit_tensor *w, const whit_acts *x, uint32_t token,
                             const uint32_t *rows, uint32_t n, float *logits)
{
    float exact[64];
    for (uint32_t i = 0; i < n; i += 64) {
        uint32_t count = n - i < 64 ? n - i : 64;
        kernels->rescore(w, x, token, rows + i, count, exact);
        for (uint32_t j = 0; j < count; j++) logits[rows[i + j]] = exact[j];
    }
}

uint32_t whit_screen_finish(const whit_kernels *kernels, const whit_tensor *w, const whit_acts *x, uint32_t token,
                            uint32_t n_best, float *logits, uint32_t *rows)
{
    uint32_t n_rows = w->type.n_rows;
    if (n_best > n_rows) n_best = n_rows;
    if (n_best > WHIT_SCREEN_MAX_BEST) n_best = WHIT_SCREEN_MAX_BEST;
    if (n_best == 1)
        rows[0] = kernels->argmax(logits, n_rows);
    else
        kernels->best_rows(logits, n_rows, n_best, rows);
    rescore_in_place(kernels, w, x, token, rows, n_best, logits);
    float threshold = INFINITY;
    for (uint32_t i = 0; i < n_best; i++)
        if (logits[rows[i]] < threshold) threshold = logits[rows[i]];
    /* The n_best rows, whose logits are now exact, reach the threshold, so they are again among the surviving rows. */
    uint32_t n = kernels->survive(w, logits, whit_screen_bound(x, token), threshold, rows);
    rescore_in_place(kernels, w, x, token, rows, n, logits);
    return n;
}
