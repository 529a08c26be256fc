/* SPDX-License-Identifier: MIT
 * Tests how the calibration text runs through a model: the programs of families other than Llama's, and the data
 * about matrices that a stage of compression gets. */
#include "compress/compress.h"
#include "compress/hessian.h"
#include "compress/rotate.h"
#include "failing_memory.h"
#include "model/convert.h"
#include "model/weights.h"
#include "quant/requantise.h"
#include "test.h"
#include "tiny_model.h"

#include <math.h>

#define N_TOKENS 16
#define N_IDS    64

static char model_path[] = "compress_stream.XXXXXX", out_path[64];
static int32_t ids[N_IDS];
static whit_pool *pool;

/* ---- a source that a test changes ---------------------------------------------------------------- */

/* A layer's attention with the given names of the matrices of keys, values and outputs; its result is `a`. */
#define ATTENTION(k, v, o)                                                                                             \
    "fn layer(l, x) {\n"                                                                                               \
    "let h = rms_norm(l, \"attn_in\", x, \"attn_norm\", norm_eps)\n"                                                   \
    "let q = rope(l, \"q_rotated\", linear(l, \"q_proj\", h, \"q\", \"\", n_heads * head_dim), head_dim, rope_dim)\n"  \
    "let k = rope(l, \"k_rotated\", linear(l, \"k_proj\", h, \"" k                                                     \
    "\", \"\", n_kv_heads * head_dim), head_dim, rope_dim)\n"                                                          \
    "let v = linear(l, \"v_proj\", h, \"" v "\", \"\", n_kv_heads * head_dim)\n"                                       \
    "let a = attention(l, \"attended\", q, k, v, head_dim, window, 1.0 / sqrt(head_dim))\n"                            \
    "a = linear(l, \"attn_out\", a, \"" o "\", \"\", n_embd)\n"
/* The residual after attention, and the feed-forward part of the value named `input`. */
#define RESIDUAL "let y = add(l, \"attn_residual\", x, a)\n"
#define FEED(input)                                                                                                    \
    "h = rms_norm(l, \"ffn_in\", " input ", \"ffn_norm\", norm_eps)\n"                                                 \
    "let g = linear(l, \"gate_proj\", h, \"gate\", \"\", n_ff)\n"                                                      \
    "let u = linear(l, \"up_proj\", h, \"up\", \"\", n_ff)\n"                                                          \
    "let f = linear(l, \"ffn_out\", gated(l, \"gated\", gate, g, u), \"down\", \"\", n_embd)\n"
#define MODEL(table, head)                                                                                             \
    "}\n"                                                                                                              \
    "let x = embed(\"embedded\", \"" table "\", n_vocab)\n"                                                            \
    "for l in 0..n_layers { x = layer(l, x) }\n"                                                                       \
    "x = rms_norm(-1, \"final\", selected(\"last\", x), \"final_norm\", norm_eps)\n"                                   \
    "output(x, linear(-1, \"logits\", x, \"" head "\", \"\", n_vocab))\n"
#define PARALLEL   FEED("x") "return add(l, \"ffn_residual\", add(l, \"attn_residual\", x, a), f)\n"
#define DOUBLED    RESIDUAL FEED("y") "return add(l, \"ffn_residual\", y, add(l, \"doubled\", f, f))\n"
#define SEQUENTIAL RESIDUAL FEED("y") "return add(l, \"ffn_residual\", y, f)\n"

/* Opens the small model under a program; NULL: the program of its family. */
static void open_source(whit_source *source, const char *program)
{
    whit_error error = {0};
    assert_ok(whit_source_open(model_path, NULL, source, &error), error);
    if (program) source->config.program = program;
}

static whit_source_tensor *tensor_named(whit_source *source, const char *name)
{
    for (uint32_t i = 0; i < source->n_tensors; i++)
        if (strcmp(source->tensors[i].name, name) == 0) return &source->tensors[i];
    fail_msg("no tensor '%s'", name);
    return NULL;
}

static void rename_tensor(whit_source *source, const char *from, const char *to)
{
    whit_source_tensor *tensor = tensor_named(source, from);
    snprintf(tensor->name, sizeof tensor->name, "%s", to);
}

static whit_status open_stream(whit_stream *stream, const whit_source *source, const whit_allocator *allocator,
                               whit_error *error)
{
    const whit_source_tensor *embed = whit_source_find(source, "embed");
    return whit_stream_open(stream, source, ids, N_IDS, N_TOKENS, N_IDS, -1, &embed->type, NULL, pool, allocator,
                            error);
}

/* ---- tests ----------------------------------------------------------------------------------------- */

/* The text is embedded by rows of "embed" only, so no other embedding may precede the layers. */
static void test_another_table(void **state)
{
    (void)state;
    whit_error error = {0};
    whit_source source;
    whit_stream stream;
    open_source(&source, ATTENTION("k", "v", "o") SEQUENTIAL MODEL("table", "embed"));
    rename_tensor(&source, "head", "table");
    assert_int_equal(open_stream(&stream, &source, NULL, &error), WHIT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "do not begin with the table 'embed'"));
    whit_source_close(&source);
}

/* Returns codes up to 127 with a scale for 32 columns, as in Q8_0. */
static whit_status read_groups(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error)
{
    (void)error;
    int8_t *codes = rows->elems;
    for (uint32_t k = 0; k < tensor->type.n_cols; k++) codes[k] = (int8_t)((int)((row * 31 + k * 17) % 255) - 127);
    for (uint32_t g = 0; g < tensor->type.n_cols / 32; g++) rows->fields[g] = 0.0078125f * (float)(g + 1);
    return WHIT_OK;
}

/* The compressed side must begin with the finished file's embeddings of the ids, the original side with the
 * source's. */
static void test_embedding_in_groups(void **state)
{
    (void)state;
    whit_error error = {0};
    whit_source source;
    whit_stream stream;
    whit_ndf_writer *writer;
    whit_ndf *file;
    whit_weights weights;
    open_source(&source, NULL);
    whit_source_tensor *embed = tensor_named(&source, "embed");
    whit_tensor_type stored = whit_requantise_type(WHIT_CODEC_I8, embed->type.n_rows, embed->type.n_cols);
    embed->type = stored;
    embed->type.scale_kind = WHIT_SCALE_GROUP;
    embed->type.scale_type = WHIT_SCALE_F16;
    embed->type.group = 32;
    embed->read_row = read_groups;
    embed->drop = NULL;
    assert_ok(whit_ndf_writer_open(out_path, NULL, NULL, &writer, &error), error);
    whit_convert_options options = {.embd = "i8", .head = "i8", .n_threads = 1};
    assert_ok(whit_convert(&source, &options, writer, &error), error);
    whit_ndf_writer_close(writer);
    assert_ok(whit_ndf_open(out_path, NULL, &file, &error), error);
    assert_ok(whit_weights_open(file, NULL, &weights, &error), error);
    const whit_tensor *finished = &weights.tensors[whit_ndf_find(file, "embed")];
    assert_ok(whit_stream_open(&stream, &source, ids, N_IDS, N_TOKENS, N_IDS, -1, &stored, NULL, pool, NULL, &error),
              error);
    uint32_t n = source.config.n_embd, n_others = 0;
    float *row = calloc(n, sizeof *row);
    assert_non_null(row);
    for (size_t i = 0; i < N_IDS; i++) {
        const float *original = stream.x[WHIT_STREAM_ORIGINAL] + i * n;
        whit_codec_get_rows(finished, &stream.ids[i], 1, row, n);
        assert_memory_equal(stream.x[WHIT_STREAM_COMPRESSED] + i * n, row, n * sizeof *row);
        assert_ok(whit_stream_read_row(embed, (uint32_t)stream.ids[i], row, NULL, &error), error);
        assert_memory_equal(original, row, n * sizeof *row);
        n_others += memcmp(original, stream.x[WHIT_STREAM_COMPRESSED] + i * n, n * sizeof *row) != 0;
    }
    assert_int_equal(n_others, N_IDS);
    free(row);
    whit_stream_close(&stream);
    whit_weights_close(&weights);
    whit_ndf_close(file);
    whit_source_close(&source);
    unlink(out_path);
}

/* Returns whether layer 0 gets a rotation under a program. */
static bool finds_rotation(const char *program)
{
    whit_error error = {0};
    whit_source source;
    whit_stream stream;
    whit_rotation rotation = {0};
    open_source(&source, program);
    rename_tensor(&source, "layers.0.v", "layers.0.kv");
    rename_tensor(&source, "layers.1.v", "layers.1.kv");
    assert_ok(open_stream(&stream, &source, NULL, &error), error);
    assert_ok(whit_stream_load(&stream, 0, &error), error);
    bool found = whit_rotation_find(&stream, &rotation);
    whit_stream_close(&stream);
    whit_source_close(&source);
    return found;
}

static void test_rotation_of_shared_matrices(void **state)
{
    (void)state;
    assert_true(finds_rotation(ATTENTION("k", "kv", "o") SEQUENTIAL MODEL("embed", "head")));
    assert_false(finds_rotation(ATTENTION("kv", "kv", "o") SEQUENTIAL MODEL("embed", "head")));
    assert_false(finds_rotation(ATTENTION("k", "kv", "q") SEQUENTIAL MODEL("embed", "head")));
}

/* Computes (n_out, n): the sum over tokens of the product of `value`'s difference between the two sides and `input` on
 * the compressed side. */
static void expected_products(whit_stream *s, whit_ref value, whit_ref input, uint32_t n_out, uint32_t n, float *to)
{
    memset(to, 0, (size_t)n_out * n * sizeof *to);
    for (uint32_t batch = 0; batch < s->n_batches; batch++) {
        whit_stream_run(s, batch, s->output);
        const float *original = whit_tape_value(&s->tape[WHIT_STREAM_ORIGINAL], value),
                    *compressed = whit_tape_value(&s->tape[WHIT_STREAM_COMPRESSED], value),
                    *x = whit_tape_value(&s->tape[WHIT_STREAM_COMPRESSED], input);
        for (uint32_t r = 0; r < s->n_rows; r++)
            for (uint32_t i = 0; i < n_out; i++)
                for (uint32_t k = 0; k < n; k++)
                    to[i * n + k] += (original[r * n_out + i] - compressed[r * n_out + i]) * x[r * n + k];
    }
}

static void assert_near(const float *found, const float *expected, size_t n)
{
    float largest = 0;
    for (size_t i = 0; i < n; i++) largest = fmaxf(largest, fabsf(expected[i]));
    assert_true(largest > 0);
    for (size_t i = 0; i < n; i++) assert_true(fabsf(found[i] - expected[i]) < 1e-4f * largest);
}

/* The residual of `down` is computed after it. Memory is filled with NaN, so that reading it too early is detected. */
static void test_residual_of_a_parallel_layer(void **state)
{
    (void)state;
    struct failing failing = {.n_left = -1};
    whit_allocator allocator = {failing_alloc, failing_free, &failing};
    whit_error error = {0};
    whit_source source;
    whit_stream stream;
    whit_blas blas;
    whit_hessian_pair pair;
    open_source(&source, ATTENTION("k", "v", "o") PARALLEL MODEL("embed", "head"));
    assert_ok(open_stream(&stream, &source, &allocator, &error), error);
    assert_ok(whit_stream_load(&stream, 0, &error), error);
    assert_ok(whit_blas_open(&blas, WHIT_PRECISION_F32, whit_loops_find(), 0, 0, 1, NULL, &error), error);
    whit_ref value = whit_graph_find(&stream.graph, "layers.0.gated"),
             residual = whit_graph_find(&stream.graph, "layers.0.attn_residual");
    int32_t o = whit_params_find(&stream.params[0], "layers.0.o");
    assert_true(value && residual && o >= 0);
    uint32_t n = source.config.n_ff, n_out = source.config.n_embd;
    float *weights = whit_stream_values(&stream, WHIT_STREAM_COMPRESSED, o),
          *expected = calloc(n_out, n * sizeof(float));
    assert_non_null(expected);
    for (size_t i = 0; i < stream.params[0].items[o].n; i++) weights[i] *= 1.5f;
    assert_ok(whit_hessian_gather(&pair, &stream, &blas, value, true, residual, n_out, NULL, &error), error);
    expected_products(&stream, residual, value, n_out, n, expected);
    assert_near(pair.text.lost, expected, (size_t)n_out * n);
    whit_hessian_free(&pair);
    weights[0] = NAN; /* the residual's loss is then NaN, but the input is not */
    assert_int_equal(whit_hessian_gather(&pair, &stream, &blas, value, true, residual, n_out, NULL, &error),
                     WHIT_ERROR_NUMERIC);
    assert_non_null(strstr(error.message, "'layers.0.attn_residual'"));
    whit_hessian_free(&pair);
    free(expected);
    whit_blas_close(&blas);
    whit_stream_close(&stream);
    whit_source_close(&source);
    assert_int_equal(failing.n_live, 0);
}

/* Without a norm in between, an output is added to the input of its own matrix, so both have the same loss. */
static void test_residual_that_is_the_input(void **state)
{
    (void)state;
    whit_error error = {0};
    whit_source source;
    whit_stream stream;
    whit_blas blas;
    whit_hessian_pair pair;
    open_source(&source, NULL);
    assert_ok(open_stream(&stream, &source, NULL, &error), error);
    assert_ok(whit_stream_load(&stream, 0, &error), error);
    assert_ok(whit_blas_open(&blas, WHIT_PRECISION_F32, whit_loops_find(), 0, 0, 1, NULL, &error), error);
    whit_ref value = whit_graph_find(&stream.graph, "layers.0.attn_in");
    int32_t norm = whit_params_find(&stream.params[0], "layers.0.attn_norm");
    assert_true(value && norm >= 0);
    uint32_t n = source.config.n_embd;
    for (uint32_t i = 0; i < n; i++) whit_stream_values(&stream, WHIT_STREAM_COMPRESSED, norm)[i] *= 1.25f;
    assert_ok(whit_hessian_gather(&pair, &stream, &blas, value, true, value, n, NULL, &error), error);
    assert_near(pair.text.lost, pair.text.shift, (size_t)n * n);
    whit_hessian_free(&pair);
    whit_blas_close(&blas);
    whit_stream_close(&stream);
    whit_source_close(&source);
}

/* Computes the identity of the compressed file. */
static void compress(const whit_source *source, whit_compress_options options, uint8_t identity[WHIT_HASH_BYTES])
{
    whit_error error = {0};
    whit_ndf *file = NULL;
    options.method = WHIT_COMPRESS_FULL;
    options.ids = ids;
    options.n_ids = options.max_tokens = N_IDS;
    options.n_tokens = N_TOKENS;
    options.bos = -1;
    options.embedding = "f32"; /* the embedding stays as in the source */
    options.n_threads = 1;
    assert_ok(whit_compress(source, &options, out_path, NULL, &error), error);
    assert_ok(whit_ndf_open(out_path, NULL, &file, &error), error);
    memcpy(identity, whit_ndf_identity(file), WHIT_HASH_BYTES);
    whit_ndf_close(file);
    unlink(out_path);
}

/* Returns whether the first layer is the same without compensation of the residual stream's loss. Only `down` can
 * differ. */
static bool is_without_residual(const char *program)
{
    uint8_t with[WHIT_HASH_BYTES], without[WHIT_HASH_BYTES];
    whit_source source;
    open_source(&source, program);
    source.config.n_layers = 1;
    compress(&source, (whit_compress_options){.codec = "q2"}, with);
    compress(&source, (whit_compress_options){.codec = "q2", .without = WHIT_STAGE_RESIDUAL}, without);
    whit_source_close(&source);
    return memcmp(with, without, sizeof with) == 0;
}

static void test_residual_of_the_output_itself(void **state)
{
    (void)state;
    assert_false(is_without_residual(ATTENTION("k", "v", "o") SEQUENTIAL MODEL("embed", "head")));
    assert_true(is_without_residual(ATTENTION("k", "v", "o") DOUBLED MODEL("embed", "head")));
}

static whit_status (*read_source_row)(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows,
                                      whit_error *error);

/* Reads weights rounded so that f16 represents them exactly. */
static whit_status read_coarse(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error)
{
    float *values = rows->elems;
    WHIT_TRY(read_source_row(tensor, row, rows, error));
    /* adding 0 turns -0 into 0 */
    for (uint32_t k = 0; k < tensor->type.n_cols; k++) values[k] = rintf(values[k] * 64) / 64 + 0.0f;
    return WHIT_OK;
}

/* All matrices before `down` become f16 exactly and get unrounded inputs, while the source rounds inputs to int8.
 * `down` must compensate for this difference only. */
static void test_floats_in_place_of_rounded_inputs(void **state)
{
    (void)state;
    static const char *const mixed[] = {"q=f16", "k=f16", "v=f16", "o=f16", "gate=f16", "up=f16"};
    whit_compress_options options = {.codec = "b1", .mixed = mixed, .n_mixed = sizeof mixed / sizeof *mixed};
    uint8_t with[WHIT_HASH_BYTES], without[WHIT_HASH_BYTES];
    for (int token = 0; token < 2; token++) {
        whit_source source;
        open_source(&source, NULL);
        source.config.n_layers = 1;
        read_source_row = tensor_named(&source, "embed")->read_row;
        for (uint32_t i = 0; i < source.n_tensors; i++) {
            whit_source_tensor *tensor = &source.tensors[i];
            if (tensor->type.layout != WHIT_LAYOUT_TILE16) continue;
            assert_ptr_equal(tensor->read_row, read_source_row);
            tensor->read_row = read_coarse;
            if (token && strncmp(tensor->name, "layers.", 7) == 0) tensor->type.act = WHIT_TENSOR_ACT_TOKEN;
        }
        options.without = 0;
        compress(&source, options, with);
        options.without = WHIT_STAGE_QEP;
        compress(&source, options, without);
        whit_source_close(&source);
        assert_int_equal(memcmp(with, without, sizeof with) != 0, token);
    }
}

/* RoPE factors for another head size than the model's, which would make the tape read out of bounds. */
static void test_rope_factors(void **state)
{
    (void)state;
    static const uint32_t counts[] = {8, 1, 7, 9};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        char path[] = "compress_stream.XXXXXX";
        tiny_model model = tiny_model_default();
        whit_error error = {0};
        whit_source source;
        model.n_rope_factors = counts[i];
        assert_int_equal(tiny_model_make(&model, path), 0);
        whit_status status = whit_source_open(path, NULL, &source, &error);
        if (counts[i] == model.n_embd / model.n_heads / 2) {
            assert_ok(status, error);
            whit_source_close(&source);
        } else {
            assert_int_equal(status, WHIT_ERROR_FORMAT);
            assert_non_null(strstr(error.message, "'rope_factors' is missing or not a vector of 8"));
        }
        unlink(path);
    }
}

static int set_up(void **state)
{
    (void)state;
    tiny_model model = tiny_model_default();
    for (int i = 0; i < N_IDS; i++) ids[i] = (i * 37 + 5) % TINY_N_VOCAB;
    if (tiny_model_make(&model, model_path) != 0) return -1;
    snprintf(out_path, sizeof out_path, "%s.ndf", model_path);
    return whit_pool_open(1, NULL, &pool, NULL) != WHIT_OK;
}

static int tear_down(void **state)
{
    (void)state;
    whit_pool_close(pool);
    unlink(model_path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rotation_of_shared_matrices),
                                       cmocka_unit_test(test_residual_of_a_parallel_layer),
                                       cmocka_unit_test(test_residual_that_is_the_input),
                                       cmocka_unit_test(test_residual_of_the_output_itself),
                                       cmocka_unit_test(test_floats_in_place_of_rounded_inputs),
                                       cmocka_unit_test(test_rope_factors),
                                       cmocka_unit_test(test_another_table),
                                       cmocka_unit_test(test_embedding_in_groups)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
