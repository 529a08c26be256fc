/* SPDX-License-Identifier: MIT */
#include "kernels/acts.h"

#include "base/mem.h"
#include "kernels/codec.h"

#define GROUP_MIN 32
#define GROUP_MAX 128

/* Returns the smaller of two group sizes, where 0 means the whole row. */
static uint32_t finer(uint32_t a, uint32_t b)
{
    return !a || (b && b < a) ? b : a;
}

static whit_acts_spec grouped(const whit_tensor_type *type, whit_acts_kind kind)
{
    uint32_t group = type->group ? type->group : GROUP_MAX;
    if (whit_scale_in_superblocks(type->scale_type)) group = WHIT_SUPER_ACTS;
    if (group < GROUP_MIN) group = GROUP_MIN;
    if (group > GROUP_MAX) group = GROUP_MAX;
    return (whit_acts_spec){.kind = (uint8_t)kind, .group = group, .step = finer(group, type->group)};
}

whit_acts_spec whit_acts_spec_q2(const whit_tensor_type *type)
{
    return grouped(type, WHIT_ACTS_Q2);
}

whit_acts_spec whit_acts_spec_for(const whit_tensor_type *type, whit_act_type act)
{
    const whit_codec_info *codec = whit_codec_find(type->codec);
    if (codec->is_float) return (whit_acts_spec){.kind = WHIT_ACTS_F32};
    if (act == WHIT_ACT_Q2 && (type->codec == WHIT_CODEC_B1 || type->codec == WHIT_CODEC_Q2))
        return whit_acts_spec_q2(type);
    if (type->act == WHIT_TENSOR_ACT_TOKEN) return (whit_acts_spec){.kind = WHIT_ACTS_I8, .step = type->group};
    if (whit_fixed_input_scale(type) != 0)
        return (whit_acts_spec){.kind = WHIT_ACTS_I8, .scale = whit_fixed_input_scale(type)};
    if (act == WHIT_ACT_F32) return (whit_acts_spec){.kind = WHIT_ACTS_F32};
    return grouped(type, WHIT_ACTS_I8);
}

static size_t data_stride(const whit_acts_spec *spec, uint32_t n_cols)
{
    /* Rows are padded, because a kernel may read whole lines (for t5, of 20 columns) and whole AMX rows (64 columns).
     * The stride is an odd number of cache lines; otherwise many rows would share the same cache sets. */
    if (spec->kind == WHIT_ACTS_I8) return ((whit_round_up((size_t)n_cols, 64) / 64 + 1) | 1) * 64;
    return whit_round_up(((size_t)n_cols + 31) / 32 * 4, 64);
}

static size_t data_bytes(const whit_acts_spec *spec, uint32_t n_tokens, uint32_t n_cols)
{
    return n_tokens * data_stride(spec, n_cols) * (spec->kind == WHIT_ACTS_Q2 ? 2 : 1);
}

uint32_t whit_acts_steps(const whit_acts_spec *spec, uint32_t n_cols)
{
    return spec->step ? (n_cols + spec->step - 1) / spec->step : 1;
}

size_t whit_acts_bytes(const whit_acts_spec *spec, uint32_t n_tokens, uint32_t n_cols)
{
    if (spec->kind == WHIT_ACTS_F32) return 0;
    size_t per_array = whit_round_up((size_t)n_tokens * whit_acts_steps(spec, n_cols) * 4, 64);
    return data_bytes(spec, n_tokens, n_cols) + 2 * per_array;
}

whit_acts whit_acts_place(const whit_acts_spec *spec, uint32_t n_tokens, uint32_t n_cols, void *memory)
{
    whit_acts acts = {.spec = *spec, .n_tokens = n_tokens, .n_cols = n_cols};
    acts.n_steps = whit_acts_steps(spec, n_cols);
    acts.stride = data_stride(spec, n_cols);
    uint8_t *data = memory;
    if (spec->kind == WHIT_ACTS_I8)
        acts.i8 = (int8_t *)data;
    else
        acts.planes = data;
    data += data_bytes(spec, n_tokens, n_cols);
    acts.scales = (float *)(void *)data;
    data += whit_round_up((size_t)n_tokens * acts.n_steps * 4, 64);
    acts.sums = (int32_t *)(void *)data;
    return acts;
}

whit_acts whit_acts_of_f32(const float *x, size_t stride, uint32_t n_tokens, uint32_t n_cols)
{
    return (whit_acts){.spec = {.kind = WHIT_ACTS_F32},
                       .n_tokens = n_tokens,
                       .n_cols = n_cols,
                       .n_steps = 1,
                       .stride = stride,
                       .f32 = x};
}

whit_acts whit_acts_rows(const whit_acts *acts, uint32_t begin, uint32_t n)
{
    whit_acts rows = *acts;
    rows.n_tokens = n;
    if (acts->spec.kind == WHIT_ACTS_F32) {
        rows.f32 += begin * acts->stride;
        return rows;
    }
    if (acts->spec.kind == WHIT_ACTS_I8)
        rows.i8 += begin * acts->stride;
    else
        rows.planes += 2 * begin * acts->stride;
    rows.scales += (size_t)begin * acts->n_steps;
    rows.sums += (size_t)begin * acts->n_steps;
    return rows;
}
