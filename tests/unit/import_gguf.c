/* SPDX-License-Identifier: MIT
 * Tests GGUF files as sources: keys that affect the computation are obeyed or refused by name. */
#include "test_folder.h"

#include <math.h>

#include "model/source.h"
#include "tiny_model.h"

/* A key of the namespace "llama". */
struct key {
    const char *name; /* NULL: no key */
    enum { IS_BOOL, IS_NUMBER, IS_TEXT } kind;
    double number;
    const char *text;
};

enum { N_KEYS = 2 };

static void put_keys(whit_gguf_writer *writer, const void *user)
{
    const struct key *keys = user;
    for (int i = 0; i < N_KEYS && keys[i].name; i++) {
        if (keys[i].kind == IS_BOOL)
            whit_gguf_put_bool(writer, keys[i].name, keys[i].number != 0);
        else if (keys[i].kind == IS_NUMBER)
            whit_gguf_put_f32(writer, keys[i].name, (float)keys[i].number);
        else
            whit_gguf_put_string(writer, keys[i].name, keys[i].text, strlen(keys[i].text));
    }
}

/* Opens the tiny model as a GGUF file with these keys and n_factors RoPE factors (0: none). */
static whit_status open_with(const struct key keys[N_KEYS], uint32_t n_factors, whit_source *source, whit_error *error)
{
    tiny_model tiny = tiny_model_default();
    tiny.n_rope_factors = n_factors;
    tiny.n_layers = 1;
    tiny.no_tokenizer = true;
    tiny.put_keys = put_keys;
    tiny.user = keys;
    assert_true(tiny_model_write(&tiny, in_folder("model.gguf")));
    return whit_source_open(in_folder("model.gguf"), NULL, source, error);
}

static void attention_to_both_sides_is_refused(void **state)
{
    (void)state;
    whit_error error;
    whit_source source;
    struct key keys[N_KEYS] = {{"llama.attention.causal", IS_BOOL, .number = 1}};
    assert_ok(open_with(keys, 0, &source, &error), error);
    whit_source_close(&source);
    keys[0].number = 0;
    assert_int_equal(open_with(keys, 0, &source, &error), WHIT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "'llama.attention.causal'"));
    assert_non_null(strstr(error.message, "both sides"));
}

/* Keys of trainers and publishers cause a note, except those that affect the computation or name a tensor. */
static void describing_keys_are_noted(void **state)
{
    static const struct {
        const char *name;
        bool is_noted;
    } cases[] = {{"unsloth.batch_size", true},      {"training.learning_rate", true},
                 {"provider.build", true},          {"training.rope_factor", false},
                 {"unsloth.attention_bias", false}, {"training.dequant_bits", false},
                 {"prism.block_size", false},       {"provider.token_embd.weight", false},
                 {"training.Hadamard", false},      {"rope.other", false}};
    static const whit_source_options strict = {.is_strict = true};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        whit_error error;
        whit_source source;
        const struct key keys[N_KEYS] = {{cases[i].name, IS_NUMBER, 3}};
        whit_status status = open_with(keys, 0, &source, &error);
        if (!cases[i].is_noted) {
            if (status != WHIT_ERROR_UNSUPPORTED || !strstr(error.message, cases[i].name))
                fail_msg("%s is not refused by name", cases[i].name);
            continue;
        }
        assert_ok(status, error);
        assert_non_null(memmem(source.notes.data, source.notes.size_bytes, cases[i].name, strlen(cases[i].name)));
        whit_source_close(&source);
        assert_int_equal(whit_source_open_as(in_folder("model.gguf"), &strict, NULL, &source, &error),
                         WHIT_ERROR_UNSUPPORTED);
        assert_non_null(strstr(error.message, cases[i].name));
    }
}

/* The keys must have the same meaning as in llama.cpp. */
static void positions_are_scaled_as_the_keys_say(void **state)
{
    static const struct {
        struct key keys[N_KEYS];
        float factor; /* 1: no scaling; 0: refused */
    } cases[] = {
        {{{0}}, 1},
        {{{"llama.rope.scaling.type", IS_TEXT, .text = "linear"}, {"llama.rope.scaling.factor", IS_NUMBER, 4}}, 4},
        {{{"llama.rope.scaling.factor", IS_NUMBER, 4}}, 4},
        {{{"llama.rope.scale_linear", IS_NUMBER, 4}}, 4},
        {{{"llama.rope.scale_linear", IS_NUMBER, 2}, {"llama.rope.scaling.factor", IS_NUMBER, 4}}, 4},
        {{{"llama.rope.scaling.factor", IS_NUMBER, 0}}, 1},
        {{{"llama.rope.scaling.type", IS_TEXT, .text = "none"}, {"llama.rope.scaling.factor", IS_NUMBER, 4}}, 1},
        {{{"llama.rope.scaling.type", IS_TEXT, .text = "none"}, {"llama.rope.scale_linear", IS_NUMBER, 4}}, 1},
        {{{"llama.rope.scaling.type", IS_TEXT, .text = "alibi"}, {"llama.rope.scaling.factor", IS_NUMBER, 4}}, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        whit_error error;
        whit_source source;
        whit_status status = open_with(cases[i].keys, 0, &source, &error);
        if (cases[i].factor == 0) {
            assert_int_equal(status, WHIT_ERROR_UNSUPPORTED);
            assert_non_null(strstr(error.message, "'alibi'"));
            continue;
        }
        assert_ok(status, error);
        const whit_source_tensor *factors = whit_source_find(&source, "rope_factors");
        if (source.config.rope_factors != (cases[i].factor != 1) || (factors != NULL) != (cases[i].factor != 1))
            fail_msg("case %zu", i);
        if (factors) {
            float values[32];
            assert_in_range(factors->type.n_cols, 1, 32);
            assert_ok(factors->read_row(factors, 0, &(whit_rows){.elems = values}, &error), error);
            for (uint32_t k = 0; k < factors->type.n_cols; k++) assert_true(values[k] == cases[i].factor);
        }
        whit_source_close(&source);
    }
    /* With RoPE factors in the file, one for each pair of a head's dimensions. */
    whit_error error;
    whit_source source;
    const tiny_model tiny = tiny_model_default();
    uint32_t n_factors = tiny.n_embd / tiny.n_heads / 2;
    assert_ok(open_with(cases[0].keys, n_factors, &source, &error), error);
    whit_source_close(&source);
    assert_int_equal(open_with(cases[2].keys, n_factors, &source, &error), WHIT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "both at once"));
}

/* ---- weight types --------------------------------------------------------------------------- */

/* Compares the rows that the source returns with the values of the file, times `factor`. The factor is applied to the
 * scale with one rounding; no test uses a power of two, so that this rounding takes part. */
static void check_matrix(const whit_source_tensor *tensor, const whit_gguf *gguf, const char *name, float factor)
{
    whit_error error;
    const whit_gguf_tensor *file = whit_gguf_find_tensor(gguf, name);
    assert_non_null(file);
    whit_ggml_view view = whit_gguf_view(file);
    whit_geometry g = whit_codec_geometry(&tensor->type);
    uint32_t n_cols = tensor->type.n_cols;
    int8_t *codes = malloc(n_cols);
    uint8_t *bytes = calloc(g.row_bytes + 1, 1);
    float *fields = calloc(g.row_fields, 4), *values = malloc(4 * n_cols), *expected = malloc(4 * n_cols);
    whit_rows rows = {.elems = codes, .fields = fields, .fields_u8 = bytes};
    for (uint32_t row = 0; row < tensor->type.n_rows; row++) {
        assert_ok(tensor->read_row(tensor, row, &rows, &error), error);
        whit_codec_content_values(&tensor->type, &rows, values);
        whit_ggml_row_f32(&view, whit_source_row(tensor, row), expected);
        for (uint32_t k = 0; k < n_cols; k++) {
            float limit = factor == 1 ? 0 : 1e-7f * fabsf(expected[k] * factor);
            if (!(fabsf(values[k] - expected[k] * factor) <= limit))
                fail_msg("%s row %u column %u: %a, %a in the file", name, row, k, (double)values[k],
                         (double)expected[k]);
        }
    }
    free(codes);
    free(bytes);
    free(fields);
    free(values);
    free(expected);
}

/* Types of two to four bits must not become larger. */
static void check_size(const whit_source_tensor *tensor, const whit_gguf *gguf, const char *name)
{
    static const whit_ggml_kind kept[] = {WHIT_GGML_Q2_K,   WHIT_GGML_Q3_K,  WHIT_GGML_IQ2_XXS,
                                          WHIT_GGML_IQ2_XS, WHIT_GGML_IQ2_S, WHIT_GGML_IQ4_XS,
                                          WHIT_GGML_IQ4_NL, WHIT_GGML_MXFP4, WHIT_GGML_NVFP4};
    const whit_gguf_tensor *file = whit_gguf_find_tensor(gguf, name);
    uint64_t bytes;
    assert_true(whit_codec_total_bytes(&tensor->type, &bytes));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (file->kind == kept[i] && bytes * 100 > file->size_bytes * 115)
            fail_msg("%s: %llu bytes of %llu", whit_ggml_kind_info(file->kind)->name, (unsigned long long)bytes,
                     (unsigned long long)file->size_bytes);
}

static void every_weight_type_opens(void **state)
{
    (void)state;
    for (int kind = WHIT_GGML_Q4_0; kind < WHIT_GGML_KIND_COUNT; kind++) {
        /* the type needs rows in multiples of four, which the vocabulary has not */
        if (kind == WHIT_GGML_IQ2_BN_R4) continue;
        whit_error error;
        whit_source source;
        whit_gguf *gguf;
        tiny_model tiny = tiny_model_default();
        tiny.n_layers = 1;
        tiny.n_embd = 256;
        tiny.n_ff = 512;
        tiny.no_tokenizer = true;
        tiny.kind = (whit_ggml_kind)kind;
        tiny.scale_tensors = kind == WHIT_GGML_NVFP4;
        assert_true(tiny_model_write(&tiny, in_folder("model.gguf")));
        assert_ok(whit_source_open(in_folder("model.gguf"), NULL, &source, &error), error);
        assert_ok(whit_gguf_open(in_folder("model.gguf"), NULL, &gguf, &error), error);
        check_matrix(whit_source_find(&source, "layers.0.q"), gguf, "blk.0.attn_q.weight", tiny.scale_tensors ? 3 : 1);
        check_matrix(whit_source_find(&source, "layers.0.down"), gguf, "blk.0.ffn_down.weight", 1);
        check_matrix(whit_source_find(&source, "embed"), gguf, "token_embd.weight", 1);
        check_size(whit_source_find(&source, "layers.0.q"), gguf, "blk.0.attn_q.weight");
        whit_gguf_close(gguf);
        whit_source_close(&source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_to_both_sides_is_refused),
        cmocka_unit_test(describing_keys_are_noted),
        cmocka_unit_test(positions_are_scaled_as_the_keys_say),
        cmocka_unit_test(every_weight_type_opens),
    };
    return cmocka_run_group_tests_name("GGUF files as sources", tests, make_folder, remove_folder);
}
