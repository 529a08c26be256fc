/* SPDX-License-Identifier: MIT
 * Tests the AMX kernels, compiled with a plain-C model of the tile instructions, so that machines with AVX-512 and
 * without AMX can run them: the bits must equal the generic kernel's for single rows, groups, whole blocks of tokens
 * and remainders. */
#include "kernels/equal.h"

extern const whit_matmul_kernel whit_matmul_i8_t2_32x32_amx_model, whit_matmul_i8_t5_32x32_amx_model,
    whit_matmul_i8_b1_32x32_amx_model, whit_matmul_i8_q2_32x32_amx_model, whit_matmul_i8_l2_32x32_amx_model,
    whit_matmul_i8_i4_32x32_amx_model, whit_matmul_i8_i8_32x32_amx_model, whit_matmul_i8_i8s_32x32_amx_model,
    whit_matmul_i8_t2_rows_amx_model, whit_matmul_i8_t5_rows_amx_model, whit_matmul_i8_i8_rows_amx_model,
    whit_matmul_i8_t2_16x16_amx_model, whit_matmul_i8_t5_16x16_amx_model, whit_matmul_i8_i8_16x16_amx_model,
    whit_matmul_i8_i8s_16x16_amx_model, whit_matmul_i8_codes_64x16_amx_model;

whit_kv_attend_fn whit_kv_attend_i8_amx_model, whit_kv_attend_f16_amx_model;
whit_screen_fn whit_screen_amx_model;

static float *product(const whit_matmul_kernel *kernel, const test_matrix *matrix, const whit_acts *acts)
{
    const whit_tensor_type *type = &matrix->tensor.type;
    size_t n = (size_t)acts->n_tokens * type->n_rows;
    size_t bytes = kernel->scratch_bytes(type, &acts->spec, acts->n_tokens);
    uint8_t *scratch = guarded_alloc(bytes, 0), *y = guarded_alloc(n * sizeof(float), 0);
    kernel->run(&matrix->tensor, acts, 0, (type->n_rows + 15) / 16, (float *)(void *)y, type->n_rows, scratch);
    guarded_check(scratch, bytes);
    guarded_check(y, n * sizeof(float));
    guarded_free(scratch, 0);
    return (float *)(void *)y;
}

static void the_model_equals_generic(void **state)
{
    (void)state;
    static const struct {
        const whit_matmul_kernel *kernel;
        whit_codec codec;
        /* whole_rows_only: scales only per row; whole_steps_only: only steps of 64 columns */
        bool whole_rows_only, whole_steps_only;
        /* type of the group scales, for codecs with group scales only; 0: f16 */
        uint8_t scale_type;
    } cases[] = {
        {&whit_matmul_i8_t2_32x32_amx_model, WHIT_CODEC_T2},
        {&whit_matmul_i8_t5_32x32_amx_model, WHIT_CODEC_T5},
        {&whit_matmul_i8_b1_32x32_amx_model, WHIT_CODEC_B1},
        {&whit_matmul_i8_q2_32x32_amx_model, WHIT_CODEC_Q2},
        {&whit_matmul_i8_i4_32x32_amx_model, WHIT_CODEC_I4},
        {&whit_matmul_i8_i8_32x32_amx_model, WHIT_CODEC_I8},
        {&whit_matmul_i8_i8s_32x32_amx_model, WHIT_CODEC_I8S, true},
        {&whit_matmul_i8_l2_32x32_amx_model, WHIT_CODEC_L2, .scale_type = WHIT_SCALE_L6},
        {&whit_matmul_i8_t2_rows_amx_model, WHIT_CODEC_T2, true, true},
        {&whit_matmul_i8_t5_rows_amx_model, WHIT_CODEC_T5, true, true},
        {&whit_matmul_i8_i8_rows_amx_model, WHIT_CODEC_I8, true, true},
        {&whit_matmul_i8_t2_16x16_amx_model, WHIT_CODEC_T2, true},
        {&whit_matmul_i8_t5_16x16_amx_model, WHIT_CODEC_T5, true},
        {&whit_matmul_i8_i8_16x16_amx_model, WHIT_CODEC_I8, true},
        {&whit_matmul_i8_i8s_16x16_amx_model, WHIT_CODEC_I8S, true},
        {&whit_matmul_i8_codes_64x16_amx_model, WHIT_CODEC_T2, .whole_steps_only = true},
        {&whit_matmul_i8_codes_64x16_amx_model, WHIT_CODEC_B1, .whole_steps_only = true},
        {&whit_matmul_i8_codes_64x16_amx_model, WHIT_CODEC_I4, .whole_steps_only = true},
        {&whit_matmul_i8_codes_64x16_amx_model, WHIT_CODEC_L2, false, true, WHIT_SCALE_L6},
    };
    static const uint32_t columns[] = {1, 16, 17, 33, 64};
    whit_kernels generic, machine;
    both_levels(&generic, &machine);
    if (!whit_kernel_runs(&machine, WHIT_ISA_AVX512, 0)) {
        print_message("[ SKIPPED ] the model's kernels unpack with AVX-512\n");
        skip();
    }
    whit_rng rng = {test_seed()};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int grouped = cases[i].scale_type ? 1 : 0; grouped < (cases[i].whole_rows_only ? 1 : 2); grouped++)
            for (size_t n = 0; n < sizeof columns / sizeof *columns; n++) {
                whit_tensor_type type = type_of(cases[i].codec, grouped ? WHIT_SCALE_GROUP : WHIT_SCALE_TENSOR,
                                                cases[i].scale_type ? cases[i].scale_type
                                                    : grouped       ? WHIT_SCALE_F16
                                                                    : WHIT_SCALE_F32,
                                                grouped ? 128 : 0, false, 50, cases[i].whole_steps_only ? 704 : 700);
                if (!grouped) type.act = WHIT_TENSOR_ACT_TOKEN;
                whit_acts_spec spec = whit_acts_spec_for(&type, WHIT_ACT_I8);
                assert_true(cases[i].kernel->accepts(&type, &spec));
                test_matrix matrix;
                matrix_random(&matrix, &type, &rng, n % 2);
                guarded_floats x = floats_random(&rng, (size_t)columns[n] * type.n_cols, INPUT_UNIFORM);
                uint8_t *memory = guarded_alloc(whit_acts_bytes(&spec, columns[n], type.n_cols), 0);
                whit_acts acts = whit_acts_place(&spec, columns[n], type.n_cols, memory);
                generic.quantise(x.data, type.n_cols, &acts, 0, columns[n]);
                float *found = product(cases[i].kernel, &matrix, &acts);
                float *expected = product(whit_matmul_find(&generic, &type, &spec, columns[n]), &matrix, &acts);
                assert_same_floats(found, expected, (size_t)columns[n] * type.n_rows, cases[i].kernel->name,
                                   grouped ? "groups" : "rows");
                guarded_free((uint8_t *)found, 0);
                guarded_free((uint8_t *)expected, 0);
                guarded_free(memory, 0);
                floats_free(&x);
                matrix_free(&matrix);
            }
}

static void screen_of_the_model_equals_generic(void **state)
{
    (void)state;
    static const uint32_t columns[] = {4, 16, 17, 32, 37}, rows[] = {8, 33, 200};
    whit_kernels generic, machine;
    both_levels(&generic, &machine);
    if (!whit_kernel_runs(&machine, WHIT_ISA_AVX512, 0)) skip();
    whit_rng rng = {test_seed()};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t n = 0; n < sizeof columns / sizeof *columns; n++) {
            whit_tensor_type type =
                type_of(WHIT_CODEC_I8S, WHIT_SCALE_ROW, WHIT_SCALE_F16, 0, false, rows[r], n % 2 ? 704 : 64);
            if (n == 3) type.act = WHIT_TENSOR_ACT_TOKEN;
            whit_acts_spec spec = whit_acts_spec_for(&type, WHIT_ACT_I8);
            test_matrix matrix;
            matrix_random(&matrix, &type, &rng, 0);
            guarded_floats x = floats_random(&rng, (size_t)columns[n] * type.n_cols, INPUT_UNIFORM);
            guarded_floats found = floats_alloc((size_t)columns[n] * type.n_rows, 0), expected = floats_copy(&found);
            uint8_t *memory = guarded_alloc(whit_acts_bytes(&spec, columns[n], type.n_cols), 0);
            whit_acts acts = whit_acts_place(&spec, columns[n], type.n_cols, memory);
            const uint32_t n_tiles = (type.n_rows + 15) / 16, middle = n_tiles * 5 / 6;
            generic.quantise(x.data, type.n_cols, &acts, 0, columns[n]);
            whit_screen_amx_model(&matrix.tensor, &acts, 0, middle, found.data, type.n_rows);
            whit_screen_amx_model(&matrix.tensor, &acts, middle, n_tiles, found.data, type.n_rows);
            generic.screen(&matrix.tensor, &acts, 0, n_tiles, expected.data, type.n_rows);
            assert_same_floats(found.data, expected.data, found.n, "screen_amx", "logits");
            guarded_free(memory, 0);
            floats_free(&x), floats_free(&found), floats_free(&expected);
            matrix_free(&matrix);
        }
}

static void attend_both(const whit_kernels *generic, whit_kv_type kv, whit_kv_attend_fn *model, uint32_t n,
                        uint32_t head_dim, whit_rng *rng)
{
    enum { ALL = WHIT_KV_GROUP_TOKENS, BLOCK = WHIT_KV_BLOCK_TOKENS };
    size_t block_bytes = whit_kv_block_bytes(kv, head_dim), elems = whit_kv_partial_elems(head_dim);
    uint8_t *blocks = guarded_alloc(WHIT_KV_GROUP_BLOCKS * block_bytes, 0),
            *queries = guarded_alloc(n * whit_kv_query_bytes(kv, head_dim), 0);
    guarded_floats keys = floats_random(rng, ALL * head_dim, INPUT_UNIFORM),
                   values = floats_random(rng, ALL * head_dim, INPUT_UNIFORM),
                   q = floats_random(rng, n * head_dim, INPUT_UNIFORM), found = floats_alloc(n * elems, 0),
                   expected = floats_alloc(n * elems, 0);
    whit_kv_group group = {.converted = guarded_alloc(whit_kv_converted_bytes(head_dim), 0)};
    for (uint32_t b = 0; b < WHIT_KV_GROUP_BLOCKS; b++) {
        const size_t first = b * BLOCK * head_dim;
        group.blocks[b] = blocks + b * block_bytes;
        whit_kv_append(generic, kv)(blocks + b * block_bytes, 0, BLOCK, head_dim, keys.data + first,
                                    values.data + first, head_dim);
    }
    whit_kv_query(generic, kv)(q.data, head_dim, n, head_dim, queries);
    whit_kv_span *spans = calloc(n, sizeof *spans);
    for (uint32_t i = 0; i < n; i++) /* as in a prompt, every second query sees some positions more */
        spans[i].end = (uint16_t)(i * 2 < ALL ? i / 2 * 4 + 1 : ALL);
    model(&group, NULL, queries, spans, n, head_dim, 0.1f, found.data, NULL);
    whit_kv_attend(generic, kv)(&group, NULL, queries, spans, n, head_dim, 0.1f, expected.data, NULL);
    for (uint32_t i = 0; i < n; i++)
        assert_same_floats(found.data + i * elems, expected.data + i * elems, head_dim + 2,
                           kv == WHIT_KV_I8 ? "i8" : "f16", "partial");
    guarded_check(blocks, WHIT_KV_GROUP_BLOCKS * block_bytes);
    guarded_check(group.converted, whit_kv_converted_bytes(head_dim));
    guarded_free(blocks, 0), guarded_free(group.converted, 0), guarded_free(queries, 0), free(spans);
    floats_free(&keys), floats_free(&values), floats_free(&q);
    floats_free(&found), floats_free(&expected);
}

static void attention_of_the_model_equals_generic(void **state)
{
    (void)state;
    static const uint32_t queries[] = {16, 17, 50, 129}, dims[] = {64, 128, 256};
    whit_kernels generic, machine;
    both_levels(&generic, &machine);
    if (!whit_kernel_runs(&machine, WHIT_ISA_AVX512, 0)) skip();
    whit_rng rng = {test_seed()};
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
            attend_both(&generic, WHIT_KV_I8, whit_kv_attend_i8_amx_model, queries[i], dims[d], &rng);
            attend_both(&generic, WHIT_KV_F16, whit_kv_attend_f16_amx_model, queries[i], dims[d], &rng);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_model_equals_generic),
                                       cmocka_unit_test(screen_of_the_model_equals_generic),
                                       cmocka_unit_test(attention_of_the_model_equals_generic)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
