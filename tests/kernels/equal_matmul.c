/* SPDX-License-Identifier: MIT
 * Compares every matrix kernel, at each level that this machine can run, with the generic one, for all types and
 * activations that it accepts: equal bits for random and extreme codes, for arbitrary bytes, for remainders, for any
 * number of columns and any split into tiles. WHIT_TEST_ONLY=text compares only kernels whose name contains the
 * text; WHIT_TEST_PAIRS=n compares each n-th pair of a shape and a number of columns. */
#include "kernels/equal.h"

typedef struct product_trial {
    whit_rng rng;
    whit_kernels generic;
    const whit_matmul_kernel *kernel;
    uint32_t n_tokens;
    input_mode mode;
    size_t n_compared;
} product_trial;

static void describe(char *text, size_t size, const product_trial *c, const whit_tensor_type *type,
                     const whit_acts_spec *spec)
{
    snprintf(text, size,
             "%s: %s kind %u scale %u group %u offset %u, %u x %u, acts %u group %u step %u, %u "
             "tokens, input %d",
             c->kernel->name, whit_codec_find(type->codec)->name, type->scale_kind, type->scale_type, type->group,
             type->has_offset, type->n_rows, type->n_cols, spec->kind, spec->group, spec->step, c->n_tokens, c->mode);
}

/* Compares a gated product with two separate products followed by the gate. */
static void compare_gated(product_trial *c, const test_matrix *matrix, const whit_acts *acts, const char *text)
{
    const whit_tensor_type *type = &matrix->tensor.type;
    uint32_t n_rows = type->n_rows, n_tiles = (n_rows + 15) / 16,
             middle = (uint32_t)whit_rng_below(&c->rng, n_tiles + 1);
    size_t n = (size_t)acts->n_tokens * n_rows,
           scratch_bytes = c->kernel->scratch_bytes(type, &acts->spec, acts->n_tokens);
    test_matrix gate;
    matrix_random(&gate, type, &c->rng, 0);
    guarded_floats found = floats_alloc(n, whit_rng_below(&c->rng, 16)), gates = floats_alloc(n, 0),
                   expected = floats_alloc(n, 0);
    const whit_matmul_kernel *generic = whit_matmul_find(&c->generic, type, &acts->spec, acts->n_tokens);
    uint8_t *scratch = guarded_alloc(scratch_bytes, 0);
    whit_gate_fn *f = c->n_compared % 2 ? c->generic.relu2_mul : c->generic.silu_mul;
    c->kernel->run_gated(&gate.tensor, &matrix->tensor, f, acts, 0, middle, found.data, n_rows, scratch);
    c->kernel->run_gated(&gate.tensor, &matrix->tensor, f, acts, middle, n_tiles, found.data, n_rows, scratch);
    guarded_check(scratch, scratch_bytes);
    guarded_free(scratch, 0);
    scratch = guarded_alloc(generic->scratch_bytes ? generic->scratch_bytes(type, &acts->spec, acts->n_tokens) : 0, 0);
    generic->run(&gate.tensor, acts, 0, n_tiles, gates.data, n_rows, scratch);
    generic->run(&matrix->tensor, acts, 0, n_tiles, expected.data, n_rows, scratch);
    guarded_free(scratch, 0);
    for (uint32_t t = 0; t < acts->n_tokens; t++)
        f(gates.data + t * n_rows, expected.data + t * n_rows, n_rows, expected.data + t * n_rows);
    assert_same_floats(found.data, expected.data, found.n, text, "gated y");
    floats_free(&found), floats_free(&gates), floats_free(&expected);
    matrix_free(&gate);
}

/* Compares a product that is added to y with y + `product`. The padding between the rows of y must stay unchanged. */
static void compare_added(product_trial *c, const test_matrix *matrix, const whit_acts *acts,
                          const guarded_floats *product, size_t y_stride, const char *text)
{
    const whit_tensor_type *type = &matrix->tensor.type;
    guarded_floats found = floats_random(&c->rng, product->n, INPUT_UNIFORM), expected = floats_copy(&found);
    size_t scratch_bytes = c->kernel->scratch_bytes(type, &acts->spec, acts->n_tokens);
    uint8_t *scratch = guarded_alloc(scratch_bytes, 0);
    whit_matmul_prepare(c->kernel, acts, scratch);
    c->kernel->run_added(&matrix->tensor, acts, 0, (type->n_rows + 15) / 16, found.data, y_stride, scratch);
    guarded_check(scratch, scratch_bytes);
    guarded_free(scratch, 0);
    for (uint32_t t = 0; t < acts->n_tokens; t++)
        c->generic.add(expected.data + t * y_stride, product->data + t * y_stride, type->n_rows);
    assert_same_floats(found.data, expected.data, found.n, text, "added y");
    floats_free(&found), floats_free(&expected);
}

static void compare(product_trial *c, const test_matrix *matrix, const whit_acts_spec *spec)
{
    const whit_tensor_type *type = &matrix->tensor.type;
    uint32_t n = type->n_cols, n_tokens = c->n_tokens, n_tiles = (type->n_rows + 15) / 16;
    guarded_floats x = floats_random(&c->rng, (size_t)n_tokens * n, c->mode);
    uint8_t *memory = guarded_alloc(whit_acts_bytes(spec, n_tokens, n), 0);
    whit_acts acts = spec->kind == WHIT_ACTS_F32 ? whit_acts_of_f32(x.data, n, n_tokens, n)
                                                 : whit_acts_place(spec, n_tokens, n, memory);
    c->generic.quantise(x.data, n, &acts, 0, n_tokens);

    size_t y_stride = type->n_rows + whit_rng_below(&c->rng, 20);
    guarded_floats found = floats_alloc((n_tokens - 1) * y_stride + type->n_rows, whit_rng_below(&c->rng, 16));
    guarded_floats expected = floats_copy(&found);
    const whit_matmul_kernel *generic = whit_matmul_find(&c->generic, type, spec, n_tokens);
    uint32_t middle = (uint32_t)whit_rng_below(&c->rng, n_tiles + 1);
    for (int i = 0; i < 2; i++) {
        const whit_matmul_kernel *kernel = i ? generic : c->kernel;
        float *y = i ? expected.data : found.data;
        size_t scratch_bytes = kernel->scratch_bytes ? kernel->scratch_bytes(type, spec, n_tokens) : 0;
        uint8_t *scratch = guarded_alloc(scratch_bytes, 0);
        whit_matmul_prepare(kernel, &acts, scratch);
        kernel->run(&matrix->tensor, &acts, 0, middle, y, y_stride, scratch);
        kernel->run(&matrix->tensor, &acts, middle, n_tiles, y, y_stride, scratch);
        guarded_check(scratch, scratch_bytes);
        guarded_free(scratch, 0);
    }
    char text[256];
    describe(text, sizeof text, c, type, spec);
    assert_same_floats(found.data, expected.data, found.n, text, "y");
    if (c->kernel->run_added) compare_added(c, matrix, &acts, &expected, y_stride, text);
    if (c->kernel->run_gated) compare_gated(c, matrix, &acts, text);
    floats_free(&found), floats_free(&expected), floats_free(&x);
    guarded_free(memory, 0);
    c->n_compared++;
}

static void compare_type(const whit_tensor_type *type, void *user)
{
    product_trial *c = user;
    whit_tensor_type token_type = *type;
    token_type.act = WHIT_TENSOR_ACT_TOKEN;
    /* A fixed scale with inputs beyond its range gives codes of -128, which other activations do not have. */
    whit_acts_spec specs[5] = {whit_acts_spec_for(type, WHIT_ACT_F32),
                               whit_acts_spec_for(type, WHIT_ACT_I8),
                               whit_acts_spec_for(&token_type, WHIT_ACT_I8),
                               whit_acts_spec_q2(type),
                               {.kind = WHIT_ACTS_I8, .scale = 0.004f}};
    bool is_float = whit_codec_find(type->codec)->is_float;
    for (int i = 0; i < (is_float ? 1 : type->scale_kind == WHIT_SCALE_ROW ? 5 : 4); i++) {
        if (!c->kernel->accepts(type, &specs[i])) continue;
        test_matrix matrix;
        matrix_random(&matrix, type, &c->rng, whit_rng_next(&c->rng) & 1);
        if (whit_rng_below(&c->rng, 3) == 0) /* any bytes, including scales that are NaN */
            for (int part = 0; part < WHIT_PART_COUNT; part++)
                for (uint64_t j = 0, drawn = 0; j < matrix.tensor.part_bytes[part]; j++, drawn >>= 8) {
                    if (j % 8 == 0) drawn = whit_rng_next(&c->rng);
                    matrix.part[part][j] = (uint8_t)drawn;
                }
        compare(c, &matrix, &specs[i]);
        matrix_free(&matrix);
    }
}

/* Returns whether to skip a pair of shape and columns. Under sanitizers and emulators, which are ten times as slow,
 * fewer pairs are compared. */
static bool skipped(size_t shape, size_t columns)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    /* {shape, columns}: whole tiles with 1 and 17 columns, broken tiles with 3 and 8, short rows with 33, long rows
     * with 1 */
    static const uint8_t brief[][2] = {{0, 0}, {0, 8}, {1, 5}, {2, 9}, {5, 0}, {8, 2}};
    if (!tests_are_brief()) return (shape + columns) % 9 != 0;
    for (size_t i = 0; i < sizeof brief / sizeof *brief; i++)
        if (shape == brief[i][0] && columns == brief[i][1]) return false;
    return true;
#else
    if (tests_are_brief())
        return (shape != 0 || columns != 1) && (shape != 2 || columns != 9) && (shape != 5 || columns != 0);
    const char *step = getenv("WHIT_TEST_PAIRS");
    const unsigned long n = step ? strtoul(step, NULL, 10) : 3;
    return shape && (shape + columns) % (n ? n : 1) != 0; /* the first shape is compared with all numbers of columns */
#endif
}

static void every_product_equals_generic(void **state)
{
    (void)state;
    static const uint32_t shapes[][2] = {{16, 256},  {33, 129}, {8, 20},   {48, 700}, {1, 1},
                                         {17, 1324}, {64, 512}, {50, 704}, {33, 448}};
    static const uint32_t columns[] = {1, 2, 3, 4, 5, 8, 9, 16, 17, 33};
    product_trial c = {.rng = {test_seed()}};
    whit_kernels machine;
    both_levels(&c.generic, &machine);
    const char *only = getenv("WHIT_TEST_ONLY");
    size_t n_kernels;
    const whit_matmul_kernel *const *kernels = whit_matmul_kernels(&n_kernels);
    for (size_t i = 0; i < n_kernels; i++) {
        c.kernel = kernels[i];
        c.n_compared = 0;
        if (only && !strstr(c.kernel->name, only)) continue;
        if (c.kernel->isa == WHIT_ISA_GENERIC) continue;
        if (!whit_kernel_runs(&machine, c.kernel->isa, c.kernel->features)) {
            print_message("%s does not run here\n", c.kernel->name);
            continue;
        }
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (size_t n = 0; n < sizeof columns / sizeof *columns; n++) {
                if (skipped(s, n)) continue;
                c.n_tokens = columns[n];
                c.mode = (input_mode)((s + n) % INPUT_COUNT);
                for_each_type(shapes[s][0], shapes[s][1], compare_type, &c);
            }
        print_message("%s: %zu products\n", c.kernel->name, c.n_compared);
        if (!c.n_compared) fail_msg("%s accepts nothing", c.kernel->name);
    }
}

/* Kernels for many tokens process long rows, many tiles and many tokens in parts. */
static void large_products_equal_generic(void **state)
{
    (void)state;
    static const struct {
        uint32_t n_rows, n_cols, n_tokens;
    } shapes[] = {{340, 5190, 33}, {20, 2600, 530}, {420, 5184, 49}, {20, 2624, 530}};
    static const whit_codec codecs[] = {WHIT_CODEC_T2, WHIT_CODEC_T5, WHIT_CODEC_I8, WHIT_CODEC_I8S, WHIT_CODEC_L2};
    product_trial c = {.rng = {test_seed()}};
    whit_kernels machine;
    both_levels(&c.generic, &machine);
    size_t n_kernels;
    const whit_matmul_kernel *const *kernels = whit_matmul_kernels(&n_kernels);
    for (size_t i = 0; i < n_kernels && !tests_are_brief(); i++) {
        c.kernel = kernels[i];
        if (!whit_kernel_runs(&machine, c.kernel->isa, c.kernel->features)) continue;
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (size_t k = 0; k < sizeof codecs / sizeof *codecs; k++) {
                bool is_ternary = codecs[k] == WHIT_CODEC_T2 || codecs[k] == WHIT_CODEC_T5;
                whit_tensor_type type =
                    type_of(codecs[k], is_ternary ? WHIT_SCALE_TENSOR : WHIT_SCALE_ROW, WHIT_SCALE_F32, 0,
                            codecs[k] == WHIT_CODEC_T5, shapes[s].n_rows, shapes[s].n_cols);
                if (codecs[k] == WHIT_CODEC_L2)
                    type = type_of(codecs[k], WHIT_SCALE_GROUP, WHIT_SCALE_L6, 128, false, type.n_rows, type.n_cols);
                type.act = WHIT_TENSOR_ACT_TOKEN;
                whit_acts_spec spec = whit_acts_spec_for(&type, WHIT_ACT_I8);
                c.n_tokens = shapes[s].n_tokens;
                if (!c.kernel->accepts(&type, &spec)) continue;
                if (c.kernel->min_tokens <= 8 && whit_matmul_find(&machine, &type, &spec, c.n_tokens) != c.kernel)
                    continue;
                test_matrix matrix;
                matrix_random(&matrix, &type, &c.rng, 0);
                c.mode = INPUT_UNIFORM;
                compare(&c, &matrix, &spec);
                matrix_free(&matrix);
            }
        print_message("%s: %zu large products\n", c.kernel->name, c.n_compared);
        c.n_compared = 0;
    }
}

/* With one scale, groups of activations may end within lines of t5; products of many tokens must still use AVX-512. */
static void steps_within_lines_keep_the_level(void **state)
{
    (void)state;
    whit_kernels generic, machine;
    both_levels(&generic, &machine);
    const whit_tensor_type type = type_of(WHIT_CODEC_T5, WHIT_SCALE_TENSOR, WHIT_SCALE_F32, 0, false, 64, 512);
    const whit_acts_spec spec = whit_acts_spec_for(&type, WHIT_ACT_I8);
    assert_int_equal(spec.step, 128);
    for (uint32_t n = 32; whit_isa_allows(machine.isa, WHIT_ISA_AVX512) && n <= 256; n *= 2)
        assert_true(whit_isa_allows(whit_matmul_find(&machine, &type, &spec, n)->isa, WHIT_ISA_AVX512));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_product_equals_generic),
                                       cmocka_unit_test(large_products_equal_generic),
                                       cmocka_unit_test(steps_within_lines_keep_the_level)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
