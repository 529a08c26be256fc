/* SPDX-License-Identifier: MIT
 * Compares logits of the tiny models with their goldens, within the narrow tolerance that these state; source and
 * converted .ndf must give the same bits. */
#include "golden_logits.h"

#include <jansson.h>

#include "format/ndf_write.h"
#include "model/convert.h"

#define N_TOKENS 48

static void read_tokens(const char *path, whit_step_token tokens[N_TOKENS])
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (int i = 0; i < N_TOKENS; i++) {
        tokens[i] = (whit_step_token){.want_logits = true};
        assert_int_equal(fscanf(file, "%d", &tokens[i].id), 1);
    }
    fclose(file);
}

/* Returns (N_TOKENS, vocab) logits with f32 activations and KV cache; the caller frees them. */
static float *run(const char *path, const whit_step_token *tokens, uint32_t *n_vocab)
{
    whit_error error;
    whit_model *model;
    whit_session *session;
    whit_model_options model_options = {.struct_bytes = sizeof model_options, .no_cache = true};
    assert_ok(whit_model_open(path, &model_options, &model, &error), error);
    whit_session_options options = whit_session_options_default();
    options.kv = WHIT_KV_F32;
    options.act = WHIT_ACT_F32;
    options.n_threads = 2;
    options.n_logits = N_TOKENS;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    assert_ok(whit_session_step(session, tokens, N_TOKENS, &error), error);
    *n_vocab = whit_model_vocab_size(model);
    float *logits = malloc(N_TOKENS * *n_vocab * sizeof *logits);
    assert_non_null(logits);
    for (int i = 0; i < N_TOKENS; i++)
        memcpy(logits + i * *n_vocab, whit_session_logits(session, (size_t)i), *n_vocab * sizeof *logits);
    whit_session_close(session);
    whit_model_close(model);
    return logits;
}

static void check_file(const char *folder, const char *file, const json_t *golden, const whit_step_token *tokens)
{
    char path[2048], ndf[] = "/tmp/whit-golden-XXXXXX";
    uint32_t n_vocab, n_again;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    const json_t *tolerance = json_object_get(json_object_get(golden, "tolerance"), "float32 activations and KV cache");
    float *logits = run(path, tokens, &n_vocab);
    float *expected =
        read_floats(folder, json_string_value(json_object_get(golden, "logits_file")), (size_t)N_TOKENS * n_vocab);
    compare_logits(expected, logits, N_TOKENS, n_vocab, json_number_value(json_object_get(tolerance, "max_abs")),
                   json_number_value(json_object_get(tolerance, "mean_kl")), file);

    whit_error error;
    whit_source source;
    whit_ndf_writer *writer;
    /* another codec than t5, which was used when the source ran directly */
    whit_convert_options options = {.ternary = "t2"};
    int fd = mkstemp(ndf);
    assert_true(fd >= 0);
    close(fd);
    assert_ok(whit_source_open(path, NULL, &source, &error), error);
    assert_ok(whit_ndf_writer_open(ndf, NULL, NULL, &writer, &error), error);
    assert_ok(whit_convert(&source, &options, writer, &error), error);
    whit_ndf_writer_close(writer);
    whit_source_close(&source);
    float *again = run(ndf, tokens, &n_again);
    assert_int_equal(n_again, n_vocab);
    assert_memory_equal(again, logits, N_TOKENS * n_vocab * sizeof *logits);
    unlink(ndf);
    free(again);
    free(expected);
    free(logits);
}

static void check_model(const char *name)
{
    char relative[256], path[2048];
    whit_step_token tokens[N_TOKENS];
    snprintf(relative, sizeof relative, "models-tiny/%s", name);
    const char *folder = shared_path(relative);
    snprintf(path, sizeof path, "%s/tokens.txt", folder);
    read_tokens(path, tokens);
    snprintf(path, sizeof path, "%s/golden.json", folder);
    json_t *root = json_load_file(path, 0, NULL), *golden, *file;
    assert_non_null(root);
    size_t i, j, n_checked = 0;
    json_array_foreach(json_object_get(root, "goldens"), i, golden)
    {
        /* goldens for float activations with W1.58A8 matrices only serve to recognise mistakes */
        if (strstr(json_string_value(json_object_get(golden, "logits_file")), "float-act")) continue;
        json_array_foreach(json_object_get(golden, "applies_to"), j, file)
        {
            check_file(folder, json_string_value(file), golden, tokens);
            n_checked++;
        }
    }
    assert_true(n_checked > 0);
    json_decref(root);
}

static void llama(void **state)
{
    (void)state;
    check_model("llama-gqa-untied");
}

static void qwen3(void **state)
{
    (void)state;
    check_model("qwen3-tied");
}

static void bitnet(void **state)
{
    (void)state;
    check_model("bitnet-b158");
}

/* The pairs hold one model: weights, configuration and tokenizer are equal, so the identities and the bits of the
 * logits must be equal. */
static void folder_and_gguf_are_one(void **state)
{
    static const char *const pairs[][2] = {
        {"models-tiny/qwen3-tied/hf", "models-tiny/qwen3-tied/qwen3-tied-bf16.gguf"},
        {"models/prose-6M/hf", "models/prose-6M/prose-6M-f16.gguf"},
    };
    (void)state;
    whit_step_token tokens[N_TOKENS];
    for (int i = 0; i < N_TOKENS; i++) tokens[i] = (whit_step_token){.id = 7 * i % 500, .want_logits = true};
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
        uint8_t identity[2][32];
        float *logits[2];
        uint32_t n_vocab[2];
        for (int i = 0; i < 2; i++) {
            whit_error error;
            whit_model *model;
            whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
            const char *path = shared_path(pairs[p][i]);
            assert_ok(whit_model_open(path, &options, &model, &error), error);
            memcpy(identity[i], whit_model_identity(model), 32);
            whit_model_close(model);
            logits[i] = run(path, tokens, &n_vocab[i]);
        }
        assert_memory_equal(identity[0], identity[1], 32);
        assert_int_equal(n_vocab[0], n_vocab[1]);
        assert_memory_equal(logits[0], logits[1], N_TOKENS * n_vocab[0] * sizeof **logits);
        free(logits[0]);
        free(logits[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(llama), cmocka_unit_test(qwen3), cmocka_unit_test(bitnet),
                                       cmocka_unit_test(folder_and_gguf_are_one)};
    return cmocka_run_group_tests_name("golden logits", tests, NULL, NULL);
}
