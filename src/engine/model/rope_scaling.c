/* SPDX-License-Identifier: MIT */
#include "model/rope_scaling.h"

#include "kernels/kernels.h"
#include "kernels/math.h"

#include <math.h>

/* ---- tensors of divisors --------------------------------------------------------------------- */

static const char long_name[] = "rope_factors_long", short_name[] = "rope_factors_short", name[] = "rope_factors";

const char *whit_rope_divisors(const whit_rope *rope, uint32_t n_tokens)
{
    if (rope->scaling == WHIT_ROPE_LONG) return n_tokens > rope->length ? long_name : short_name;
    return rope->has_factors ? name : NULL;
}

whit_status whit_rope_visit(const whit_config *config, whit_rope_visit_fn *visit, void *context, whit_error *error)
{
    for (uint32_t i = 0; i < whit_config_n_ropes(config); i++) {
        const whit_rope rope = whit_config_rope(config, i);
        if (rope.has_factors) WHIT_TRY(visit(context, name, rope.dims / 2, error));
        if (rope.scaling != WHIT_ROPE_LONG) continue;
        WHIT_TRY(visit(context, short_name, rope.dims / 2, error));
        WHIT_TRY(visit(context, long_name, rope.dims / 2, error));
    }
    return WHIT_OK;
}

bool whit_rope_same_frequencies(const whit_config *config, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < whit_config_n_ropes(config); i++) {
        const whit_rope rope = whit_config_rope(config, i);
        if (rope.scaling == WHIT_ROPE_LONG && (a > rope.length) != (b > rope.length)) return false;
        if (rope.scaling == WHIT_ROPE_DYNAMIC && a != b && (a > rope.length || b > rope.length)) return false;
    }
    return true;
}

struct tensor_check {
    const whit_resolver *resolver;
    const char *path;
};

static whit_status check_tensor(void *context, const char *tensor, uint32_t n, whit_error *error)
{
    const struct tensor_check *check = context;
    int32_t i = check->resolver->find(check->resolver->context, tensor);
    const whit_tensor_type *type = i >= 0 ? check->resolver->type(check->resolver->context, i) : NULL;
    if (type && type->codec == WHIT_CODEC_F32 && type->layout == WHIT_LAYOUT_PLAIN && type->n_rows == 1 &&
        type->n_cols == n)
        return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_FORMAT,
                     "%s: tensor '%s' is missing or not a vector of %u elements: the file is incomplete", check->path,
                     tensor, n);
}

whit_status whit_rope_check_tensors(const whit_config *config, const whit_resolver *resolver, const char *path,
                                    whit_error *error)
{
    return whit_rope_visit(config, check_tensor, &(struct tensor_check){resolver, path}, error);
}

/* ---- frequencies ----------------------------------------------------------------------------- */

double whit_rope_yarn_magnitude(double factor, double scale)
{
    return factor > 1 ? 0.1 * scale * whit_log_f64(factor) + 1 : 1;
}

/* Returns the index of the pair that makes `turns` turns within the original context, as a real number. */
static double yarn_pair(const whit_rope *rope, double turns)
{
    return rope->dims * whit_log_f64(rope->length / (2 * M_PI * turns)) / (2 * whit_log_f64(rope->theta));
}

static void apply_yarn(const whit_rope *rope, double *frequencies)
{
    double low = yarn_pair(rope, rope->beta_fast), high = yarn_pair(rope, rope->beta_slow);
    if (rope->rounds) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, rope->dims - 1.0);
    if (low == high) high += 0.001;
    for (uint32_t i = 0; i < rope->dims / 2; i++) {
        double ramp = fmin(fmax((i - low) / (high - low), 0), 1);
        frequencies[i] = frequencies[i] * (1 - ramp) + frequencies[i] / rope->factor * ramp;
    }
}

void whit_rope_scaled_frequencies(const whit_rope *rope, uint32_t n_tokens, const float *divisors, double *frequencies)
{
    const uint32_t n_pairs = rope->dims / 2;
    double theta = rope->theta;
    if (rope->scaling == WHIT_ROPE_DYNAMIC && n_tokens > rope->length)
        theta *=
            whit_pow_f64(rope->factor * n_tokens / rope->length - (rope->factor - 1), rope->dims / (rope->dims - 2.0));
    whit_rope_frequencies(theta, n_pairs, divisors, frequencies);
    if (rope->scaling == WHIT_ROPE_YARN) apply_yarn(rope, frequencies);
    for (uint32_t i = 0; rope->scaling == WHIT_ROPE_LINEAR && i < n_pairs; i++) frequencies[i] /= rope->factor;
}

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
