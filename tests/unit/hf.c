/* SPDX-License-Identifier: MIT
 * Tests Hugging Face folders: JSON files, values, weights, and packed ternary matrices. */
#include "test.h"

#include <math.h>

#include "base/half.h"
#include "failing_memory.h"
#include "format/gguf.h"
#include "format/hf.h"
#include "format/ternary.h"
#include "ggml_random.h"
#include "safetensors_sample.h"
#include "tokenizer/from_path.h"
#include "tokenizer_open.h"
#include "tokenizer_sample.h"

static char folder[64];

static const char *in_folder(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_text(const char *name, const char *text)
{
    whit_error error;
    assert_ok(whit_write_file(in_folder(name), text, strlen(text), &error), error);
}

static void assert_refused(whit_status status, const whit_error *error, const char *first, const char *second)
{
    assert_int_not_equal(status, WHIT_OK);
    if (!strstr(error->message, first) || !strstr(error->message, second))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", error->message, first, second);
}

static void folders_are_read(void **state)
{
    (void)state;
    whit_error error;
    whit_hf *hf;
    snprintf(folder, sizeof folder, "/tmp/whit-hf-XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_refused(whit_hf_open(folder, NULL, &hf, &error), &error, "no config.json", folder);
    write_text("config.json",
               "{\"model_type\":\"llama\",\"hidden_size\":64,\"head_dim\":null,\"rms_norm_eps\":1e-05,"
               "\"rope_theta\":1e4,\"tie_word_embeddings\":true,\n"
               "\"rope_scaling\":{\"factor\":8.0,\"rope_type\":\"llama3\"},\"odd\":-3,\"half\":0.5}");
    write_text("tokenizer_config.json", "{\"model_max_length\":1000000000000000019884624838656}");
    write_text("tokenizer.json", "{}");
    write_text("added_tokens.json", "[]"); /* ignored because there is a tokenizer.json */
    snprintf(folder + strlen(folder), sizeof folder - strlen(folder), "/");
    assert_ok(whit_hf_open(folder, NULL, &hf, &error), error);
    folder[strlen(folder) - 1] = 0;
    assert_string_equal(hf->folder, folder);
    assert_string_equal(hf->tokenizer_json, in_folder("tokenizer.json"));
    assert_null(hf->tokenizer_model);
    assert_null(hf->template_jinja);
    uint64_t u = 5;
    double f = 0;
    bool b = false;
    const char *text = NULL;
    size_t n = 0;
    assert_ok(whit_hf_u64(&hf->config, "hidden_size", &u, &error), error);
    assert_int_equal(u, 64);
    assert_ok(whit_hf_u64(&hf->config, "head_dim", &u, &error), error);
    assert_int_equal(u, 64); /* null has the effect of a missing value */
    assert_ok(whit_hf_u64(&hf->config, "rope_scaling.absent.deep", &u, &error), error);
    assert_ok(whit_hf_u64(&hf->generation_config, "x", &u, &error), error);
    assert_int_equal(u, 64);
    assert_ok(whit_hf_u64(&hf->config, "rope_theta", &u, &error), error);
    assert_int_equal(u, 10000);
    assert_ok(whit_hf_u64(&hf->tokenizer_config, "model_max_length", &u, &error), error);
    assert_true(u == UINT64_MAX);
    assert_ok(whit_hf_f64(&hf->config, "rms_norm_eps", &f, &error), error);
    assert_true(f == 1e-5);
    assert_ok(whit_hf_f64(&hf->config, "rope_scaling.factor", &f, &error), error);
    assert_true(f == 8);
    assert_ok(whit_hf_bool(&hf->config, "tie_word_embeddings", &b, &error), error);
    assert_true(b);
    assert_ok(whit_hf_string(&hf->config, "rope_scaling.rope_type", &text, &n, &error), error);
    assert_true(n == 6 && memcmp(text, "llama3", 6) == 0);
    assert_refused(whit_hf_u64(&hf->config, "odd", &u, &error), &error, "config.json:2:", "odd is negative");
    assert_refused(whit_hf_u64(&hf->config, "half", &u, &error), &error, "half", "whole number");
    assert_refused(whit_hf_u64(&hf->config, "model_type", &u, &error), &error, "config.json:1:", "model_type");
    assert_refused(whit_hf_bool(&hf->config, "odd", &b, &error), &error, "odd", "");
    assert_refused(whit_hf_string(&hf->config, "odd", &text, &n, &error), &error, "odd", "");

    assert_refused(whit_hf_open_weights(hf, &error), &error, folder, "model.safetensors");
    write_text("pytorch_model.bin", "x");
    assert_refused(whit_hf_open_weights(hf, &error), &error, "pytorch_model.bin", "not read");
    size_t size;
    uint8_t *bytes = make_safetensors(SAMPLE_HEADER, SAMPLE_DATA_BYTES, &size);
    assert_ok(whit_write_file(in_folder("odd-name.safetensors"), bytes, size, &error), error);
    assert_ok(whit_hf_open_weights(hf, &error), error);
    assert_non_null(whit_safetensors_find(hf->weights, "a.weight"));
    whit_hf_close(hf);
    free(bytes);

    write_text("tokenizer.json", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n");
    assert_refused(whit_hf_open(folder, NULL, &hf, &error), &error, "tokenizer.json", "git-LFS");
    unlink(in_folder("tokenizer.json"));
    write_text("config.json", "{\"hidden_size\": }");
    assert_refused(whit_hf_open(folder, NULL, &hf, &error), &error, "config.json:1:17", "");
    write_text("config.json", "[]");
    assert_refused(whit_hf_open(folder, NULL, &hf, &error), &error, "config.json", "not an object");
    unlink(in_folder("config.json"));
    unlink(in_folder("tokenizer_config.json"));
    unlink(in_folder("pytorch_model.bin"));
    unlink(in_folder("odd-name.safetensors"));
    rmdir(folder);
}

/* Opens the folder's tokenizer in both ways and compares them. */
static opened open_folder_tokenizer(void)
{
    opened it = {0};
    whit_buf again = {0};
    whit_error error;
    whit_hf *hf;
    bool found;
    assert_ok(whit_hf_open(folder, NULL, &hf, &error), error);
    assert_ok(whit_tokenizer_from_hf(hf, &found, &it.image, &error), error);
    assert_true(found);
    whit_hf_close(hf);
    assert_ok(whit_tokenizer_from_path(folder, &again, &error), error);
    assert_int_equal(again.size_bytes, it.image.size_bytes);
    assert_memory_equal(again.data, it.image.data, again.size_bytes);
    whit_buf_free(&again);
    open_image(&it);
    return it;
}

static bool is_special(const opened *it, int32_t id)
{
    return whit_tokenizer_token_flags(&it->view, id) & WHIT_TOKEN_SPECIAL;
}

/* Folders of old versions of transformers list the tokens added to a tokenizer.model only in added_tokens.json. */
static void added_tokens_are_read(void **state)
{
    (void)state;
    whit_error error;
    whit_buf model = {0}, ids = {0};
    snprintf(folder, sizeof folder, "/tmp/whit-hf-XXXXXX");
    assert_non_null(mkdtemp(folder));
    sample_sentencepiece(&model, 2); /* ids 0 to 269 */
    assert_ok(whit_write_file(in_folder("tokenizer.model"), model.data, model.size_bytes, &error), error);
    whit_buf_free(&model);
    write_text("config.json", "{\"vocab_size\": 274}");
    write_text("special_tokens_map.json", "{\"eos_token\": \"<|im_end|>\"}");
    write_text("tokenizer_config.json", "{\"additional_special_tokens\": [{\"content\": \"<turn>\"}]}");
    write_text("added_tokens.json",
               "{\"<s>\": 1, \"<tool>\": 273, \"[PAD]\": 274, \"<|im_end|>\": 270, \"<|im_start|>\": 271, "
               "\"<turn>\": 272}");
    opened it = open_folder_tokenizer();
    assert_int_equal(whit_tokenizer_n_tokens(&it.view), 274); /* the model has no row for [PAD] */
    for (int32_t id = 270; id < 273; id++) assert_true(is_special(&it, id));
    assert_false(is_special(&it, 273));
    assert_int_equal(it.view.header->eos, 270);
    assert_true(whit_tokenizer_is_end(&it.view, 270));
    static const char prompt[] = "<|im_start|><turn><tool><|im_end|>";
    static const int32_t wanted[] = {271, 272, 273, 270};
    const whit_encode_options options = {.parse_special = true};
    assert_ok(whit_tokenizer_encode(it.tokenizer, prompt, strlen(prompt), &options, &ids, &error), error);
    assert_int_equal(ids.size_bytes, sizeof wanted);
    assert_memory_equal(ids.data, wanted, sizeof wanted);
    whit_buf_free(&ids);
    close_tokenizer(&it);

    /* Newer folders list them in tokenizer_config.json, and then only that file counts. */
    write_text("tokenizer_config.json",
               "{\"added_tokens_decoder\": {\"270\": {\"content\": \"<|im_end|>\", \"special\": true}}}");
    it = open_folder_tokenizer();
    assert_int_equal(whit_tokenizer_n_tokens(&it.view), 271);
    assert_true(whit_tokenizer_is_end(&it.view, 270));
    close_tokenizer(&it);
    static const char *const names[] = {"tokenizer.model", "config.json", "special_tokens_map.json",
                                        "tokenizer_config.json", "added_tokens.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) unlink(in_folder(names[i]));
    rmdir(folder);
}

static void every_failing_allocation_ends_cleanly(void **state)
{
    (void)state;
    whit_error error;
    size_t size;
    snprintf(folder, sizeof folder, "/tmp/whit-hf-XXXXXX");
    assert_non_null(mkdtemp(folder));
    write_text("config.json", "{\"model_type\":\"ll\\u0061ma\"}");
    write_text("tokenizer.json", "{}");
    write_text("model.safetensors.index.json", "{\"weight_map\":{\"a.weight\":\"one.safetensors\"}}");
    uint8_t *bytes = make_safetensors(SAMPLE_HEADER, SAMPLE_DATA_BYTES, &size);
    assert_ok(whit_write_file(in_folder("one.safetensors"), bytes, size, &error), error);
    free(bytes);
    whit_status status = WHIT_ERROR_MEMORY;
    for (long n = 0; status != WHIT_OK; n++) {
        struct failing failing = {.n_left = n};
        whit_allocator allocator = {failing_alloc, failing_free, &failing};
        whit_hf *hf;
        status = whit_hf_open(folder, &allocator, &hf, &error);
        if (status == WHIT_OK) status = whit_hf_open_weights(hf, &error);
        if (status != WHIT_OK) assert_int_equal(status, WHIT_ERROR_MEMORY);
        whit_hf_close(hf);
        assert_int_equal(failing.n_live, 0);
        assert_true(n < 200);
    }
    unlink(in_folder("config.json"));
    unlink(in_folder("tokenizer.json"));
    unlink(in_folder("model.safetensors.index.json"));
    unlink(in_folder("one.safetensors"));
    rmdir(folder);
}

static void packed_rows_are_a_quarter_apart(void **state)
{
    (void)state;
    /* The matrix is 8 x 3; byte (r, c) holds rows r, r + 2, r + 4 and r + 6. */
    const uint8_t data[6] = {0x00 | 1 << 2 | 2 << 4 | 0 << 6, 2, 1, 0x55, 0xAA, 0x00};
    const whit_packed_ternary packed = {data, 8, 3};
    int8_t codes[3];
    static const int8_t expected[8][3] = {{-1, 1, 0},  {0, 1, -1}, {0, -1, -1},  {0, 1, -1},
                                          {1, -1, -1}, {0, 1, -1}, {-1, -1, -1}, {0, 1, -1}};
    for (uint64_t row = 0; row < 8; row++) {
        assert_true(whit_packed_ternary_row(&packed, row, codes));
        assert_memory_equal(codes, expected[row], 3);
    }
    /* The invalid code 3 at any column and in any quarter is reported for its row only. */
    for (uint64_t column = 0; column < 11; column++) {
        uint8_t bad[11] = {0};
        int8_t row_codes[11];
        bad[column] = 0x30;
        for (uint64_t row = 0; row < 4; row++)
            assert_int_equal(whit_packed_ternary_row(&(whit_packed_ternary){bad, 4, 11}, row, row_codes), row != 2);
        assert_int_equal(row_codes[column], -1);
    }
}

static void ternary_floats_are_recognised(void **state)
{
    (void)state;
    float row[8] = {0.0f, -0.5f, 0.5f, -0.0f, 0.5f, 0, 0, -0.5f}, scale = 9;
    whit_ggml_view view = {WHIT_GGML_F32, 4, 2, (const uint8_t *)row};
    assert_true(whit_float_is_ternary(&view, &scale) && scale == 0.5f);
    int8_t codes[8];
    whit_round_ternary(row, 8, 1 / scale, codes);
    const int8_t expected[8] = {0, -1, 1, 0, 1, 0, 0, -1};
    assert_memory_equal(codes, expected, 8);
    float other[4];
    assert_true(whit_float_absmean(&view, other) == 0.25);
    row[5] = 0.25f;
    assert_false(whit_float_is_ternary(&view, &scale));
    row[5] = NAN;
    assert_true(isnan(whit_float_absmean(&view, other)));
    uint16_t halves[4] = {0, 0xBC00, 0x3C00, 0x8000};
    view = (whit_ggml_view){WHIT_GGML_F16, 4, 1, (const uint8_t *)halves};
    assert_true(whit_float_is_ternary(&view, &scale) && scale == 1.0f);
    view.kind = WHIT_GGML_BF16;
    assert_true(whit_float_is_ternary(&view, &scale) && scale == whit_f32_from_bf16(0x3C00));
    const float ties[4] = {0.5f, -0.5f, 0.50001f, -7.0f};
    const int8_t rounded[4] = {0, 0, 1, -1};
    whit_round_ternary(ties, 4, 1, codes);
    assert_memory_equal(codes, rounded, 4);
}

/* The same weights as packed U8 and as I2_S must have the same codes, and embeddings the same values. */
static void packed_and_i2_s_agree(void **state)
{
    (void)state;
    whit_error error;
    whit_hf *hf;
    whit_gguf *gguf;
    assert_ok(whit_hf_open(shared_path("models-tiny/bitnet-b158/hf"), NULL, &hf, &error), error);
    assert_ok(whit_hf_open_weights(hf, &error), error);
    assert_ok(whit_gguf_open(shared_path("models-tiny/bitnet-b158/bitnet-b158-i2_s.gguf"), NULL, &gguf, &error), error);
    const whit_safetensor *packed_tensor = whit_safetensors_find(hf->weights, "model.layers.1.mlp.down_proj.weight");
    const whit_gguf_tensor *i2_s = whit_gguf_find_tensor(gguf, "blk.1.ffn_down.weight");
    assert_non_null(packed_tensor);
    assert_non_null(i2_s);
    whit_ggml_view view = whit_gguf_view(i2_s);
    whit_packed_ternary packed = {packed_tensor->data, 4 * packed_tensor->dims[0], packed_tensor->dims[1]};
    assert_int_equal(view.kind, WHIT_GGML_I2_S);
    assert_int_equal(view.n_rows, packed.n_rows);
    assert_int_equal(view.n_cols, packed.n_cols);
    int8_t a[1024], b[1024];
    float scale;
    for (uint64_t row = 0; row < view.n_rows; row++) {
        assert_true(whit_packed_ternary_row(&packed, row, a));
        decode_row(&view, row, b, &scale);
        assert_memory_equal(a, b, view.n_cols);
    }
    whit_gguf_close(gguf);
    whit_hf_close(hf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_are_read),
        cmocka_unit_test(added_tokens_are_read),
        cmocka_unit_test(every_failing_allocation_ends_cleanly),
        cmocka_unit_test(packed_rows_are_a_quarter_apart),
        cmocka_unit_test(ternary_floats_are_recognised),
        cmocka_unit_test(packed_and_i2_s_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
