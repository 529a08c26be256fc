/* SPDX-License-Identifier: MIT
 * Compares logits of each family's tiny models with their goldens: a short run and a long one, from the folder and
 * from the GGUF file, within the tolerance of float32. Every wrong variant that a golden lists must be further away
 * than that, except those that float32 cannot distinguish. */
#include "golden_logits.h"

#include <jansson.h>

#define MAX_TOKENS 512

/* A run of the golden: its tokens, and the range of rows with golden logits. */
struct run {
    whit_step_token tokens[MAX_TOKENS];
    uint32_t n, first, end; /* [first, end): tokens whose logits the golden contains */
};

static void read_tokens(const char *folder, const char *name, struct run *run)
{
    char path[2048];
    int32_t id;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (run->n = 0; fscanf(file, "%d", &id) == 1; run->n++) {
        assert_true(run->n < MAX_TOKENS);
        run->tokens[run->n] = (whit_step_token){.id = id};
    }
    fclose(file);
}

/* Returns (end - first, vocabulary) logits with f32 activations and KV cache; the caller frees them. */
static float *run_model(const char *path, const char *program, struct run *run, uint32_t n_threads, uint32_t n_batch,
                        uint32_t *n_vocab)
{
    whit_error error;
    whit_model *model;
    whit_session *session;
    whit_model_options model_options = {
        .struct_bytes = sizeof model_options, .no_cache = true, .family_program = program};
    assert_ok(whit_model_open(path, &model_options, &model, &error), error);
    whit_session_options options = whit_session_options_default();
    options.kv = WHIT_KV_F32;
    options.act = WHIT_ACT_F32;
    options.n_threads = n_threads;
    options.n_ctx_tokens = run->n;
    options.n_batch_tokens = n_batch;
    options.n_logits = run->end - run->first;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    for (uint32_t i = 0; i < run->n; i++) run->tokens[i].want_logits = i >= run->first && i < run->end;
    assert_ok(whit_session_step(session, run->tokens, run->n, &error), error);
    *n_vocab = whit_model_vocab_size(model);
    float *logits = malloc((size_t)options.n_logits * *n_vocab * sizeof *logits);
    assert_non_null(logits);
    for (uint32_t i = 0; i < options.n_logits; i++)
        memcpy(logits + (size_t)i * *n_vocab, whit_session_logits(session, i), *n_vocab * sizeof *logits);
    whit_session_close(session);
    whit_model_close(model);
    return logits;
}

/* A mistake that changes logits by at most this much cannot be told from rounding; the golden's generator measured the
 * distances in float64. */
#define ROUNDING 2e-3

static void check_mistakes(const json_t *golden, double max_abs, const char *what)
{
    const char *name;
    json_t *mistake;
    json_object_foreach((json_t *)json_object_get(golden, "mistakes"), name, mistake)
    {
        double distance = json_number_value(json_object_get(mistake, "max_abs"));
        if (distance > ROUNDING && distance <= max_abs)
            fail_msg("%s: '%s' is %g away, which a tolerance of %g does not see", what, name, distance, max_abs);
    }
}

static void check_golden(const char *folder, const json_t *golden)
{
    struct run run = {0};
    const char *logits_file = json_string_value(json_object_get(golden, "logits_file"));
    const json_t *rows = json_object_get(golden, "rows"), *file,
                 *tolerance = json_object_get(json_object_get(golden, "tolerance"), "float32 activations and KV cache");
    double max_abs = json_number_value(json_object_get(tolerance, "max_abs")),
           mean_kl = json_number_value(json_object_get(tolerance, "mean_kl"));
    size_t j;
    assert_true(max_abs > 0 && mean_kl > 0);
    read_tokens(folder, json_string_value(json_object_get(golden, "tokens")), &run);
    run.end = run.n;
    if (rows) {
        run.first = (uint32_t)json_integer_value(json_array_get(rows, 0));
        run.end = (uint32_t)json_integer_value(json_array_get(rows, 1));
    }
    check_mistakes(golden, max_abs, logits_file);
    json_array_foreach(json_object_get(golden, "applies_to"), j, file)
    {
        char path[2048], what[2048];
        uint32_t n_vocab, n_again;
        /* an entry with a comma reads the file with other settings than its own; this test cannot */
        if (strchr(json_string_value(file), ',')) continue;
        snprintf(path, sizeof path, "%s/%s", folder, json_string_value(file));
        snprintf(what, sizeof what, "%s, %s", path + strlen(WHIT_SHARED_DIR "/models-tiny/"), logits_file);
        float *logits = run_model(path, NULL, &run, 2, 512, &n_vocab);
        size_t n = (size_t)(run.end - run.first) * n_vocab;
        float *expected = read_floats(folder, logits_file, n);
        compare_logits(expected, logits, run.end - run.first, n_vocab, max_abs, mean_kl, what);
        /* small passes on one thread must give the same bits */
        float *again = run_model(path, NULL, &run, 1, 7, &n_again);
        assert_int_equal(n_again, n_vocab);
        assert_memory_equal(again, logits, n * sizeof *logits);
        free(again);
        /* so must a run with logits for the last row only, in which later layers may skip the other rows */
        struct run last = run;
        last.first = run.end - 1;
        again = run_model(path, NULL, &last, 2, 512, &n_again);
        assert_memory_equal(again, logits + n - n_vocab, n_vocab * sizeof *logits);
        free(again);
        free(expected);
        free(logits);
    }
}

static void check_model(const char *name)
{
    char relative[256], path[2048], folder[1024];
    snprintf(relative, sizeof relative, "models-tiny/%s", name);
    snprintf(folder, sizeof folder, "%s", shared_path(relative));
    snprintf(path, sizeof path, "%s/golden.json", folder);
    json_t *root = json_load_file(path, 0, NULL), *golden;
    assert_non_null(root);
    size_t i, n_checked = 0;
    json_array_foreach(json_object_get(root, "goldens"), i, golden)
    {
        if (strncmp(json_string_value(json_object_get(golden, "logits_file")), "logits", 6) != 0) continue;
        check_golden(folder, golden);
        n_checked++;
    }
    assert_int_equal(n_checked, 2);
    json_decref(root);
}

/* Two files or folders with the same weights in the same types must have the same identity. */
static void equal_weights_are_one_model(void **state)
{
    static const char *const pairs[][2] = {
        {"models-tiny/granite/hf", "models-tiny/granite/granite-bf16.gguf"},
        {"models-tiny/gemma3-text/hf", "models-tiny/gemma3-text/gemma3-text-bf16.gguf"},
        {"models-tiny/gemma4-dense/hf", "models-tiny/gemma4-dense/gemma4-dense-bf16.gguf"},
        {"models-tiny/gemma4-e2b/hf", "models-tiny/gemma4-e2b/gemma4-e2b-bf16.gguf"},
        {"models-tiny/gemma4-mobile/ct", "models-tiny/gemma4-mobile/transformers"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        uint8_t identity[2][32];
        for (int k = 0; k < 2; k++) {
            whit_error error;
            whit_model *model;
            whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
            assert_ok(whit_model_open(shared_path(pairs[i][k]), &options, &model, &error), error);
            memcpy(identity[k], whit_model_identity(model), 32);
            whit_model_close(model);
        }
        if (memcmp(identity[0], identity[1], 32) != 0) fail_msg("%s and %s differ", pairs[i][0], pairs[i][1]);
    }
}

/* The order of the rows of q and k in a file follows from the architecture, not from the program that computes the
 * model. */
static void programs_keep_the_order_of_rows(void **state)
{
    static const char *const models[] = {"granite/granite-bf16.gguf", "smollm3/smollm3-f16.gguf"};
    static char program[16384];
    (void)state;
    FILE *file = fopen(WHIT_SOURCE_DIR "/src/engine/model/families/decoder.ndl", "r");
    assert_non_null(file);
    program[fread(program, 1, sizeof program - 1, file)] = 0;
    fclose(file);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char relative[128], path[1024];
        float *logits[2];
        uint32_t n_vocab;
        struct run run = {.n = 24, .end = 24};
        for (uint32_t k = 0; k < run.n; k++) run.tokens[k].id = (int32_t)(11 * k % 500);
        snprintf(relative, sizeof relative, "models-tiny/%s", models[i]);
        snprintf(path, sizeof path, "%s", shared_path(relative));
        for (int k = 0; k < 2; k++) logits[k] = run_model(path, k ? program : NULL, &run, 2, 24, &n_vocab);
        assert_memory_equal(logits[0], logits[1], run.n * n_vocab * sizeof *logits[0]);
        free(logits[0]);
        free(logits[1]);
    }
}

#define FAMILY(function, folder)                                                                                       \
    static void function(void **state)                                                                                 \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        check_model(folder);                                                                                           \
    }

FAMILY(smollm3, "smollm3")
FAMILY(granite, "granite")
FAMILY(mistral_window, "mistral-window")
FAMILY(ministral3, "ministral3-yarn")
FAMILY(phi3, "phi3-longrope")
FAMILY(hunyuan, "hunyuan-dense")
FAMILY(lfm2, "lfm2")
FAMILY(qwen35, "qwen35-hybrid")
FAMILY(olmo3, "olmo3")
FAMILY(gemma3, "gemma3-text")
FAMILY(gemma4_dense, "gemma4-dense")
FAMILY(gemma4_shared, "gemma4-e2b")
FAMILY(gemma4_mobile, "gemma4-mobile")
FAMILY(qwen3_experts, "qwen3-moe")
FAMILY(qwen35_experts, "qwen35-moe")
FAMILY(lfm2_experts, "lfm2-moe")
FAMILY(gemma4_experts, "gemma4-moe")
FAMILY(gpt_oss, "gpt-oss")
FAMILY(maple, "maple")

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(smollm3),
                                       cmocka_unit_test(granite),
                                       cmocka_unit_test(mistral_window),
                                       cmocka_unit_test(ministral3),
                                       cmocka_unit_test(phi3),
                                       cmocka_unit_test(hunyuan),
                                       cmocka_unit_test(lfm2),
                                       cmocka_unit_test(qwen35),
                                       cmocka_unit_test(olmo3),
                                       cmocka_unit_test(gemma3),
                                       cmocka_unit_test(gemma4_dense),
                                       cmocka_unit_test(gemma4_shared),
                                       cmocka_unit_test(gemma4_mobile),
                                       cmocka_unit_test(equal_weights_are_one_model),
                                       cmocka_unit_test(qwen3_experts),
                                       cmocka_unit_test(qwen35_experts),
                                       cmocka_unit_test(lfm2_experts),
                                       cmocka_unit_test(gemma4_experts),
                                       cmocka_unit_test(gpt_oss),
                                       cmocka_unit_test(maple),
                                       cmocka_unit_test(programs_keep_the_order_of_rows)};
    return cmocka_run_group_tests_name("golden families", tests, NULL, NULL);
}
