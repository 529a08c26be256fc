/* SPDX-License-Identifier: MIT
 * Compares the generic kernels with simple sums in double precision or in wide integers. */
#include <float.h>
#include <math.h>

#include "base/fpenv.h"
#include "kernels/kernels.h"
#include "kernels/math.h"
#include "kernels/matrix.h"

static whit_kernels generic_kernels(void)
{
    whit_cpu cpu;
    whit_kernels kernels;
    whit_error error;
    whit_cpu_detect(&cpu);
    assert_ok(whit_kernels_select(&cpu, "generic", &kernels, &error), error);
    return kernels;
}

static float *random_floats(whit_rng *rng, size_t n, float size)
{
    float *x = calloc(n ? n : 1, sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = (float)(whit_rng_uniform(rng) * 2 - 1) * size;
    return x;
}

/* Asserts that |found - expected| <= relative * size, where `size` is the sum of the magnitudes of all terms. */
static void assert_near(double found, double expected, double size, double relative, const char *what)
{
    if (!(fabs(found - expected) <= relative * size + 1e-30))
        fail_msg("%s: %.9g for %.9g (size %.3g)", what, found, expected, size);
}

/* ---- elementary functions ------------------------------------------------------------------- */

/* Returns the sine or cosine of an angle below 2^22. Windows' C library reduces angles by a pi of 66 bits, which is
 * wrong by 2e-14 at 2e6; here pi / 2 is a sum of parts whose multiples are exact in long double. */
static double exact_sine(double angle, bool is_cosine)
{
    const long double part[] = {0x1.921fb544p+0L, 0x1.0b4611a6p-34L, 0x1.3198a2e037073p-69L};
    long double quarters = rintl(angle / (part[0] + part[1])), rest = angle;
    for (int i = 0; i < 3; i++) rest -= quarters * part[i];
    const unsigned quarter = (unsigned)((long)quarters + is_cosine) & 3;
    const long double size = quarter & 1 ? cosl(rest) : sinl(rest);
    return (double)(quarter & 2 ? -size : size);
}

static void elementary_functions(void **state)
{
    (void)state;
    whit_rng rng = {test_seed()};
    for (int i = 0; i < 200000; i++) {
        float x = (float)(whit_rng_uniform(&rng) * 175 - 87);
        double exact = exp((double)x);
        assert_near(whit_exp_f32(x), exact, exact, 1.2e-7, "exp_f32");
        float power = (float)(whit_rng_uniform(&rng) * -126);
        assert_near(whit_exp2_below_0_f32(power), exp2((double)power), exp2((double)power), 2.1e-7, "exp2_below_0_f32");
        float t = (float)(whit_rng_uniform(&rng) * 4 - 2);
        assert_near(whit_tanh_f32(t), tanh((double)t), fabs(tanh((double)t)), 3e-7, "tanh_f32");
        double angle = (whit_rng_uniform(&rng) - 0.5) * 4e6, s, c;
        if (i % 8 == 0) { /* only every eighth, since emulated long double is slow */
            whit_sincos_f64(angle, &s, &c);
            assert_near(s, exact_sine(angle, false), 1, 2e-15, "sin");
            assert_near(c, exact_sine(angle, true), 1, 2e-15, "cos");
        }
        double y = whit_rng_uniform(&rng) * 1400 - 700;
        assert_near(whit_exp_f64(y), exp(y), exp(y), 1e-15, "exp_f64");
        double z = exp(y);
        assert_near(whit_log_f64(z), log(z), 1 + fabs(log(z)), 3e-16, "log_f64");
        assert_near(whit_pow_f64(1e4, -whit_rng_uniform(&rng)), 1, 1, 1, "pow is at most 1");
    }
    assert_true(whit_exp_f32(0) == 1 && whit_exp_f32(-0.0f) == 1);
    assert_true(whit_exp_f32(-87.01f) == 0 && whit_exp_f32(-INFINITY) == 0);
    assert_true(whit_exp2_below_0_f32(0) == 1 && whit_exp2_below_0_f32(-0.0f) == 1 &&
                whit_exp2_below_0_f32(-5) == 0x1p-5f);
    assert_true(whit_exp2_below_0_f32(-126) == 0x1p-126f && whit_exp2_below_0_f32(-126.01f) == 0);
    assert_true(whit_exp2_below_0_f32(-INFINITY) == 0 && isnan(whit_exp2_below_0_f32(NAN)));
    assert_near(whit_exp2_below_0_f32(-1e-10f), 1, 1, 1.8e-7, "exp2 just below 0");
    assert_true(whit_exp_f32(INFINITY) == whit_exp_f32(88) && isfinite(whit_exp_f32(1e30f)));
    assert_true(isnan(whit_exp_f32(NAN)) && isnan(whit_tanh_f32(NAN)));
    assert_true(whit_tanh_f32(100) == 1 && whit_tanh_f32(-100) == -1);
    assert_true(isinf(whit_log_f64(0)) && isnan(whit_log_f64(-1)));
    assert_true(whit_exp_f64(1000) == (double)INFINITY && whit_exp_f64(-1000) == 0);
    assert_near(whit_log_f64(0x1p-1070), -1070 * log(2), 1000, 1e-15, "log of a subnormal");
    assert_near(whit_pow_f64(500000, -0.25), pow(500000, -0.25), 1, 1e-15, "pow");
    for (int32_t i = -300; i < 300; i++) {
        assert_int_equal(whit_round_i32((float)i), i);
        assert_int_equal(whit_round_i32((float)i + 0.5f), i + (i & 1));
    }
}

/* ---- activations ---------------------------------------------------------------------------- */

static void quantised_activations(void **state)
{
    (void)state;
    whit_rng rng = {test_seed()};
    whit_kernels kernels = generic_kernels();
    static const whit_acts_spec specs[] = {{WHIT_ACTS_I8, 0, 0},   {WHIT_ACTS_I8, 0, 64},    {WHIT_ACTS_I8, 32, 32},
                                           {WHIT_ACTS_I8, 32, 16}, {WHIT_ACTS_I8, 128, 128}, {WHIT_ACTS_Q2, 64, 64}};
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
        for (uint32_t n = 1; n < 400; n += 37) {
            size_t bytes = whit_acts_bytes(&specs[s], 3, n);
            uint8_t *memory = guarded_alloc(bytes, 0);
            whit_acts acts = whit_acts_place(&specs[s], 3, n, memory);
            float *x = random_floats(&rng, 3 * (n + 5), 3.0f);
            kernels.quantise(x, n + 5, &acts, 0, 3);
            guarded_check(memory, bytes);
            for (uint32_t t = 0; t < 3; t++)
                for (uint32_t step = 0; step < acts.n_steps; step++) {
                    int64_t sum = 0;
                    float scale = acts.scales[t * acts.n_steps + step];
                    uint32_t begin = whit_acts_step_begin(&acts, step), end = whit_acts_step_end(&acts, step);
                    for (uint32_t k = begin; k < end; k++) {
                        float value = x[t * (n + 5) + k];
                        if (specs[s].kind == WHIT_ACTS_I8) {
                            int8_t q = acts.i8[t * acts.stride + k];
                            sum += q;
                            assert_near(q * (double)scale, value, scale, 0.50001, "i8 code");
                        } else {
                            const uint8_t *signs = acts.planes + 2 * t * acts.stride;
                            unsigned byte = k / 32 * 4 + k % 4, bit = k % 32 / 4;
                            int sign = signs[byte] >> bit & 1, extra = signs[acts.stride + byte] >> bit & 1;
                            int q = (3 * (2 * sign - 1) + (2 * extra - 1)) / 2; /* formula of layouts.md */
                            sum += q;
                            assert_true(sign == (value >= 0) && abs(q) == (fabsf(value) > 1.5f * scale ? 2 : 1));
                        }
                    }
                    assert_int_equal(sum, acts.sums[t * acts.n_steps + step]);
                }
            free(x);
            guarded_free(memory, 0);
        }
}

/* Ties are rounded to even, W1.58A8 has a smallest divisor, and inputs that are not finite stay so. */
static void quantise_edges(void **state)
{
    (void)state;
    whit_kernels kernels = generic_kernels();
    uint8_t memory[512] __attribute__((aligned(64)));
    whit_acts_spec token = {WHIT_ACTS_I8, 0, 0}, group = {WHIT_ACTS_I8, 32, 32};
    float x[8] = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -127, 126.5f};
    whit_acts acts = whit_acts_place(&token, 1, 8, memory);
    kernels.quantise(x, 8, &acts, 0, 1);
    static const int8_t expected[8] = {127, 0, 2, 2, 0, -2, -127, 126};
    assert_memory_equal(acts.i8, expected, 8);
    assert_true(acts.scales[0] == 1 && acts.sums[0] == 128);

    float zeros[8] = {0};
    kernels.quantise(zeros, 8, &acts, 0, 1);
    assert_true(acts.scales[0] == 1e-5f / 127.0f && acts.sums[0] == 0);
    acts = whit_acts_place(&group, 1, 8, memory);
    kernels.quantise(zeros, 8, &acts, 0, 1);
    assert_true(acts.scales[0] == 0 && acts.sums[0] == 0);
    zeros[3] = NAN;
    kernels.quantise(zeros, 8, &acts, 0, 1);
    assert_true(isnan(acts.scales[0]) && acts.sums[0] == 0);
    zeros[3] = -INFINITY;
    kernels.quantise(zeros, 8, &acts, 0, 1);
    assert_true(isinf(acts.scales[0]) && acts.sums[0] == 0);
}

/* ---- matrix products ------------------------------------------------------------------------ */

typedef struct product_case {
    whit_rng rng;
    whit_kernels kernels;
    bool extreme;
    uint32_t n_tokens;
} product_case;

/* Returns the value of the quantised activation, as the kernel uses it. */
static double seen_activation(const whit_acts *x, uint32_t t, uint32_t k)
{
    if (x->spec.kind == WHIT_ACTS_F32) return (double)x->f32[t * x->stride + k];
    double scale = (double)x->scales[t * x->n_steps + (x->spec.step ? k / x->spec.step : 0)];
    if (x->spec.kind == WHIT_ACTS_I8) return scale * x->i8[t * x->stride + k];
    const uint8_t *signs = x->planes + 2 * t * x->stride;
    unsigned byte = k / 32 * 4 + k % 4, bit = k % 32 / 4;
    int sign = signs[byte] >> bit & 1, extra = signs[x->stride + byte] >> bit & 1;
    return scale * ((3 * (2 * sign - 1) + (2 * extra - 1)) / 2);
}

static void check_product(product_case *c, const test_matrix *matrix, const whit_acts_spec *spec)
{
    const whit_tensor_type *type = &matrix->tensor.type;
    uint32_t n = type->n_cols, n_rows = type->n_rows, n_tokens = c->n_tokens;
    float *x = random_floats(&c->rng, (size_t)n_tokens * n, c->extreme ? 1e3f : 1.0f);
    if (c->extreme)
        for (size_t i = 0; i < (size_t)n_tokens * n; i++) x[i] = x[i] < 0 ? -1e3f : 1e3f;
    size_t bytes = whit_acts_bytes(spec, n_tokens, n);
    uint8_t *memory = guarded_alloc(bytes, 0);
    whit_acts acts =
        spec->kind == WHIT_ACTS_F32 ? whit_acts_of_f32(x, n, n_tokens, n) : whit_acts_place(spec, n_tokens, n, memory);
    if (spec->kind != WHIT_ACTS_F32) c->kernels.quantise(x, n, &acts, 0, n_tokens);

    const whit_matmul_kernel *kernel = whit_matmul_find(&c->kernels, type, spec, n_tokens);
    assert_non_null(kernel);
    size_t scratch_bytes = kernel->scratch_bytes(type, spec, n_tokens), y_stride = n_rows + 3;
    uint8_t *scratch = guarded_alloc(scratch_bytes, 0);
    float *y = calloc((size_t)n_tokens * y_stride, sizeof *y);
    uint32_t n_tiles = (n_rows + 15) / 16, middle = n_tiles / 2;
    whit_matmul_prepare(kernel, &acts, scratch);
    kernel->run(&matrix->tensor, &acts, 0, middle, y, y_stride, scratch);
    kernel->run(&matrix->tensor, &acts, middle, n_tiles, y, y_stride, scratch);
    guarded_check(scratch, scratch_bytes);
    for (uint32_t t = 0; t < n_tokens; t++) {
        for (uint32_t row = 0; row < n_rows; row++) {
            double sum = 0, size = 0;
            for (uint32_t k = 0; k < n; k++) {
                double act = seen_activation(&acts, t, k), term = (double)content_value(matrix, row, k) * act;
                sum += term;
                size += fabs(term) + fabs((double)content_offset(matrix, row, k) * act);
            }
            assert_near(y[t * y_stride + row], sum, size * 3 + 1e-6, 4e-6, kernel->name);
        }
        for (uint32_t row = n_rows; row < y_stride; row++) assert_true(y[t * y_stride + row] == 0);
    }
    free(y);
    free(x);
    guarded_free(scratch, 0);
    guarded_free(memory, 0);
}

static void product_of_type(const whit_tensor_type *type, void *user)
{
    product_case *c = user;
    test_matrix matrix;
    matrix_random(&matrix, type, &c->rng, c->extreme);
    whit_acts_spec f32 = whit_acts_spec_for(type, WHIT_ACT_F32), i8 = whit_acts_spec_for(type, WHIT_ACT_I8);
    check_product(c, &matrix, &f32);
    if (i8.kind == WHIT_ACTS_I8) {
        check_product(c, &matrix, &i8);
        whit_tensor_type token_type = *type;
        token_type.act = WHIT_TENSOR_ACT_TOKEN;
        whit_acts_spec token = whit_acts_spec_for(&token_type, WHIT_ACT_F32);
        assert_int_equal(token.kind, WHIT_ACTS_I8);
        check_product(c, &matrix, &token);
    }
    if (type->codec == WHIT_CODEC_B1 || type->codec == WHIT_CODEC_Q2) {
        whit_acts_spec q2 = whit_acts_spec_q2(type);
        check_product(c, &matrix, &q2);
    }
    matrix_free(&matrix);
}

static void products_of_every_type(void **state)
{
    (void)state;
    product_case c = {.rng = {test_seed()}, .kernels = generic_kernels()};
    static const uint32_t shapes[][3] = {{16, 256, 1}, {1, 1, 1}, {8, 20, 2}, {33, 129, 9}, {17, 300, 3}, {5, 1400, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (tests_are_brief() && i % 3 == 0) continue;
        c.n_tokens = shapes[i][2];
        c.extreme = i & 1;
        for_each_type(shapes[i][0], shapes[i][1], product_of_type, &c);
    }
}

/* The longest rows with the largest codes must not overflow, so that the sum is exact. */
static void longest_rows(void **state)
{
    (void)state;
    whit_error error;
    whit_kernels kernels = generic_kernels();
    static const struct {
        whit_codec codec;
        int code;
    } cases[] = {{WHIT_CODEC_I8, -128}, {WHIT_CODEC_T2, 2}, {WHIT_CODEC_I8S, -128}};
    for (size_t i = 0; i < 3; i++) {
        whit_tensor_type type = type_of(cases[i].codec, WHIT_SCALE_TENSOR, 0, 0, false, 1, WHIT_MAX_COLS);
        type.scale = 1;
        type.act = WHIT_TENSOR_ACT_TOKEN;
        test_matrix matrix;
        matrix_alloc(&matrix, &type);
        rows_alloc(&matrix.rows, &type, 1);
        memset(matrix.rows.elems, cases[i].code, WHIT_MAX_COLS);
        assert_ok(whit_codec_pack(&type, 0, 1, &matrix.rows, matrix.part, &error), error);
        whit_acts_spec spec = whit_acts_spec_for(&type, WHIT_ACT_F32);
        uint8_t *memory = guarded_alloc(whit_acts_bytes(&spec, 1, WHIT_MAX_COLS), 0);
        whit_acts acts = whit_acts_place(&spec, 1, WHIT_MAX_COLS, memory);
        float *x = malloc(WHIT_MAX_COLS * sizeof *x), y;
        for (uint32_t k = 0; k < WHIT_MAX_COLS; k++) x[k] = -127;
        kernels.quantise(x, 0, &acts, 0, 1);
        const whit_matmul_kernel *kernel = whit_matmul_find(&kernels, &type, &spec, 1);
        uint8_t *scratch = guarded_alloc(kernel->scratch_bytes(&type, &spec, 1), 0);
        whit_matmul_prepare(kernel, &acts, scratch);
        kernel->run(&matrix.tensor, &acts, 0, 1, &y, 1, scratch);
        assert_true(y == (float)(-127 * cases[i].code * WHIT_MAX_COLS));
        free(x);
        guarded_free(scratch, 0);
        guarded_free(memory, 0);
        matrix_free(&matrix);
    }
}

/* ---- vectors -------------------------------------------------------------------------------- */

static void norms_gates_rotations(void **state)
{
    (void)state;
    whit_rng rng = {test_seed()};
    whit_kernels k = generic_kernels();
    for (uint32_t n = 1; n < 300; n += 13) {
        float *x = random_floats(&rng, n, 4), *w = random_floats(&rng, n, 2), *out = calloc(n, sizeof *out);
        double squares = 0;
        for (uint32_t i = 0; i < n; i++) squares += (double)x[i] * (double)x[i];
        double inverse = 1 / sqrt(squares / n + (double)1e-5f);
        k.rms_norm(x, w, n, 1e-5f, out);
        for (uint32_t i = 0; i < n; i++)
            assert_near(out[i], (double)w[i] * (double)x[i] * inverse, 10, 1e-6, "rms_norm");
        k.rms_norm(x, NULL, n, 1e-5f, out);
        for (uint32_t i = 0; i < n; i++) assert_near(out[i], (double)x[i] * inverse, 10, 1e-6, "rms_norm");
        k.silu_mul(x, w, n, out);
        for (uint32_t i = 0; i < n; i++) {
            double g = (double)x[i], u = (double)w[i];
            assert_near(out[i], g / (1 + exp(-g)) * u, 10, 1e-6, "silu");
        }
        for (int kind = 0; kind < WHIT_ACTIVATIONS; kind++) {
            k.activate(x, n, (whit_activation)kind, out);
            for (uint32_t i = 0; i < n; i++) {
                const double v = (double)x[i];
                const double cubic = tanh(sqrt(2 / acos(-1)) * (v + 0.044715 * v * v * v));
                const double expected[] = {[WHIT_ACTIVATE_GELU] = v / 2 * (1 + erf(v / sqrt(2))),
                                           [WHIT_ACTIVATE_TANH] = tanh(v),
                                           [WHIT_ACTIVATE_RELU] = v > 0 ? v : 0,
                                           [WHIT_ACTIVATE_GELU_TANH] = v / 2 * (1 + cubic)};
                assert_near(out[i], expected[kind], 4, 2e-7, "activate");
            }
        }
        double mean = 0, variance = 0;
        for (uint32_t i = 0; i < n; i++) mean += (double)x[i] / n;
        for (uint32_t i = 0; i < n; i++) variance += ((double)x[i] - mean) * ((double)x[i] - mean) / n;
        k.layer_norm(x, w, x, n, 1e-5f, out);
        for (uint32_t i = 0; i < n; i++)
            assert_near(out[i], (double)w[i] * ((double)x[i] - mean) / sqrt(variance + 1e-5) + (double)x[i], 10, 1e-6,
                        "layer_norm");
        memcpy(out, x, n * sizeof *out);
        k.softcap(out, 3, n);
        for (uint32_t i = 0; i < n; i++) assert_near(out[i], 3 * tanh((double)x[i] / 3), 3, 1e-6, "softcap");
        k.relu2_mul(x, w, n, out);
        for (uint32_t i = 0; i < n; i++)
            assert_near(out[i], x[i] > 0 ? (double)x[i] * (double)x[i] * (double)w[i] : 0, 50, 1e-6, "relu2");
        k.gelu_mul(x, w, n, out);
        for (uint32_t i = 0; i < n; i++) {
            double g = (double)x[i], u = (double)w[i];
            double t = tanh(sqrt(2 / M_PI) * (g + 0.044715 * g * g * g));
            assert_near(out[i], 0.5 * g * (1 + t) * u, 10, 1e-6, "gelu");
        }
        free(x), free(w), free(out);
    }
    float ties[5] = {1, 3, -2, 3, 3}, gate[3] = {NAN, -1e30f, 1e30f}, one[3] = {1, 1, 1}, out[3];
    assert_int_equal(k.argmax(ties, 5), 1);
    assert_true(k.all_finite(ties, 5));
    ties[4] = INFINITY;
    assert_false(k.all_finite(ties, 5));
    ties[4] = NAN;
    assert_false(k.all_finite(ties, 5));
    k.silu_mul(gate, one, 3, out);
    assert_true(isnan(out[0]) && fabsf(out[1]) < 1e-7f && out[2] == 1e30f);
    k.relu2_mul(gate, one, 2, out);
    assert_true(isnan(out[0]) && out[1] == 0);
}

/* Compares the recurrence in double precision, token by token, with single steps and with several updates applied at
 * once. */
static void delta_rule_and_convolution(void **state)
{
    (void)state;
    enum { KEYS = 12, VALUES = 20, TOKENS = 9 };
    whit_rng rng = {test_seed()};
    whit_kernels k = generic_kernels();
    double expected[KEYS][VALUES] = {{0}};
    float stepped[KEYS * VALUES] = {0}, applied[KEYS * VALUES];
    float keys[TOKENS][KEYS], changes[TOKENS][VALUES], out[VALUES];
    whit_delta_update updates[TOKENS];
    for (int t = 0; t < TOKENS; t++) {
        float *x = random_floats(&rng, 2 * KEYS + VALUES, 0.5f);
        const float *query = x, *value = x + 2 * KEYS;
        const double decay = (double)(0.8f + 0.02f * (float)t), beta = 0.75;
        memcpy(keys[t], x + KEYS, sizeof keys[t]);
        updates[t] = (whit_delta_update){keys[t], changes[t], (float)decay};
        k.delta_step(stepped, query, value, (float)beta, &updates[t], KEYS, VALUES, out);
        for (int c = 0; c < VALUES; c++) {
            double read = 0, seen = 0;
            for (int i = 0; i < KEYS; i++) read += (double)(float)decay * expected[i][c] * (double)keys[t][i];
            const double change = beta * ((double)value[c] - read);
            for (int i = 0; i < KEYS; i++) {
                expected[i][c] = (double)(float)decay * expected[i][c] + (double)keys[t][i] * change;
                seen += expected[i][c] * (double)query[i];
            }
            assert_near(changes[t][c], change, 10, 1e-5, "change");
            assert_near(out[c], seen, 10, 1e-5, "delta");
        }
        free(x);
    }
    k.delta_apply(updates, 4, NULL, applied, KEYS, VALUES);
    k.delta_apply(updates + 4, TOKENS - 4, applied, applied, KEYS, VALUES);
    assert_memory_equal(applied, stepped, sizeof applied);

    float *inputs = random_floats(&rng, 4 * VALUES, 2), *weight = random_floats(&rng, 4 * VALUES, 2);
    const float *rows[4] = {inputs, inputs + VALUES, inputs + 2 * VALUES, inputs + 3 * VALUES};
    for (int is_silu = 0; is_silu < 2; is_silu++) {
        k.causal_conv(rows, weight, VALUES, 4, is_silu, VALUES, out);
        for (int c = 0; c < VALUES; c++) {
            double sum = 0;
            for (int j = 0; j < 4; j++) sum += (double)weight[j * VALUES + c] * (double)rows[j][c];
            assert_near(out[c], is_silu ? sum / (1 + exp(-sum)) : sum, 10, 1e-5, "convolution");
        }
    }
    free(inputs), free(weight);
}

static void rope_rotates(void **state)
{
    (void)state;
    whit_rng rng = {test_seed()};
    whit_kernels k = generic_kernels();
    enum { PAIRS = 20, DIM = 48, HEADS = 3 };
    double frequencies[PAIRS];
    float table[2 * PAIRS], factors[PAIRS];
    for (int i = 0; i < PAIRS; i++) factors[i] = 1 + (float)i / 8;
    whit_rope_frequencies(500000, PAIRS, factors, frequencies);
    for (uint32_t position = 0; position < 200000; position = position * 7 + 1) {
        whit_rope_table(frequencies, PAIRS, position, table);
        float *x = random_floats(&rng, HEADS * DIM, 1), *half = malloc(HEADS * DIM * 4),
              *pairs = malloc(HEADS * DIM * 4);
        memcpy(half, x, HEADS * DIM * 4);
        k.rope_half(half, HEADS, DIM, PAIRS, table, half);
        k.rope_pairs(x, HEADS, DIM, PAIRS, table, pairs);
        for (int h = 0; h < HEADS; h++)
            for (int i = 0; i < PAIRS; i++) {
                double angle = position * pow(500000, -(double)i / PAIRS) / (double)factors[i];
                const float *head = x + h * DIM;
                double a = (double)head[i], b = (double)head[i + PAIRS];
                assert_near(half[h * DIM + i], a * cos(angle) - b * sin(angle), 1, 1e-6, "rope_half");
                assert_near(half[h * DIM + i + PAIRS], b * cos(angle) + a * sin(angle), 1, 1e-6, "rope_half");
                a = (double)head[2 * i], b = (double)head[2 * i + 1];
                assert_near(pairs[h * DIM + 2 * i], a * cos(angle) - b * sin(angle), 1, 1e-6, "rope_pairs");
                assert_near(pairs[h * DIM + 2 * i + 1], b * cos(angle) + a * sin(angle), 1, 1e-6, "rope_pairs");
            }
        for (int h = 0; h < HEADS; h++) {
            const int rest = h * DIM + 2 * PAIRS;
            assert_memory_equal(half + rest, x + rest, (DIM - 2 * PAIRS) * 4);
            assert_memory_equal(pairs + rest, x + rest, (DIM - 2 * PAIRS) * 4);
        }
        free(x), free(half), free(pairs);
    }
}

/* ---- attention ------------------------------------------------------------------------------ */

/* One query head over positions [pos_begin, pos_end) of its KV head; blocks[i] contains positions [64 i, 64 i + 64).
 * The scratch memory has attention_scratch_bytes() bytes, aligned to 64. */
static size_t attention_scratch_bytes(whit_kv_type kv, uint32_t head_dim)
{
    size_t partial_bytes = whit_round_up(whit_kv_partial_elems(head_dim) * sizeof(float), 64);
    return whit_kv_query_bytes(kv, head_dim) + 2 * partial_bytes;
}

static void attend_head(const whit_kernels *kernels, whit_kv_type kv, const float *q, const void *const *blocks,
                        uint32_t pos_begin, uint32_t pos_end, uint32_t head_dim, float scale, float *out, void *scratch)
{
    uint8_t *query = scratch;
    float *merged = (float *)(void *)(query + whit_kv_query_bytes(kv, head_dim));
    float *partial = merged + whit_round_up(whit_kv_partial_elems(head_dim), 16);
    whit_kv_query(kernels, kv)(q, head_dim, 1, head_dim, query);
    merged[head_dim + 1] = 0;
    for (uint32_t first = pos_begin / WHIT_KV_GROUP_TOKENS * WHIT_KV_GROUP_TOKENS; first < pos_end;
         first += WHIT_KV_GROUP_TOKENS) {
        whit_kv_span span = {
            .end = (uint16_t)(pos_end - first < WHIT_KV_GROUP_TOKENS ? pos_end - first : WHIT_KV_GROUP_TOKENS)};
        if (pos_begin > first) span.begin = (uint16_t)(pos_begin - first);
        whit_kv_group group = {{0}};
        for (uint32_t j = span.begin / WHIT_KV_BLOCK_TOKENS * WHIT_KV_BLOCK_TOKENS; j < span.end;
             j += WHIT_KV_BLOCK_TOKENS)
            group.blocks[j / WHIT_KV_BLOCK_TOKENS] = blocks[(first + j) / WHIT_KV_BLOCK_TOKENS];
        whit_kv_attend(kernels, kv)(&group, NULL, query, &span, 1, head_dim, scale, partial, merged);
    }
    kernels->kv_finish(merged, head_dim, out);
}

static void attention_of(whit_kv_type kv, uint32_t head_dim, uint32_t begin, uint32_t end, double tolerance,
                         whit_rng *rng)
{
    whit_kernels k = generic_kernels();
    uint32_t n_blocks = (end + 63) / 64;
    size_t block_bytes = whit_kv_block_bytes(kv, head_dim);
    uint8_t **blocks = calloc(n_blocks, sizeof *blocks);
    for (uint32_t b = 0; b < n_blocks; b++) {
        blocks[b] = guarded_alloc(block_bytes, 0);
        memset(blocks[b], 0x7F, block_bytes); /* positions outside the span must not affect the result */
    }
    float *keys = random_floats(rng, (size_t)end * head_dim, 2),
          *values = random_floats(rng, (size_t)end * head_dim, 1);
    float *q = random_floats(rng, head_dim, 2), *out = calloc(head_dim, sizeof *out);
    for (uint32_t p = begin; p < end; p++)
        whit_kv_append(&k, kv)(blocks[p / 64], p % 64, 1, head_dim, keys + p * head_dim, values + p * head_dim,
                               head_dim);
    uint8_t *scratch = guarded_alloc(attention_scratch_bytes(kv, head_dim), 0);
    float scale = 1 / sqrtf((float)head_dim);
    attend_head(&k, kv, q, (const void *const *)blocks, begin, end, head_dim, scale, out, scratch);
    guarded_check(scratch, attention_scratch_bytes(kv, head_dim));

    double *scores = calloc(end, sizeof *scores), max = -1e300, sum = 0;
    for (uint32_t p = begin; p < end; p++) {
        for (uint32_t d = 0; d < head_dim; d++) scores[p] += (double)q[d] * (double)keys[p * head_dim + d];
        scores[p] *= (double)scale;
        max = fmax(max, scores[p]);
    }
    for (uint32_t p = begin; p < end; p++) sum += scores[p] = exp(scores[p] - max);
    for (uint32_t d = 0; d < head_dim; d++) {
        double expected = 0;
        for (uint32_t p = begin; p < end; p++) expected += scores[p] / sum * (double)values[p * head_dim + d];
        assert_near(out[d], expected, 1, tolerance, "attention");
    }
    for (uint32_t b = 0; b < n_blocks; b++) {
        guarded_check(blocks[b], block_bytes);
        guarded_free(blocks[b], 0);
    }
    guarded_free(scratch, 0);
    free(blocks), free(keys), free(values), free(q), free(out), free(scores);
}

static void attention_over_blocks(void **state)
{
    (void)state;
    whit_rng rng = {test_seed()};
    static const uint32_t spans[][2] = {{0, 1},     {0, 63},  {0, 64},  {0, 65},   {70, 200},
                                        {127, 128}, {3, 321}, {0, 256}, {250, 515}};
    static const uint32_t dims[] = {8, 6, 32, 64, 100, 128};
    for (size_t s = 0; s < sizeof spans / sizeof *spans; s++)
        for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
            attention_of(WHIT_KV_F32, dims[d], spans[s][0], spans[s][1], 2e-6, &rng);
            attention_of(WHIT_KV_F16, dims[d], spans[s][0], spans[s][1], 2e-3, &rng);
            attention_of(WHIT_KV_I8, dims[d], spans[s][0], spans[s][1], 3e-2, &rng);
        }
}

/* Equal weights of the largest values, for which sums of products come closest to 2^31. */
static void attention_of_equals(void **state)
{
    (void)state;
    enum { DIM = 64, N = WHIT_KV_GROUP_TOKENS };
    const whit_kernels k = generic_kernels();
    const float largest = 2047.0f / 1024; /* f16 with all fraction bits set */
    float same[DIM], out[DIM];
    for (int d = 0; d < DIM; d++) same[d] = d % 2 ? largest : -largest;
    for (int type = WHIT_KV_F16; type <= WHIT_KV_I8; type++) {
        const whit_kv_type kv = (whit_kv_type)type;
        const size_t block_bytes = whit_kv_block_bytes(kv, DIM);
        uint8_t *blocks = guarded_alloc(WHIT_KV_GROUP_BLOCKS * block_bytes, 0),
                *scratch = guarded_alloc(attention_scratch_bytes(kv, DIM), 0);
        const void *list[WHIT_KV_GROUP_BLOCKS];
        for (uint32_t p = 0; p < N; p++) {
            uint8_t *block = blocks + p / WHIT_KV_BLOCK_TOKENS * block_bytes;
            whit_kv_append(&k, kv)(block, p % WHIT_KV_BLOCK_TOKENS, 1, DIM, same, same, DIM);
            list[p / WHIT_KV_BLOCK_TOKENS] = block;
        }
        for (uint32_t end = 1; end <= N; end++) {
            attend_head(&k, kv, same, list, 0, end, DIM, 0.1f, out, scratch);
            for (int d = 0; d < DIM; d++) assert_near(out[d], (double)same[d], 1, 1e-3, "equal values");
        }
        guarded_free(blocks, 0), guarded_free(scratch, 0);
    }
}

/* ---- the screened head ---------------------------------------------------------------------- */

static void screened_head(void **state)
{
    (void)state;
    whit_rng rng = {test_seed()};
    whit_kernels k = generic_kernels();
    whit_tensor_type type = type_of(WHIT_CODEC_I8S, WHIT_SCALE_ROW, WHIT_SCALE_F16, 0, false, 1003, 312);
    test_matrix matrix;
    matrix_random(&matrix, &type, &rng, false);
    whit_acts_spec spec = whit_acts_spec_for(&type, WHIT_ACT_I8);
    uint8_t *memory = guarded_alloc(whit_acts_bytes(&spec, 2, type.n_cols), 0);
    whit_acts acts = whit_acts_place(&spec, 2, type.n_cols, memory);
    float *logits = calloc(type.n_rows, 4), *full = calloc(2 * type.n_rows, 4), *screened = calloc(2 * type.n_rows, 4);
    uint32_t *rows = calloc(type.n_rows, 4);
    const whit_matmul_kernel *kernel = whit_matmul_find(&k, &type, &spec, 2);
    uint8_t *scratch = guarded_alloc(kernel->scratch_bytes(&type, &spec, 2), 0);
    for (int round = 0; round < 20; round++) {
        float *x = random_floats(&rng, 2 * type.n_cols, 1);
        k.quantise(x, type.n_cols, &acts, 0, 2);
        kernel->run(&matrix.tensor, &acts, 0, 63, full, type.n_rows, scratch);
        for (uint32_t t = 0; t < 2; t++)
            for (uint32_t n_best = 1; n_best <= 40; n_best += 39) {
                k.screen(&matrix.tensor, &acts, 0, 63, screened, type.n_rows);
                memcpy(logits, screened + t * type.n_rows, type.n_rows * sizeof *logits);
                float bound = whit_screen_bound(&acts, t);
                const float *right = full + (size_t)t * type.n_rows;
                uint32_t n = whit_screen_finish(&k, &matrix.tensor, &acts, t, n_best, logits, rows);
                assert_true(n >= n_best && n < type.n_rows);
                for (uint32_t i = 0; i < n; i++) assert_memory_equal(&logits[rows[i]], &right[rows[i]], sizeof *right);
                k.best_rows(right, type.n_rows, n_best, rows);
                for (uint32_t i = 0; i < n_best; i++) /* the best rows are exact, and no estimate is above them */
                    assert_memory_equal(&logits[rows[i]], &right[rows[i]], sizeof *right);
                float least = right[rows[0]];
                uint32_t n_above = 0;
                for (uint32_t row = 0; row < type.n_rows; row++) n_above += logits[row] >= least;
                assert_int_equal(n_above, n_best);
                assert_int_equal(k.argmax(logits, type.n_rows), k.argmax(right, type.n_rows));
                for (uint32_t row = 0; row < type.n_rows; row++) {
                    double error = fabs((double)screened[t * type.n_rows + row] - (double)right[row]);
                    assert_true(error <= (double)bound * fabs((double)matrix.rows.fields[row]));
                }
            }
        free(x);
    }
    free(logits), free(full), free(screened), free(rows);
    guarded_free(scratch, 0);
    guarded_free(memory, 0);
    matrix_free(&matrix);
}

/* ---- environment and levels ----------------------------------------------------------------- */

/* ---- corrections ---------------------------------------------------------------------------- */

/* Codes and outliers together must give the values of get_rows, which are those of the codes with the wanted outliers
 * added. */
static void outliers_add_to_products(void **state)
{
    (void)state;
    whit_rng rng = {test_seed()};
    whit_kernels kernels = generic_kernels();
    for (int round = 0; round < 20; round++) {
        uint32_t n_rows = 1 + (uint32_t)whit_rng_below(&rng, 60), n_cols = 1 + (uint32_t)whit_rng_below(&rng, 900);
        whit_tensor_type type = type_of(WHIT_CODEC_T2, WHIT_SCALE_GROUP, WHIT_SCALE_F16, 128, false, n_rows, n_cols);
        test_matrix w;
        whit_error error;
        matrix_random(&w, &type, &rng, false);
        whit_outlier list[2] = {{n_rows / 2, n_cols / 3, -128}, {n_rows / 2, n_cols - 1, 77}};
        size_t n = list[0].col < list[1].col ? 2 : 1;
        float scales[4] = {0.25f, 0.25f, 0.25f, 0.25f}, *x = random_floats(&rng, n_cols, 1);
        float *row = calloc(n_cols, sizeof *row), *y = calloc(n_rows, sizeof *y);
        double sum = 0;
        whit_buf part = {0};
        assert_ok(whit_outliers_build(&type, list, n, scales, &part, &error), error);
        w.tensor.part[WHIT_PART_OUTLIERS] = part.data;
        w.tensor.part_bytes[WHIT_PART_OUTLIERS] = part.size_bytes;
        assert_ok(whit_tensor_check(&w.tensor, &error), error);
        whit_codec_get_rows(&w.tensor, (const int32_t[]){(int32_t)(n_rows / 2)}, 1, row, 0);
        for (uint32_t k = 0; k < n_cols; k++) {
            float expected = content_value(&w, n_rows / 2, k);
            for (size_t i = 0; i < n; i++)
                if (list[i].col == k) expected = fmaf(list[i].value, 0.25f, expected);
            if (row[k] != expected) fail_msg("column %u: %g for %g", k, (double)row[k], (double)expected);
            sum += (double)row[k] * (double)x[k];
        }
        whit_acts acts = whit_acts_of_f32(x, n_cols, 1, n_cols);
        const whit_matmul_kernel *product = whit_matmul_find(&kernels, &type, &acts.spec, 1);
        void *scratch = whit_alloc(NULL, product->scratch_bytes ? product->scratch_bytes(&type, &acts.spec, 1) : 64);
        product->run(&w.tensor, &acts, 0, (n_rows + 15) / 16, y, n_rows, scratch);
        float scale;
        whit_outlier_acts codes = {1, n_cols / 16 * 16 + 16, calloc(n_cols + 16, sizeof(int16_t)), &scale};
        kernels.outlier_codes(&acts, &codes);
        kernels.outliers(&w.tensor, &codes, 0, (n_rows + 15) / 16, y, n_rows);
        free(codes.codes);
        assert_near((double)y[n_rows / 2], sum, 50, 1e-5 + 1.0 / 32767, "a row with outliers");
        w.tensor.part_bytes[WHIT_PART_OUTLIERS] -= 2; /* a length that differs from the header's */
        assert_int_equal(whit_tensor_check(&w.tensor, &error), WHIT_ERROR_FORMAT);
        w.tensor.part_bytes[WHIT_PART_OUTLIERS] = 0;
        w.tensor.part[WHIT_PART_OUTLIERS] = NULL;
        whit_free(NULL, scratch, 0);
        whit_buf_free(&part);
        free(x), free(row), free(y);
        matrix_free(&w);
    }
}

/* A plane and a pair must add to the rows the values of their contents. Lengths that differ from their headers are
 * refused. */
static void planes_and_pairs_add_to_rows(void **state)
{
    (void)state;
    whit_rng rng = {test_seed()};
    for (int round = 0; round < 20; round++) {
        uint32_t n_rows = 1 + (uint32_t)whit_rng_below(&rng, 40), n_cols = 40 + (uint32_t)whit_rng_below(&rng, 2000);
        uint32_t n = 1 + (uint32_t)whit_rng_below(&rng, n_cols), rank = 1 + (uint32_t)whit_rng_below(&rng, 30);
        whit_tensor_type type = type_of(WHIT_CODEC_B1, WHIT_SCALE_GROUP, WHIT_SCALE_F16, 128, false, n_rows, n_cols);
        whit_tensor_type types[3] = {whit_plane_type(&type, n), whit_factor_type(rank, n_cols),
                                     whit_factor_type(n_rows, rank)};
        test_matrix w, m[3];
        whit_buf parts[3] = {0};
        whit_error error;
        matrix_random(&w, &type, &rng, false);
        for (int i = 0; i < 3; i++) matrix_random(&m[i], &types[i], &rng, false);
        uint16_t *columns = calloc(n, sizeof *columns);
        for (uint32_t j = 0; j < n; j++) columns[j] = (uint16_t)((uint64_t)j * n_cols / n);
        assert_ok(whit_plane_build(&type, columns, n, &m[0].rows, NULL, &parts[0], &error), error);
        assert_ok(whit_low_rank_build(&type, rank, &m[1].rows, &m[2].rows, NULL, &parts[1], &parts[2], &error), error);
        const whit_part kinds[3] = {WHIT_PART_PLANE, WHIT_PART_FACTOR_A, WHIT_PART_FACTOR_B};
        for (int i = 0; i < 3; i++) {
            w.tensor.part[kinds[i]] = parts[i].data;
            w.tensor.part_bytes[kinds[i]] = parts[i].size_bytes;
        }
        assert_ok(whit_tensor_check(&w.tensor, &error), error);
        float *row = calloc(n_cols, sizeof *row);
        double *expected = calloc(n_cols, sizeof *expected);
        uint32_t r = (uint32_t)whit_rng_below(&rng, n_rows);
        whit_codec_get_rows(&w.tensor, (const int32_t[]){(int32_t)r}, 1, row, 0);
        for (uint32_t k = 0; k < n_cols; k++) {
            expected[k] = (double)content_value(&w, r, k);
            for (uint32_t j = 0; j < rank; j++)
                expected[k] += (double)content_value(&m[2], r, j) * (double)content_value(&m[1], j, k);
        }
        for (uint32_t j = 0; j < n; j++) expected[columns[j]] += (double)content_value(&m[0], r, j);
        for (uint32_t k = 0; k < n_cols; k++) assert_near((double)row[k], expected[k], 200, 1e-5, "a corrected weight");
        for (int i = 0; i < 3; i++) {
            w.tensor.part_bytes[kinds[i]] -= 64;
            assert_int_equal(whit_tensor_check(&w.tensor, &error), WHIT_ERROR_FORMAT);
            w.tensor.part_bytes[kinds[i]] += 64;
        }
        for (int i = 0; i < 3; i++) {
            w.tensor.part[kinds[i]] = NULL;
            w.tensor.part_bytes[kinds[i]] = 0;
            whit_buf_free(&parts[i]);
            matrix_free(&m[i]);
        }
        free(columns), free(row), free(expected);
        matrix_free(&w);
    }
}

static void environment_is_set_and_given_back(void **state)
{
    (void)state;
    volatile float tiny = 0x1p-140f, one = 1;
    uint64_t host = whit_fpenv_read();
#if defined(__x86_64__)
    const float when_odd = 0;
    uint64_t odd = host | 0x8040 | 0x2000; /* flush to zero, subnormal inputs are zero, round down */
#elif defined(__riscv)
    const float when_odd = 0x1p-140f; /* RISC-V has no flush to zero */
    uint64_t odd = host | 2u << 5;    /* the rounding mode "down" */
#else
    const float when_odd = 0;
    uint64_t odd = host | 1u << 24 | 2u << 22;
#endif
    whit_fpenv_write(odd);
    whit_fpenv before = whit_fpenv_enter();
    volatile float kept = tiny * one, rounded = one + 0x1.8p-24f;
    whit_fpenv_leave(before);
    assert_true(whit_fpenv_read() == odd);
    volatile float flushed = tiny * one;
    whit_fpenv_write(host);
    assert_true(kept == 0x1p-140f && flushed == when_odd);
    assert_true(rounded == 1 + 0x1p-23f);
}

static void levels_and_caps(void **state)
{
    (void)state;
    whit_cpu cpu;
    whit_kernels kernels;
    whit_cpu_detect(&cpu);
    print_message("%s: level %s, %u processors, %u cores\n", cpu.model, whit_isa_name(cpu.isa), cpu.n_logical,
                  cpu.n_cores);
    assert_true(cpu.n_cores >= 1 && cpu.n_cores <= cpu.n_logical);
    assert_int_equal(whit_kernels_select(&cpu, "avx9", &kernels, NULL), WHIT_ERROR_ARGUMENT);
    static const char *const caps[] = {NULL, "", "generic", "avx2", "avx512", "amx", "neon", "dotprod", "i8mm"};
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++) {
        assert_int_equal(whit_kernels_select(&cpu, caps[i], &kernels, NULL), WHIT_OK);
        assert_true(whit_isa_allows(cpu.isa, kernels.isa));
        for (size_t offset = offsetof(whit_kernels, quantise); offset < sizeof kernels; offset += sizeof(void *)) {
            void *pointer;
            memcpy(&pointer, (char *)&kernels + offset, sizeof pointer);
            assert_non_null(pointer);
        }
    }
    whit_isa isa = WHIT_ISA_AMX;
    assert_true(whit_isa_cap("avx512", &isa) && isa == WHIT_ISA_AVX512);
    assert_true(whit_isa_cap("amx", &isa) && isa == WHIT_ISA_AVX512);
    assert_true(whit_isa_cap("i8mm", &isa) && isa == WHIT_ISA_AVX512);
    assert_true(whit_isa_cap("generic", &isa) && isa == WHIT_ISA_GENERIC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elementary_functions),
        cmocka_unit_test(quantised_activations),
        cmocka_unit_test(quantise_edges),
        cmocka_unit_test(products_of_every_type),
        cmocka_unit_test(longest_rows),
        cmocka_unit_test(norms_gates_rotations),
        cmocka_unit_test(delta_rule_and_convolution),
        cmocka_unit_test(rope_rotates),
        cmocka_unit_test(attention_over_blocks),
        cmocka_unit_test(attention_of_equals),
        cmocka_unit_test(screened_head),
        cmocka_unit_test(outliers_add_to_products),
        cmocka_unit_test(planes_and_pairs_add_to_rows),
        cmocka_unit_test(environment_is_set_and_given_back),
        cmocka_unit_test(levels_and_caps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
