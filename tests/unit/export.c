/* SPDX-License-Identifier: MIT
 * Exports random models as GGUF, in every type that can store them and as floats: after import every weight and
 * every number of the configuration must be the same, or the export must be refused. */
#include "kernels/codec.h"
#include "model/export_gguf.h"
#include "random_model.h"
#include "runtime/model.h"
#include "test.h"
#include "test_folder.h"
#include "tokenizer/from_gguf.h"
#include "tokenizer/from_json.h"
#include "tokenizer/scan.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer_open.h"
#include "tokenizer_sample.h"

static void compare_configs(const whit_config *a, const whit_config *b, uint32_t i)
{
    whit_config_number x, y;
    assert_string_equal(a->family, b->family);
    for (size_t k = 0; whit_config_number_at(a, k, &x); k++) {
        assert_true(whit_config_number_at(b, k, &y));
        bool same = x.is_float ? (float)x.f == (float)y.f : x.i == y.i;
        if (!same) fail_msg("model %u, a %s: another %s comes back", i, a->family, x.key);
    }
}

static void compare_weights(const whit_model *a, const whit_model *b, uint32_t i)
{
    for (uint32_t t = 0; t < a->weights.n_tensors; t++) {
        const char *name = whit_ndf_tensor_name(a->file, t);
        int64_t found = whit_ndf_find(b->file, name);
        if (found < 0) fail_msg("model %u: tensor '%s' does not come back", i, name);
        const whit_tensor *x = &a->weights.tensors[t], *y = &b->weights.tensors[found];
        uint32_t n = x->type.n_cols;
        if (x->type.layout != WHIT_LAYOUT_TILE16) continue;
        assert_true(y->type.n_rows == x->type.n_rows && y->type.n_cols == n);
        float *p = malloc(2 * n * sizeof *p), *q = p + n;
        assert_non_null(p);
        for (int32_t row = 0; row < (int32_t)x->type.n_rows; row++) {
            whit_codec_get_rows(x, &row, 1, p, n);
            whit_codec_get_rows(y, &row, 1, q, n);
            for (uint32_t k = 0; k < n; k++)
                if (p[k] != q[k]) fail_msg("model %u: tensor '%s', row %d, column %u", i, name, row, k);
        }
        free(p);
    }
}

/* Exports random model i in a codec (coded) and imports it again. Returns false when it cannot be exported. */
static bool comes_back(uint32_t i, const char *coded)
{
    whit_ndf_writer *writer;
    whit_error error;
    whit_source source;
    char path[64];
    whit_status status = random_model_open_source(i, &writer, path, &source, &error);
    if (status == WHIT_OK) {
        const whit_export_options options = {.coded = coded, .floats = "f32", .no_tokenizer = true};
        status = whit_export_gguf(&source, &options, in_folder("out.gguf"), &error);
        whit_source_close(&source);
    }
    if (status == WHIT_OK) {
        whit_model *a, *b;
        whit_model_options open = whit_model_options_default();
        open.no_cache = true;
        assert_ok(whit_model_open(path, NULL, &a, &error), error);
        assert_ok(whit_model_open(in_folder("out.gguf"), &open, &b, &error), error);
        compare_configs(&a->config, &b->config, i);
        compare_weights(a, b, i);
        whit_model_close(a);
        whit_model_close(b);
    } else {
        assert_int_equal(status, WHIT_ERROR_UNSUPPORTED);
    }
    whit_ndf_writer_close(writer);
    return status == WHIT_OK;
}

static void exports_are_the_model_or_refused(void **state)
{
    uint32_t n_exported = 0, n = random_model_count() + (tests_are_brief() ? 10 : 150);
    (void)state;
    for (uint32_t i = 0; i < n; i++) n_exported += comes_back(i, NULL) + comes_back(i, "f32");
    print_message("%u exported\n", n_exported);
    assert_true(n_exported >= n / 6);
}

/* ---- tokenizers ------------------------------------------------------------------------------ */

/* Opens a byte-level BPE tokenizer in which no merges give "xyz". */
static void open_tokenizer(const char *pattern, bool ignore_merges, const char *added, opened *it)
{
    whit_buf json = {0};
    whit_error error;
    whit_buf_printf(&json, "{\"added_tokens\": [%s], \"decoder\": {\"type\": \"ByteLevel\"}, ", added);
    whit_buf_append_str(&json,
                        "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": "
                        "\"Split\", \"behavior\": \"Isolated\", \"pattern\": {\"Regex\": ");
    whit_json_write_string(&json, pattern, strlen(pattern));
    whit_buf_printf(&json,
                    "}}, {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": false}]}, "
                    "\"model\": {\"type\": \"BPE\", \"ignore_merges\": %s, \"vocab\": ",
                    ignore_merges ? "true" : "false");
    sample_byte_vocabulary(&json, "th xyz");
    whit_buf_append_str(&json, ", \"merges\": [\"t h\"]}}");
    *it = (opened){0};
    assert_ok(whit_tokenizer_from_json("t", (const char *)json.data, json.size_bytes, NULL, &it->image, &error), error);
    open_image(it);
    whit_buf_free(&json);
}

/* Writes a tokenizer into a GGUF file and opens it again. */
static whit_status bring_back(const opened *from, opened *to, whit_error *error)
{
    whit_gguf_writer writer;
    whit_writer file;
    whit_gguf *gguf;
    bool found;
    *to = (opened){0};
    whit_gguf_writer_init(&writer, WHIT_GGUF_ALIGNMENT_BYTES, NULL);
    whit_gguf_put_string(&writer, "general.architecture", "llama", 5);
    whit_status status = whit_export_gguf_tokenizer(&from->view, "t", &writer, NULL, error);
    if (status == WHIT_OK) {
        assert_ok(whit_writer_open(in_folder("vocabulary.gguf"), NULL, &file, error), *error);
        assert_ok(whit_gguf_write_head(&writer, &file, error), *error);
        assert_ok(whit_gguf_write_end(&writer, error), *error);
        assert_ok(whit_writer_commit(&file, error), *error);
        whit_writer_discard(&file);
        assert_ok(whit_gguf_open(in_folder("vocabulary.gguf"), NULL, &gguf, error), *error);
        assert_ok(whit_tokenizer_from_gguf(gguf, "t", &found, &to->image, error), *error);
        assert_true(found);
        whit_gguf_close(gguf);
        open_image(to);
    }
    whit_gguf_writer_close(&writer);
    return status;
}

static void tokenizers_come_back_or_are_refused(void **state)
{
    (void)state;
    static const char text[] = "xyz the xyz";
    static const struct {
        const char *pattern;
        bool ignore_merges, is_known;
    } cases[] = {{WHIT_PATTERN_LLAMA3, true, true}, {WHIT_PATTERN_LLAMA3, false, true},
                 {WHIT_PATTERN_QWEN2, true, false}, {WHIT_PATTERN_QWEN2, false, true},
                 {WHIT_PATTERN_GPT2, true, false},  {WHIT_PATTERN_GPT2, false, true}};
    const whit_encode_options options = {0};
    opened of[2];
    whit_error error;
    size_t n_ids[2] = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        whit_buf ids[2] = {{0}, {0}};
        open_tokenizer(cases[i].pattern, cases[i].ignore_merges, "", &of[0]);
        const whit_status status = bring_back(&of[0], &of[1], &error);
        assert_int_equal(status, cases[i].is_known ? WHIT_OK : WHIT_ERROR_UNSUPPORTED);
        for (int k = 0; k < 2 && status == WHIT_OK; k++)
            assert_ok(whit_tokenizer_encode(of[k].tokenizer, text, strlen(text), &options, &ids[k], &error), error);
        assert_int_equal(ids[0].size_bytes, ids[1].size_bytes);
        if (status == WHIT_OK) assert_memory_equal(ids[0].data, ids[1].data, ids[0].size_bytes);
        if (i < 2) n_ids[i] = ids[0].size_bytes / sizeof(int32_t);
        for (int k = 0; k < 2; k++) whit_buf_free(&ids[k]);
        if (status == WHIT_OK) close_tokenizer(&of[1]);
        close_tokenizer(&of[0]);
    }
    assert_int_not_equal(n_ids[0], n_ids[1]); /* the text distinguishes the two settings */
    /* A tokenizer without first and last tokens must still have none; readers' defaults would add them. */
    static const whit_text pieces[] = {{"<unk>", 5}, {"x", 1}, {"y", 1}, {"xy", 2}};
    static const float scores[] = {0, -2, -3, -1};
    static const int32_t types[] = {2, 1, 1, 1};
    whit_vocabulary v = whit_vocabulary_init("test", WHIT_VOCABULARY_SPM);
    v.tokens = pieces;
    v.scores = scores;
    v.types = types;
    v.n_tokens = 4;
    v.unk = 0;
    of[0] = (opened){0};
    assert_ok(whit_tokenizer_from_vocabulary(&v, &of[0].image, &error), error);
    open_image(&of[0]);
    assert_ok(bring_back(&of[0], &of[1], &error), error);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(of[k].view.header->bos, -1);
        assert_int_equal(of[k].view.header->eos, -1);
        assert_false(whit_tokenizer_is_end(&of[k].view, 2));
        close_tokenizer(&of[k]);
    }
    static const char *const flags[] = {"lstrip", "rstrip", "single_word"};
    for (size_t i = 0; i < 3; i++) {
        char added[128];
        snprintf(added, sizeof added, "{\"id\": 258, \"content\": \"<x>\", \"special\": true, \"%s\": true}", flags[i]);
        open_tokenizer(WHIT_PATTERN_QWEN2, false, added, &of[0]);
        assert_int_equal(bring_back(&of[0], &of[1], &error), WHIT_ERROR_UNSUPPORTED);
        assert_non_null(strstr(error.message, "'<x>'"));
        assert_non_null(strstr(error.message, flags[i]));
        close_tokenizer(&of[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(exports_are_the_model_or_refused),
                                       cmocka_unit_test(tokenizers_come_back_or_are_refused)};
    return cmocka_run_group_tests_name("export", tests, make_folder, remove_folder);
}
