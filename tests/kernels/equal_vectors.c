/* SPDX-License-Identifier: MIT
 * Compares every kernel of kernels.inc that is not a matrix product, at each level that this machine can run, with
 * the generic one: equal bits for random, extreme and unaligned input, and for lengths with a remainder. */
#include "kernels/equal.h"

#define ROUNDS 150

/* One comparison: the kernel under test, and the generic kernels. */
typedef struct trial {
    whit_rng *rng;
    const whit_kernels *generic;
    const whit_kernel_row *row;
    char name[64];
} trial;

static uint32_t random_size(whit_rng *rng, uint32_t most)
{
    static const uint32_t sizes[] = {1, 8, 15, 16, 17, 31, 32, 33, 64, 100, 127, 128, 129, 256, 2560};
    uint32_t n = whit_rng_next(rng) & 1 ? sizes[whit_rng_below(rng, sizeof sizes / sizeof *sizes)]
                                        : 1 + (uint32_t)whit_rng_below(rng, most);
    return n < most ? n : most;
}

static input_mode random_mode(whit_rng *rng)
{
    return (input_mode)whit_rng_below(rng, INPUT_COUNT);
}

/* Compares two sets of activations of the same shape, each at the beginning of its memory. */
static void assert_same_acts(const trial *t, const whit_acts acts[2], uint8_t *const memory[2])
{
    size_t n_steps = (size_t)acts[0].n_tokens * acts[0].n_steps;
    size_t data_bytes = acts[0].n_tokens * acts[0].stride * (acts[0].spec.kind == WHIT_ACTS_Q2 ? 2 : 1);
    if (memcmp(memory[0], memory[1], data_bytes)) fail_msg("%s: codes differ", t->name);
    assert_same_floats(acts[0].scales, acts[1].scales, n_steps, t->name, "scales");
    if (memcmp(acts[0].sums, acts[1].sums, n_steps * 4)) fail_msg("%s: sums differ", t->name);
}

/* ---- comparison functions, one per signature ------------------------------------------------ */

static void compare_quantise(const trial *t)
{
    static const whit_acts_spec specs[] = {{WHIT_ACTS_I8, 0, 0},           {WHIT_ACTS_I8, 0, 128},
                                           {WHIT_ACTS_I8, 32, 16},         {WHIT_ACTS_I8, 32, 32},
                                           {WHIT_ACTS_I8, 64, 64},         {WHIT_ACTS_I8, 128, 128},
                                           {WHIT_ACTS_Q2, 32, 32},         {WHIT_ACTS_Q2, 128, 128},
                                           {WHIT_ACTS_I8, .scale = 0.01f}, {WHIT_ACTS_I8, .scale = 0x1p-130f}};
    const whit_acts_spec *spec = &specs[whit_rng_below(t->rng, sizeof specs / sizeof *specs)];
    uint32_t n = random_size(t->rng, 2600), n_tokens = 1 + (uint32_t)whit_rng_below(t->rng, 3);
    guarded_floats x = floats_random(t->rng, (size_t)n_tokens * n, random_mode(t->rng));
    if (whit_rng_below(t->rng, 4) == 0) {
        float special = whit_rng_next(t->rng) & 1 ? NAN : INFINITY;
        x.data[whit_rng_below(t->rng, x.n)] = special;
    }
    size_t bytes = whit_acts_bytes(spec, n_tokens, n);
    uint8_t *memory[2] = {guarded_alloc(bytes, 0), guarded_alloc(bytes, 0)};
    whit_acts acts[2];
    whit_quantise_fn *functions[2] = {(whit_quantise_fn *)t->row->function, t->generic->quantise};
    for (int i = 0; i < 2; i++) {
        acts[i] = whit_acts_place(spec, n_tokens, n, memory[i]);
        functions[i](x.data, n, &acts[i], 0, n_tokens);
        guarded_check(memory[i], bytes);
    }
    assert_same_acts(t, acts, memory);
    guarded_free(memory[0], 0);
    guarded_free(memory[1], 0);
    floats_free(&x);
}

static void compare_norm_acts(const trial *t)
{
    static const whit_acts_spec specs[] = {{WHIT_ACTS_I8, 0, 0},   {WHIT_ACTS_I8, 0, 128},
                                           {WHIT_ACTS_I8, 32, 32}, {WHIT_ACTS_I8, 128, 128},
                                           {WHIT_ACTS_Q2, 32, 32}, {WHIT_ACTS_I8, .scale = 0.01f}};
    const whit_acts_spec *spec = &specs[whit_rng_below(t->rng, sizeof specs / sizeof *specs)];
    uint32_t n = random_size(t->rng, 2600), n_tokens = 1 + (uint32_t)whit_rng_below(t->rng, 3);
    size_t stride = n + whit_rng_below(t->rng, 5), elems = (n_tokens - 1) * stride + n;
    guarded_floats a = floats_random(t->rng, elems, random_mode(t->rng));
    guarded_floats b = floats_random(t->rng, elems, random_mode(t->rng));
    guarded_floats w = floats_random(t->rng, n, INPUT_UNIFORM);
    if (whit_rng_below(t->rng, 4) == 0)
        a.data[whit_rng_below(t->rng, elems)] = whit_rng_next(t->rng) & 1 ? NAN : INFINITY;
    if (whit_rng_below(t->rng, 8) == 0) memset(a.data, 0, elems * sizeof *a.data);
    whit_norm_rows rows = {.source = (whit_row_source)whit_rng_below(t->rng, WHIT_ROW_RELU2 + 1),
                           .a_stride = stride,
                           .b = b.data,
                           .b_stride = stride};
    rows.weight = whit_rng_next(t->rng) & 3 ? w.data : NULL;
    rows.eps = whit_rng_next(t->rng) & 3 ? 1e-5f : 0;
    bool is_kept = whit_rng_next(t->rng) & 1, in_place = whit_rng_next(t->rng) & 1;
    size_t bytes = whit_acts_bytes(spec, n_tokens, n);
    uint8_t *memory[2] = {guarded_alloc(bytes, 0), guarded_alloc(bytes, 0)};
    guarded_floats given[2] = {floats_copy(&a), floats_copy(&a)}, made[2] = {floats_copy(&a), floats_copy(&a)};
    guarded_floats normed[2] = {floats_copy(&w), floats_copy(&w)};
    whit_acts acts[2];
    whit_norm_acts_fn *functions[2] = {(whit_norm_acts_fn *)t->row->function, t->generic->norm_acts};
    for (int i = 0; i < 2; i++) {
        acts[i] = whit_acts_place(spec, n_tokens, n, memory[i]);
        rows.a = given[i].data;
        rows.x = !is_kept ? normed[i].data : in_place ? given[i].data : made[i].data;
        rows.x_stride = is_kept ? stride : 0;
        rows.normed = normed[i].data;
        functions[i](&rows, &acts[i], 0, n_tokens);
        guarded_check(memory[i], bytes);
    }
    assert_same_acts(t, acts, memory);
    assert_same_floats(given[0].data, given[1].data, elems, t->name, "given");
    assert_same_floats(made[0].data, made[1].data, elems, t->name, "made");
    for (int i = 0; i < 2; i++) {
        guarded_free(memory[i], 0);
        floats_free(&given[i]), floats_free(&made[i]), floats_free(&normed[i]);
    }
    floats_free(&a), floats_free(&b), floats_free(&w);
}

static void compare_rms_norm(const trial *t)
{
    uint32_t n = random_size(t->rng, 3000);
    input_mode mode = random_mode(t->rng);
    guarded_floats x = floats_random(t->rng, n, mode), w = floats_random(t->rng, n, INPUT_UNIFORM);
    guarded_floats out = floats_copy(&x), expected = floats_copy(&x);
    const float *weight = whit_rng_next(t->rng) & 3 ? w.data : NULL;
    bool in_place = whit_rng_next(t->rng) & 1;
    ((whit_rms_norm_fn *)t->row->function)(in_place ? out.data : x.data, weight, n, 1e-5f, out.data);
    t->generic->rms_norm(x.data, weight, n, 1e-5f, expected.data);
    assert_same_floats(out.data, expected.data, n, t->name, "out");
    floats_free(&x), floats_free(&w), floats_free(&out), floats_free(&expected);
}

static void compare_causal_conv(const trial *t)
{
    const uint32_t n = random_size(t->rng, 700), n_taps = 1 + (uint32_t)whit_rng_below(t->rng, WHIT_CONV_TAPS_MAX);
    const size_t stride = n + whit_rng_below(t->rng, 5);
    const bool is_silu = whit_rng_next(t->rng) & 1;
    guarded_floats x = floats_random(t->rng, (size_t)n_taps * n, random_mode(t->rng));
    guarded_floats w = floats_random(t->rng, (n_taps - 1) * stride + n, INPUT_UNIFORM);
    guarded_floats out = floats_random(t->rng, n, INPUT_UNIFORM), expected = floats_copy(&out);
    const float *rows[WHIT_CONV_TAPS_MAX];
    for (uint32_t j = 0; j < n_taps; j++) rows[j] = x.data + (size_t)j * n;
    ((whit_causal_conv_fn *)t->row->function)(rows, w.data, stride, n_taps, is_silu, n, out.data);
    t->generic->causal_conv(rows, w.data, stride, n_taps, is_silu, n, expected.data);
    assert_same_floats(out.data, expected.data, n, t->name, "out");
    floats_free(&x), floats_free(&w), floats_free(&out), floats_free(&expected);
}

/* A state of the delta rule, and the updates of two tokens. */
typedef struct delta_case {
    uint32_t key_dim, value_dim;
    guarded_floats state, keys, changes, others;
    whit_delta_update updates[2];
} delta_case;

static delta_case make_delta_case(const trial *t)
{
    delta_case c = {.key_dim = 1 + (uint32_t)whit_rng_below(t->rng, 40), .value_dim = random_size(t->rng, 200)};
    c.state = floats_random(t->rng, (size_t)c.key_dim * c.value_dim, random_mode(t->rng));
    c.keys = floats_random(t->rng, 2 * (size_t)c.key_dim, INPUT_UNIFORM);
    c.changes = floats_random(t->rng, 2 * (size_t)c.value_dim, INPUT_UNIFORM);
    c.others = floats_random(t->rng, (size_t)c.key_dim + c.value_dim, random_mode(t->rng));
    for (uint32_t i = 0; i < 2; i++)
        c.updates[i] =
            (whit_delta_update){c.keys.data + i * c.key_dim, c.changes.data + i * c.value_dim, 0.9f + 0.05f * (float)i};
    return c;
}

static void free_delta_case(delta_case *c)
{
    floats_free(&c->state), floats_free(&c->keys), floats_free(&c->changes), floats_free(&c->others);
}

static void compare_delta_apply(const trial *t)
{
    delta_case c = make_delta_case(t);
    const uint32_t n_updates = (uint32_t)whit_rng_below(t->rng, 3);
    const bool is_zero = whit_rng_below(t->rng, 4) == 0, in_place = whit_rng_next(t->rng) & 1;
    guarded_floats out = floats_copy(&c.state), expected = floats_copy(&c.state);
    ((whit_delta_apply_fn *)t->row->function)(c.updates, n_updates,
                                              is_zero        ? NULL
                                                  : in_place ? out.data
                                                             : c.state.data,
                                              out.data, c.key_dim, c.value_dim);
    t->generic->delta_apply(c.updates, n_updates, is_zero ? NULL : c.state.data, expected.data, c.key_dim, c.value_dim);
    assert_same_floats(out.data, expected.data, out.n, t->name, "state");
    floats_free(&out), floats_free(&expected);
    free_delta_case(&c);
}

static void compare_delta_step(const trial *t)
{
    delta_case c = make_delta_case(t);
    const float *query = c.others.data, *value = c.others.data + c.key_dim;
    guarded_floats states[2] = {floats_copy(&c.state), floats_copy(&c.state)};
    guarded_floats changes[2] = {floats_copy(&c.changes), floats_copy(&c.changes)};
    guarded_floats outs[2] = {floats_copy(&c.changes), floats_copy(&c.changes)};
    whit_delta_step_fn *functions[2] = {(whit_delta_step_fn *)t->row->function, t->generic->delta_step};
    for (int i = 0; i < 2; i++) {
        const whit_delta_update update = {c.keys.data, changes[i].data, c.updates[0].decay};
        functions[i](states[i].data, query, value, 0.75f, &update, c.key_dim, c.value_dim, outs[i].data);
    }
    assert_same_floats(states[0].data, states[1].data, states[0].n, t->name, "state");
    assert_same_floats(changes[0].data, changes[1].data, changes[0].n, t->name, "change");
    assert_same_floats(outs[0].data, outs[1].data, outs[0].n, t->name, "out");
    for (int i = 0; i < 2; i++) floats_free(&states[i]), floats_free(&changes[i]), floats_free(&outs[i]);
    free_delta_case(&c);
}

static void compare_rope(const trial *t)
{
    uint32_t n_pairs = random_size(t->rng, 128), n_heads = 1 + (uint32_t)whit_rng_below(t->rng, 4);
    uint32_t head_dim = 2 * n_pairs + (uint32_t)whit_rng_below(t->rng, 3) * 8;
    guarded_floats table = floats_random(t->rng, 2 * n_pairs, INPUT_UNIFORM);
    guarded_floats x = floats_random(t->rng, (size_t)n_heads * head_dim, random_mode(t->rng));
    guarded_floats found = floats_copy(&x), expected = floats_copy(&x);
    bool in_place = whit_rng_next(t->rng) & 1;
    if (!in_place) memset(found.data, 0xEE, found.n * sizeof *found.data);
    whit_rope_fn *generic = strstr(t->row->op, "half") ? t->generic->rope_half : t->generic->rope_pairs;
    ((whit_rope_fn *)t->row->function)(in_place ? found.data : x.data, n_heads, head_dim, n_pairs, table.data,
                                       found.data);
    generic(x.data, n_heads, head_dim, n_pairs, table.data, expected.data);
    assert_same_floats(found.data, expected.data, x.n, t->name, "out");
    floats_free(&x), floats_free(&table), floats_free(&found), floats_free(&expected);
}

static void compare_gate(const trial *t)
{
    uint32_t n = random_size(t->rng, 3000);
    guarded_floats gate = floats_random(t->rng, n, random_mode(t->rng));
    guarded_floats up = floats_random(t->rng, n, INPUT_WIDE);
    for (uint32_t i = 0; i < n; i++)
        if (whit_rng_below(t->rng, 3) == 0) gate.data[i] *= 50;
    if (whit_rng_below(t->rng, 3) == 0) gate.data[whit_rng_below(t->rng, n)] = NAN;
    guarded_floats out = floats_copy(&gate), expected = floats_copy(&gate);
    whit_gate_fn *generic = *(whit_gate_fn *const *)(const void *)((const char *)t->generic + t->row->table_offset);
    ((whit_gate_fn *)t->row->function)(out.data, up.data, n, out.data);
    generic(gate.data, up.data, n, expected.data);
    assert_same_floats(out.data, expected.data, n, t->name, "out");
    floats_free(&gate), floats_free(&up), floats_free(&out), floats_free(&expected);
}

static void compare_add(const trial *t)
{
    uint32_t n = random_size(t->rng, 3000);
    guarded_floats x = floats_random(t->rng, n, random_mode(t->rng));
    guarded_floats y = floats_random(t->rng, n, random_mode(t->rng)), expected = floats_copy(&x);
    ((whit_add_fn *)t->row->function)(x.data, y.data, n);
    t->generic->add(expected.data, y.data, n);
    assert_same_floats(x.data, expected.data, n, t->name, "x");
    floats_free(&x), floats_free(&y), floats_free(&expected);
}

static void compare_scale(const trial *t)
{
    uint32_t n = random_size(t->rng, 3000);
    guarded_floats x = floats_random(t->rng, n, random_mode(t->rng)), expected = floats_copy(&x);
    ((whit_scale_fn *)t->row->function)(x.data, 0.3f, n);
    t->generic->scale(expected.data, 0.3f, n);
    assert_same_floats(x.data, expected.data, n, t->name, "x");
    floats_free(&x), floats_free(&expected);
}

static void compare_weighted_add(const trial *t)
{
    uint32_t n = random_size(t->rng, 3000);
    guarded_floats x = floats_random(t->rng, n, random_mode(t->rng)), expected = floats_copy(&x),
                   y = floats_random(t->rng, n, random_mode(t->rng));
    ((whit_weighted_add_fn *)t->row->function)(x.data, y.data, 0.37f, n);
    t->generic->weighted_add(expected.data, y.data, 0.37f, n);
    assert_same_floats(x.data, expected.data, n, t->name, "x");
    floats_free(&x), floats_free(&expected), floats_free(&y);
}

static void compare_softcap(const trial *t)
{
    uint32_t n = random_size(t->rng, 3000);
    guarded_floats x = floats_random(t->rng, n, random_mode(t->rng)), expected = floats_copy(&x);
    ((whit_scale_fn *)t->row->function)(x.data, 7.5f, n);
    t->generic->softcap(expected.data, 7.5f, n);
    assert_same_floats(x.data, expected.data, n, t->name, "x");
    floats_free(&x), floats_free(&expected);
}

static void compare_hadamard(const trial *t)
{
    const uint32_t block = 1u << whit_rng_below(t->rng, 10), n = block * (1 + (uint32_t)whit_rng_below(t->rng, 6));
    const bool is_back = whit_rng_next(t->rng) & 1, has_signs = whit_rng_next(t->rng) & 1;
    guarded_floats x = floats_random(t->rng, n, random_mode(t->rng)), signs = floats_copy(&x);
    guarded_floats out = floats_copy(&x), expected = floats_copy(&x);
    for (uint32_t i = 0; i < n; i++) signs.data[i] = whit_rng_next(t->rng) & 1 ? 1.0f : -1.0f;
    ((whit_hadamard_fn *)t->row->function)(x.data, has_signs ? signs.data : NULL, n, block, is_back, out.data);
    t->generic->hadamard_row(x.data, has_signs ? signs.data : NULL, n, block, is_back, expected.data);
    assert_same_floats(out.data, expected.data, n, t->name, "out");
    ((whit_hadamard_fn *)t->row->function)(x.data, has_signs ? signs.data : NULL, n, block, is_back, x.data);
    assert_same_floats(x.data, expected.data, n, t->name, "in place");
    floats_free(&x), floats_free(&signs), floats_free(&out), floats_free(&expected);
}

static void compare_fix_scale(const trial *t)
{
    uint32_t n = random_size(t->rng, 3000);
    guarded_floats x = floats_random(t->rng, n, random_mode(t->rng));
    if (whit_rng_next(t->rng) & 1) x.data[whit_rng_below(t->rng, n)] = whit_rng_next(t->rng) & 1 ? NAN : -INFINITY;
    guarded_floats expected = floats_copy(&x);
    ((whit_scale_fn *)t->row->function)(x.data, 0.01f, n);
    t->generic->fix_scale(expected.data, 0.01f, n);
    assert_same_floats(x.data, expected.data, n, t->name, "x");
    floats_free(&x), floats_free(&expected);
}

static void compare_layer_norm(const trial *t)
{
    uint32_t n = random_size(t->rng, 3000);
    int mode = random_mode(t->rng);
    guarded_floats x = floats_random(t->rng, n, mode), out = floats_copy(&x), expected = floats_copy(&x);
    guarded_floats weight = floats_random(t->rng, n, INPUT_UNIFORM), bias = floats_random(t->rng, n, INPUT_UNIFORM);
    ((whit_layer_norm_fn *)t->row->function)(x.data, weight.data, bias.data, n, 1e-12f, out.data);
    t->generic->layer_norm(x.data, weight.data, bias.data, n, 1e-12f, expected.data);
    assert_same_floats(out.data, expected.data, n, t->name, "out");
    ((whit_layer_norm_fn *)t->row->function)(x.data, weight.data, bias.data, n, 1e-12f, x.data);
    assert_same_floats(x.data, expected.data, n, t->name, "out in place");
    floats_free(&x), floats_free(&out), floats_free(&expected), floats_free(&weight), floats_free(&bias);
}

static void compare_activate(const trial *t)
{
    uint32_t n = random_size(t->rng, 3000);
    guarded_floats x = floats_random(t->rng, n, random_mode(t->rng)), out = floats_copy(&x), expected = floats_copy(&x);
    for (int kind = 0; kind < WHIT_ACTIVATIONS; kind++) {
        ((whit_activate_fn *)t->row->function)(x.data, n, (whit_activation)kind, out.data);
        t->generic->activate(x.data, n, (whit_activation)kind, expected.data);
        assert_same_floats(out.data, expected.data, n, t->name, "out");
    }
    floats_free(&x), floats_free(&out), floats_free(&expected);
}

static void compare_argmax(const trial *t)
{
    uint32_t n = random_size(t->rng, 3000);
    guarded_floats x = floats_random(t->rng, n, random_mode(t->rng));
    uint32_t found = ((whit_argmax_fn *)t->row->function)(x.data, n), expected = t->generic->argmax(x.data, n);
    if (found != expected) fail_msg("%s: %u of %u for %u", t->name, found, n, expected);
    floats_free(&x);
    /* if a value is not finite, any index within the vector is valid */
    for (n = 16; n <= 1008; n += 992) {
        x = floats_random(t->rng, n, random_mode(t->rng));
        x.data[0] = NAN;
        found = ((whit_argmax_fn *)t->row->function)(x.data, n);
        if (found >= n) fail_msg("%s: %u of %u behind a NaN", t->name, found, n);
        floats_free(&x);
    }
}

static void compare_all_finite(const trial *t)
{
    uint32_t n = random_size(t->rng, 3000);
    guarded_floats x = floats_random(t->rng, n, random_mode(t->rng));
    if (whit_rng_next(t->rng) & 1) x.data[whit_rng_below(t->rng, n)] = whit_rng_next(t->rng) & 1 ? NAN : -INFINITY;
    if (((whit_all_finite_fn *)t->row->function)(x.data, n) != t->generic->all_finite(x.data, n))
        fail_msg("%s: n %u", t->name, n);
    floats_free(&x);
}

/* ---- attention ------------------------------------------------------------------------------ */

static whit_kv_type cache_type(const trial *t)
{
    return strstr(t->row->op, "_f32")   ? WHIT_KV_F32
        : strstr(t->row->op, "_f16")    ? WHIT_KV_F16
        : strstr(t->row->op, "_i8")     ? WHIT_KV_I8
        : strstr(t->row->op, "_k2v2")   ? WHIT_KV_K2V2
        : strstr(t->row->op, "_bitmap") ? WHIT_KV_BITMAP
                                        : WHIT_KV_K4V2;
}

static uint32_t random_head_dim(whit_rng *rng)
{
    static const uint32_t dims[] = {8, 16, 32, 48, 64, 80, 96, 128, 256, 6, 100, 36};
    return dims[whit_rng_below(rng, sizeof dims / sizeof *dims)];
}

static void compare_kv_append(const trial *t)
{
    whit_kv_type kv = cache_type(t);
    uint32_t head_dim = random_head_dim(t->rng), slot = (uint32_t)whit_rng_below(t->rng, 64);
    uint32_t n = 1 + (uint32_t)whit_rng_below(t->rng, 64 - slot);
    size_t bytes = whit_kv_block_bytes(whit_kv_open_type(kv), head_dim), stride = head_dim + whit_rng_below(t->rng, 3);
    uint8_t *found = guarded_alloc(bytes, 0), *expected = guarded_alloc(bytes, 0);
    size_t elems = (n - 1) * stride + head_dim;
    guarded_floats keys = floats_random(t->rng, elems, random_mode(t->rng));
    guarded_floats values = floats_random(t->rng, elems, random_mode(t->rng));
    ((whit_kv_append_fn *)t->row->function)(found, slot, n, head_dim, keys.data, values.data, stride);
    whit_kv_append(t->generic, kv)(expected, slot, n, head_dim, keys.data, values.data, stride);
    if (memcmp(found, expected, bytes)) fail_msg("%s: head_dim %u, %u slots from %u", t->name, head_dim, n, slot);
    guarded_check(found, bytes);
    guarded_free(found, 0), guarded_free(expected, 0);
    floats_free(&keys), floats_free(&values);
}

static void compare_kv_query(const trial *t)
{
    whit_kv_type kv = cache_type(t);
    uint32_t head_dim = random_head_dim(t->rng), n = 1 + (uint32_t)whit_rng_below(t->rng, 5);
    size_t query_bytes = whit_kv_query_bytes(kv, head_dim), bytes = n * query_bytes;
    uint8_t *found = guarded_alloc(bytes, 0), *expected = guarded_alloc(bytes, 0);
    guarded_floats q = floats_random(t->rng, (size_t)n * head_dim, random_mode(t->rng));
    ((whit_kv_query_fn *)t->row->function)(q.data, head_dim, n, head_dim, found);
    whit_kv_query(t->generic, kv)(q.data, head_dim, n, head_dim, expected);
    if (memcmp(found, expected, bytes)) fail_msg("%s: head_dim %u", t->name, head_dim);
    guarded_check(found, bytes);
    guarded_free(found, 0), guarded_free(expected, 0);
    floats_free(&q);
}

/* Makes random spans of n queries within the first `most` positions of a group: either arbitrary spans, or those of
 * successive tokens of one sequence, whose end advances every few queries and, with a window, also their beginning. */
static void random_spans(const trial *t, uint32_t most, whit_kv_span *spans, uint32_t n)
{
    bool are_neighbours = whit_rng_next(t->rng) & 1, has_window = whit_rng_next(t->rng) & 1;
    uint32_t end = 1 + (uint32_t)whit_rng_below(t->rng, most), begin = (uint32_t)whit_rng_below(t->rng, end);
    uint32_t group = 1 + (uint32_t)whit_rng_below(t->rng, 8);
    for (uint32_t i = 0; i < n; i++) {
        if (are_neighbours) {
            uint32_t first = has_window ? begin + i / group : 0, last = end + i / group;
            spans[i] = (whit_kv_span){(uint16_t)(first < most ? first : most), (uint16_t)(last < most ? last : most)};
        } else {
            spans[i].begin = (uint16_t)(whit_rng_next(t->rng) & 1 ? 0 : whit_rng_below(t->rng, most));
            spans[i].end = (uint16_t)(whit_rng_next(t->rng) & 1 ? most : whit_rng_below(t->rng, most + 1));
        }
    }
}

/* Makes an open block with keys and values at positions [begin, end). The rest is NaN, since no query may read it. */
static uint8_t *random_block(const trial *t, whit_kv_type kv, uint32_t head_dim, uint32_t begin, uint32_t end,
                             input_mode key_mode, input_mode value_mode)
{
    const size_t bytes = whit_kv_block_bytes(whit_kv_open_type(kv), head_dim);
    uint8_t *block = guarded_alloc(bytes, 0);
    memset(block, 0x7E, bytes); /* NaN as f16 */
    for (uint32_t j = begin; j < end; j++) {
        guarded_floats key = floats_random(t->rng, head_dim, key_mode);
        guarded_floats value = floats_random(t->rng, head_dim, value_mode);
        whit_kv_append(t->generic, kv)(block, j, 1, head_dim, key.data, value.data, head_dim);
        floats_free(&key), floats_free(&value);
    }
    return block;
}

/* Chooses how keys are rotated when a block is packed: some or all dimensions, or none. */
static whit_kv_packing random_packing(const trial *t, uint32_t head_dim, guarded_floats *rope)
{
    double frequencies[WHIT_KV_MAX_HEAD_DIM / 2];
    uint32_t n_pairs = (uint32_t)whit_rng_below(t->rng, 3) ? head_dim / 2 : head_dim / 4;
    if (whit_rng_below(t->rng, 4) == 0) n_pairs = 0;
    *rope = floats_alloc((size_t)2 * n_pairs * WHIT_KV_BLOCK_TOKENS, whit_rng_below(t->rng, 16));
    whit_rope_frequencies(10000, n_pairs, NULL, frequencies);
    whit_kv_offset_table(frequencies, n_pairs, rope->data);
    return (whit_kv_packing){.rope = n_pairs ? rope->data : NULL, .rope_pairs = n_pairs};
}

/* Makes a closed block with random content; `sinks` may be NULL. */
static uint8_t *random_closed(const trial *t, whit_kv_type kv, uint32_t head_dim, const whit_kv_packing *how,
                              input_mode mode, uint8_t *sinks)
{
    uint8_t *open = random_block(t, kv, head_dim, 0, WHIT_KV_BLOCK_TOKENS,
                                 mode == INPUT_WIDE || mode == INPUT_EDGES ? INPUT_UNIFORM : mode, mode);
    uint8_t *closed = guarded_alloc(whit_kv_block_bytes(kv, head_dim), 0);
    whit_kv_pack(t->generic, kv)(open, head_dim, how, closed, sinks);
    guarded_free(open, 0);
    return closed;
}

/* Makes the blocks of a group with keys and values at positions [lowest, highest), and NaN or missing blocks elsewhere.
 * Of a packed type, the first n_closed blocks are closed, and block 0 may have attention sinks. */
static void random_group(const trial *t, whit_kv_type kv, uint32_t head_dim, uint32_t lowest, uint32_t highest,
                         uint32_t n_closed, whit_kv_group *group, guarded_floats *rope)
{
    input_mode mode = whit_rng_next(t->rng) & 1 ? INPUT_UNIFORM : random_mode(t->rng);
    const whit_kv_packing how = random_packing(t, head_dim, rope);
    *group = (whit_kv_group){.converted = guarded_alloc(whit_kv_converted_bytes(head_dim), 0),
                             .closed = (1u << n_closed) - 1,
                             .rope = how.rope,
                             .rope_pairs = how.rope_pairs};
    uint8_t *sinks = NULL;
    if (n_closed && whit_rng_next(t->rng) & 1) sinks = guarded_alloc(whit_kv_block_bytes(kv, head_dim), 0);
    for (uint32_t b = 0; b < WHIT_KV_GROUP_BLOCKS; b++) {
        uint32_t first = b * WHIT_KV_BLOCK_TOKENS, end = first + WHIT_KV_BLOCK_TOKENS;
        if ((lowest >= end || highest <= first) && !(b == 0 && sinks)) continue;
        group->blocks[b] = b < n_closed ? random_closed(t, kv, head_dim, &how, mode, b == 0 ? sinks : NULL)
                                        : random_block(t, kv, head_dim, lowest > first ? lowest - first : 0,
                                                       highest < end ? highest - first : 64, INPUT_UNIFORM, mode);
    }
    group->sinks = sinks;
}

static void free_group(whit_kv_type kv, uint32_t head_dim, whit_kv_group *group)
{
    guarded_check(group->converted, whit_kv_converted_bytes(head_dim));
    guarded_free(group->converted, 0);
    for (uint32_t b = 0; b < WHIT_KV_GROUP_BLOCKS; b++) {
        if (!group->blocks[b]) continue;
        uint8_t *block = (uint8_t *)(uintptr_t)group->blocks[b];
        const bool is_closed = group->closed >> b & 1;
        guarded_check(block, whit_kv_block_bytes(is_closed ? kv : whit_kv_open_type(kv), head_dim));
        guarded_free(block, 0);
    }
    if (group->sinks) guarded_free((uint8_t *)(uintptr_t)group->sinks, 0);
}

static void compare_kv_pack(const trial *t)
{
    const whit_kv_type kv = cache_type(t);
    const uint32_t head_dim = random_head_dim(t->rng);
    const size_t bytes = whit_kv_block_bytes(kv, head_dim);
    guarded_floats rope;
    const whit_kv_packing how = random_packing(t, head_dim, &rope);
    const input_mode mode = random_mode(t->rng);
    uint8_t *open = random_block(t, kv, head_dim, 0, WHIT_KV_BLOCK_TOKENS, mode, random_mode(t->rng));
    uint8_t *found = guarded_alloc(2 * bytes, 0), *expected = guarded_alloc(2 * bytes, 0);
    memset(found, 0, 2 * bytes), memset(expected, 0, 2 * bytes);
    const bool has_sinks = whit_rng_next(t->rng) & 1;
    ((whit_kv_pack_fn *)t->row->function)(open, head_dim, &how, found, has_sinks ? found + bytes : NULL);
    whit_kv_pack(t->generic, kv)(open, head_dim, &how, expected, has_sinks ? expected + bytes : NULL);
    guarded_check(found, 2 * bytes);
    if (memcmp(found, expected, 2 * bytes)) fail_msg("%s: head_dim %u, mode %d", t->name, head_dim, (int)mode);
    guarded_free(open, 0), guarded_free(found, 0), guarded_free(expected, 0);
    floats_free(&rope);
}

static void compare_kv_attend(const trial *t)
{
    whit_kv_type kv = cache_type(t);
    enum { MOST = 150 };
    uint32_t head_dim = random_head_dim(t->rng);
    uint32_t n = 1 + (uint32_t)whit_rng_below(t->rng, whit_rng_next(t->rng) & 1 ? 20 : MOST);
    size_t query_bytes = n * whit_kv_query_bytes(kv, head_dim);
    uint8_t *queries = guarded_alloc(query_bytes, 0);
    whit_kv_span spans[MOST];
    whit_kv_group group;
    uint32_t lowest = WHIT_KV_GROUP_TOKENS, highest = 0;
    random_spans(t, WHIT_KV_BLOCK_TOKENS * (1 + (uint32_t)whit_rng_below(t->rng, WHIT_KV_GROUP_BLOCKS)), spans, n);
    for (uint32_t i = 0; i < n; i++) {
        if (spans[i].begin < lowest) lowest = spans[i].begin;
        if (spans[i].end > highest) highest = spans[i].end;
    }
    const uint32_t n_closed = whit_kv_is_packed(kv) ? (uint32_t)whit_rng_below(t->rng, 5) : 0;
    guarded_floats rope;
    random_group(t, kv, head_dim, lowest, highest, n_closed, &group, &rope);
    guarded_floats q = floats_random(t->rng, (size_t)n * head_dim, random_mode(t->rng));
    whit_kv_query(t->generic, kv)(q.data, head_dim, n, head_dim, queries);
    size_t elems = whit_kv_partial_elems(head_dim);
    guarded_floats found = floats_alloc(n * elems, 0), expected = floats_alloc(n * elems, 0);
    float scale = 0.01f + (float)whit_rng_uniform(t->rng);
    whit_kv_attend_fn *attend = (whit_kv_attend_fn *)t->row->function;
    attend(&group, NULL, queries, spans, n, head_dim, scale, found.data, NULL);
    whit_kv_attend(t->generic, kv)(&group, NULL, queries, spans, n, head_dim, scale, expected.data, NULL);
    for (uint32_t i = 0; i < n; i++) {
        bool seen = expected.data[i * elems + head_dim + 1] != 0;
        size_t from = i * elems + (seen ? 0 : head_dim + 1), count = seen ? head_dim + 2 : 1;
        assert_same_floats(found.data + from, expected.data + from, count, t->name, "partial");
    }
    /* merge into earlier partial results, some of them empty; with valid, invalid or no cache of converted blocks */
    void *converted = group.converted;
    if (whit_rng_next(t->rng) & 1) group.valid = 0;
    if (whit_rng_below(t->rng, 4) == 0) group.converted = NULL;
    uint32_t n_scratch = n < WHIT_KV_PASS_QUERIES ? n : WHIT_KV_PASS_QUERIES;
    guarded_floats into = floats_random(t->rng, n * elems, INPUT_UNIFORM), scratch = floats_alloc(n_scratch * elems, 0);
    for (uint32_t i = 0; i < n; i++) into.data[i * elems + head_dim + 1] = (float)whit_rng_below(t->rng, 3);
    guarded_floats merged = floats_copy(&into);
    attend(&group, NULL, queries, spans, n, head_dim, scale, scratch.data, into.data);
    group.converted = converted;
    t->generic->kv_merge(merged.data, expected.data, n, head_dim);
    for (uint32_t i = 0; i < n; i++)
        assert_same_floats(into.data + i * elems, merged.data + i * elems, head_dim + 2, t->name, "merged");
    free_group(kv, head_dim, &group);
    floats_free(&rope);
    guarded_free(queries, 0);
    floats_free(&q), floats_free(&found), floats_free(&expected);
    floats_free(&into), floats_free(&merged), floats_free(&scratch);
}

static void compare_kv_merge(const trial *t)
{
    uint32_t head_dim = random_head_dim(t->rng), n = 1 + (uint32_t)whit_rng_below(t->rng, 4);
    size_t elems = whit_kv_partial_elems(head_dim);
    guarded_floats into = floats_random(t->rng, n * elems, random_mode(t->rng));
    guarded_floats from = floats_random(t->rng, n * elems, random_mode(t->rng));
    for (uint32_t i = 0; i < n; i++) {
        into.data[i * elems + head_dim + 1] = (float)whit_rng_below(t->rng, 3);
        from.data[i * elems + head_dim + 1] = (float)whit_rng_below(t->rng, 3);
    }
    guarded_floats expected = floats_copy(&into);
    ((whit_kv_merge_fn *)t->row->function)(into.data, from.data, n, head_dim);
    t->generic->kv_merge(expected.data, from.data, n, head_dim);
    for (uint32_t i = 0; i < n; i++)
        assert_same_floats(into.data + i * elems, expected.data + i * elems, head_dim + 2, t->name, "merged");
    floats_free(&into), floats_free(&from), floats_free(&expected);
}

static void compare_kv_finish(const trial *t)
{
    uint32_t head_dim = random_head_dim(t->rng);
    guarded_floats partial = floats_random(t->rng, head_dim + 2, random_mode(t->rng));
    guarded_floats out = floats_alloc(head_dim, whit_rng_below(t->rng, 16)), expected = floats_copy(&out);
    ((whit_kv_finish_fn *)t->row->function)(partial.data, head_dim, out.data);
    whit_kv_finish_fn *finish = strstr(t->row->op, "packed") ? t->generic->kv_finish_packed : t->generic->kv_finish;
    finish(partial.data, head_dim, expected.data);
    assert_same_floats(out.data, expected.data, head_dim, t->name, "out");
    floats_free(&partial), floats_free(&out), floats_free(&expected);
}

/* ---- the screened head ---------------------------------------------------------------------- */

typedef struct head_case {
    test_matrix matrix;
    uint8_t *memory;
    whit_acts acts;
    uint32_t n_tiles;
} head_case;

static void head_open(const trial *t, uint32_t n_tokens, head_case *head)
{
    bool per_row = whit_rng_next(t->rng) & 1, is_f16 = whit_rng_next(t->rng) & 1;
    whit_tensor_type type = type_of(WHIT_CODEC_I8S, per_row ? WHIT_SCALE_ROW : WHIT_SCALE_TENSOR,
                                    per_row && is_f16 ? WHIT_SCALE_F16 : WHIT_SCALE_F32, 0, false,
                                    1 + (uint32_t)whit_rng_below(t->rng, 200), random_size(t->rng, 700));
    type.act = whit_rng_next(t->rng) & 1 ? WHIT_TENSOR_ACT_TOKEN : WHIT_TENSOR_ACT_AUTO;
    matrix_random(&head->matrix, &type, t->rng, whit_rng_next(t->rng) & 1);
    whit_acts_spec spec = whit_acts_spec_for(&type, WHIT_ACT_I8);
    head->memory = guarded_alloc(whit_acts_bytes(&spec, n_tokens, type.n_cols), 0);
    head->acts = whit_acts_place(&spec, n_tokens, type.n_cols, head->memory);
    guarded_floats x = floats_random(t->rng, n_tokens * type.n_cols, random_mode(t->rng));
    t->generic->quantise(x.data, type.n_cols, &head->acts, 0, n_tokens);
    floats_free(&x);
    head->n_tiles = (type.n_rows + 15) / 16;
}

static void head_close(head_case *head)
{
    matrix_free(&head->matrix);
    guarded_free(head->memory, 0);
}

static void compare_screen(const trial *t)
{
    head_case head;
    head_open(t, 1 + (uint32_t)whit_rng_below(t->rng, whit_rng_below(t->rng, 4) ? 9 : 40), &head);
    uint32_t n_rows = head.matrix.tensor.type.n_rows, middle = (uint32_t)whit_rng_below(t->rng, head.n_tiles + 1);
    size_t stride = n_rows + whit_rng_below(t->rng, 20);
    guarded_floats found = floats_alloc((head.acts.n_tokens - 1) * stride + n_rows, whit_rng_below(t->rng, 16)),
                   expected = floats_copy(&found);
    whit_screen_fn *screen = (whit_screen_fn *)t->row->function;
    screen(&head.matrix.tensor, &head.acts, 0, middle, found.data, stride);
    screen(&head.matrix.tensor, &head.acts, middle, head.n_tiles, found.data, stride);
    t->generic->screen(&head.matrix.tensor, &head.acts, 0, head.n_tiles, expected.data, stride);
    assert_same_floats(found.data, expected.data, found.n, t->name, "logits");
    floats_free(&found), floats_free(&expected);
    head_close(&head);
}

static void compare_rescore(const trial *t)
{
    head_case head;
    head_open(t, 2, &head);
    uint32_t rows[64], n = 1 + (uint32_t)whit_rng_below(t->rng, 64);
    for (uint32_t i = 0; i < n; i++) rows[i] = (uint32_t)whit_rng_below(t->rng, head.matrix.tensor.type.n_rows);
    guarded_floats found = floats_alloc(n, whit_rng_below(t->rng, 16)), expected = floats_copy(&found);
    ((whit_rescore_fn *)t->row->function)(&head.matrix.tensor, &head.acts, 1, rows, n, found.data);
    t->generic->rescore(&head.matrix.tensor, &head.acts, 1, rows, n, expected.data);
    assert_same_floats(found.data, expected.data, n, t->name, "logits");
    floats_free(&found), floats_free(&expected);
    head_close(&head);
}

static void compare_survive(const trial *t)
{
    head_case head;
    head_open(t, 2, &head);
    uint32_t n_rows = head.matrix.tensor.type.n_rows, found[208], expected[208];
    memset(found, CANARY, sizeof found);
    guarded_floats logits = floats_random(t->rng, n_rows, random_mode(t->rng));
    if (whit_rng_below(t->rng, 4) == 0) logits.data[whit_rng_below(t->rng, n_rows)] = NAN;
    float bound = (float)whit_rng_uniform(t->rng) * 4, threshold = input_value(t->rng, INPUT_UNIFORM) * 2;
    const whit_tensor *w = &head.matrix.tensor;
    uint32_t n = ((whit_survive_fn *)t->row->function)(w, logits.data, bound, threshold, found);
    uint32_t n_generic = t->generic->survive(w, logits.data, bound, threshold, expected);
    if (n != n_generic || memcmp(found, expected, n * 4)) fail_msg("%s: %u rows for %u", t->name, n, n_generic);
    floats_free(&logits);
    head_close(&head);
}

static void compare_best_rows(const trial *t)
{
    uint32_t n = random_size(t->rng, 3000), n_best = 1 + (uint32_t)whit_rng_below(t->rng, n < 1024 ? n : 1024);
    guarded_floats logits = floats_random(t->rng, n, random_mode(t->rng));
    uint32_t found[1024], expected[1024];
    ((whit_best_rows_fn *)t->row->function)(logits.data, n, n_best, found);
    t->generic->best_rows(logits.data, n, n_best, expected);
    if (memcmp(found, expected, n_best * sizeof *found)) fail_msg("%s: %u of %u", t->name, n_best, n);
    floats_free(&logits);
}

/* ---- adapters ------------------------------------------------------------------------------- */

static void compare_low_rank(const trial *t)
{
    uint32_t n_rows = 1 + (uint32_t)whit_rng_below(t->rng, 100), rank = random_size(t->rng, 300);
    uint32_t n_tokens = 1 + (uint32_t)whit_rng_below(t->rng, 6), n_tiles = (n_rows + 15) / 16;
    size_t low_stride = rank + whit_rng_below(t->rng, 5), y_stride = n_rows + whit_rng_below(t->rng, 20);
    whit_tensor_type type = type_of(WHIT_CODEC_I8, WHIT_SCALE_ROW, WHIT_SCALE_F32, 0, false, n_rows, rank);
    test_matrix b;
    matrix_random(&b, &type, t->rng, whit_rng_next(t->rng) & 1);
    guarded_floats low = floats_random(t->rng, n_tokens * low_stride, random_mode(t->rng));
    guarded_floats y = floats_random(t->rng, n_tokens * y_stride, random_mode(t->rng)), expected = floats_copy(&y);
    if (whit_rng_below(t->rng, 8) == 0) low.data[whit_rng_below(t->rng, low.n)] = NAN;
    uint32_t middle = (uint32_t)whit_rng_below(t->rng, n_tiles + 1);
    whit_low_rank_fn *low_rank = (whit_low_rank_fn *)t->row->function;
    low_rank(&b.tensor, low.data, low_stride, n_tokens, 0, middle, y.data, y_stride);
    low_rank(&b.tensor, low.data, low_stride, n_tokens, middle, n_tiles, y.data, y_stride);
    t->generic->low_rank(&b.tensor, low.data, low_stride, n_tokens, 0, n_tiles, expected.data, y_stride);
    assert_same_floats(y.data, expected.data, y.n, t->name, "y");
    matrix_free(&b);
    floats_free(&low), floats_free(&y), floats_free(&expected);
}

/* ---- corrections ---------------------------------------------------------------------------- */

/* Outliers of a tensor: a few per row and none in some rows, or in every second trial arbitrary bytes after the
 * header. */
static void compare_outliers(const trial *t)
{
    uint32_t n_rows = 1 + (uint32_t)whit_rng_below(t->rng, 100), n_cols = random_size(t->rng, 1500);
    uint32_t n_tokens = 1 + (uint32_t)whit_rng_below(t->rng, 20), n_tiles = (n_rows + 15) / 16;
    size_t y_stride = n_rows + whit_rng_below(t->rng, 20);
    whit_tensor_type type = type_of(WHIT_CODEC_B1, WHIT_SCALE_GROUP, WHIT_SCALE_F16, 128, false, n_rows, n_cols);
    type.act = whit_rng_next(t->rng) & 1 ? WHIT_TENSOR_ACT_TOKEN : WHIT_TENSOR_ACT_AUTO;
    test_matrix w;
    whit_error error;
    matrix_random(&w, &type, t->rng, false);
    whit_buf part = {0};
    outliers_random(&type, 4, t->rng, &part);
    uint64_t head = whit_outliers_head_bytes(n_tiles);
    for (uint64_t i = head; (whit_rng_next(t->rng) & 1) && i < part.size_bytes; i++)
        part.data[i] = (uint8_t)whit_rng_next(t->rng);
    if (whit_rng_below(t->rng, 4) == 0) /* in some trials the tiles' offsets are arbitrary, too, except the last one */
        for (uint64_t i = 0; i < 4 * (uint64_t)n_tiles; i++)
            if (whit_rng_next(t->rng) & 1) part.data[i] = (uint8_t)whit_rng_next(t->rng);
    w.part[WHIT_PART_OUTLIERS] = guarded_alloc(part.size_bytes, 0);
    memcpy(w.part[WHIT_PART_OUTLIERS], part.data, part.size_bytes);
    w.tensor.part[WHIT_PART_OUTLIERS] = w.part[WHIT_PART_OUTLIERS];
    w.tensor.part_bytes[WHIT_PART_OUTLIERS] = part.size_bytes;
    assert_ok(whit_tensor_check(&w.tensor, &error), error);
    for (int act = 0; act < 3; act++) {
        static const whit_act_type acts_types[] = {WHIT_ACT_F32, WHIT_ACT_I8, WHIT_ACT_Q2};
        whit_acts_spec spec = whit_acts_spec_for(&type, acts_types[act]);
        guarded_floats x = floats_random(t->rng, (size_t)n_tokens * n_cols, random_mode(t->rng));
        uint8_t *memory = guarded_alloc(whit_acts_bytes(&spec, n_tokens, n_cols), 0);
        whit_acts acts = spec.kind == WHIT_ACTS_F32 ? whit_acts_of_f32(x.data, n_cols, n_tokens, n_cols)
                                                    : whit_acts_place(&spec, n_tokens, n_cols, memory);
        t->generic->quantise(x.data, n_cols, &acts, 0, n_tokens);
        guarded_floats y = floats_random(t->rng, n_tokens * y_stride, random_mode(t->rng)), expected = floats_copy(&y);
        uint32_t middle = (uint32_t)whit_rng_below(t->rng, n_tiles + 1);
        size_t stride = (n_cols + 1 + 15) / 16 * 16, code_bytes = n_tokens * stride * sizeof(int16_t);
        float scales[20];
        uint8_t *code_memory = guarded_alloc(code_bytes, 0);
        whit_outlier_acts codes = {n_tokens, stride, (int16_t *)(void *)code_memory, scales};
        t->generic->outlier_codes(&acts, &codes);
        if (!strcmp(t->row->op, "outlier_codes")) {
            float found_scales[20];
            uint8_t *found_memory = guarded_alloc(code_bytes, 0);
            whit_outlier_acts found = {n_tokens, stride, (int16_t *)(void *)found_memory, found_scales};
            ((whit_outlier_codes_fn *)t->row->function)(&acts, &found);
            assert_memory_equal(found.codes, codes.codes, code_bytes);
            assert_same_floats(found_scales, scales, n_tokens, t->name, "scales");
            guarded_check(found_memory, code_bytes);
            guarded_free(found_memory, 0);
        } else {
            whit_outliers_fn *outliers = (whit_outliers_fn *)t->row->function;
            outliers(&w.tensor, &codes, 0, middle, y.data, y_stride);
            outliers(&w.tensor, &codes, middle, n_tiles, y.data, y_stride);
            t->generic->outliers(&w.tensor, &codes, 0, n_tiles, expected.data, y_stride);
            assert_same_floats(y.data, expected.data, y.n, t->name, "y");
        }
        guarded_free(code_memory, 0);
        floats_free(&x), floats_free(&y), floats_free(&expected);
        guarded_free(memory, 0);
    }
    whit_buf_free(&part);
    matrix_free(&w);
}

static void compare_probe_read(const trial *t)
{
    size_t bytes = 64 * (1 + whit_rng_below(t->rng, 100));
    uint8_t *memory = guarded_alloc(bytes, 0);
    for (size_t i = 0; i < bytes; i++) memory[i] = (uint8_t)whit_rng_next(t->rng);
    if (((whit_probe_read_fn *)t->row->function)(memory, bytes) != t->generic->probe_read(memory, bytes))
        fail_msg("%s: %zu bytes", t->name, bytes);
    guarded_free(memory, 0);
}

static void compare_probe_int8(const trial *t)
{
    uint8_t *w = guarded_alloc(WHIT_PROBE_BYTES, 0), *x = guarded_alloc(WHIT_PROBE_BYTES, 0);
    for (size_t i = 0; i < WHIT_PROBE_BYTES; i++) {
        w[i] = (uint8_t)whit_rng_below(t->rng, 4);
        x[i] = (uint8_t)whit_rng_next(t->rng);
    }
    uint32_t n_rounds = 1 + (uint32_t)whit_rng_below(t->rng, 3);
    if (((whit_probe_int8_fn *)t->row->function)(w, (int8_t *)x, n_rounds) !=
        t->generic->probe_int8(w, (int8_t *)x, n_rounds))
        fail_msg("%s: %u rounds", t->name, n_rounds);
    guarded_free(w, 0);
    guarded_free(x, 0);
}

/* ---- running all of kernels.inc ------------------------------------------------------------- */

static const struct {
    const char *prefix;
    void (*compare)(const trial *);
} comparers[] = {
    {"quantise", compare_quantise},
    {"rms_norm", compare_rms_norm},
    {"causal_conv", compare_causal_conv},
    {"delta_apply", compare_delta_apply},
    {"delta_step", compare_delta_step},
    {"norm_acts", compare_norm_acts},
    {"rope", compare_rope},
    {"silu", compare_gate},
    {"relu2", compare_gate},
    {"gelu", compare_gate},
    {"sigmoid", compare_gate},
    {"product", compare_gate},
    {"swish1_mul", compare_gate},
    {"weighted_add", compare_weighted_add},
    {"add", compare_add},
    {"scale", compare_scale},
    {"softcap", compare_softcap},
    {"fix_scale", compare_fix_scale},
    {"layer_norm", compare_layer_norm},
    {"activate", compare_activate},
    {"argmax", compare_argmax},
    {"all_finite", compare_all_finite},
    {"kv_append", compare_kv_append},
    {"kv_query", compare_kv_query},
    {"kv_pack", compare_kv_pack},
    {"kv_attend", compare_kv_attend},
    {"kv_merge", compare_kv_merge},
    {"kv_finish", compare_kv_finish},
    {"screen", compare_screen},
    {"rescore", compare_rescore},
    {"survive", compare_survive},
    {"best_rows", compare_best_rows},
    {"low_rank", compare_low_rank},
    {"outlier_codes", compare_outliers},
    {"outliers", compare_outliers},
    {"hadamard_row", compare_hadamard},
    {"probe_read", compare_probe_read},
    {"probe_int8", compare_probe_int8},
};

static void every_kernel_equals_generic(void **state)
{
    (void)state;
    whit_rng rng = {test_seed()};
    whit_kernels generic, machine;
    both_levels(&generic, &machine);
    size_t n_rows;
    const whit_kernel_row *rows = whit_kernel_rows(&n_rows);
    for (size_t i = 0; i < n_rows; i++) {
        trial t = {.rng = &rng, .generic = &generic, .row = &rows[i]};
        snprintf(t.name, sizeof t.name, "%s_%s", rows[i].op, whit_isa_name(rows[i].isa));
        bool compared = false;
        for (size_t j = 0; j < sizeof comparers / sizeof *comparers; j++) {
            if (strncmp(rows[i].op, comparers[j].prefix, strlen(comparers[j].prefix))) continue;
            compared = true;
            if (!whit_kernel_runs(&machine, rows[i].isa, rows[i].features)) {
                print_message("%s does not run here\n", t.name);
                continue;
            }
            for (int round = 0; round < (rows[i].isa && !tests_are_brief() ? ROUNDS : 4); round++)
                comparers[j].compare(&t);
        }
        if (!compared) fail_msg("no comparison for %s", t.name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kernel_equals_generic)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
