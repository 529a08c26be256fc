/* SPDX-License-Identifier: MIT
 * Tests mixtures of experts: a router's choice; equal bits whatever else is in the batch; files written and read
 * again; and damaged models, which must be refused with a one-line error. */
#include "test_folder.h"

#include "base/file.h"
#include "kernels/kernels.h"
#include "model/convert.h"
#include "model/exec_step.h"
#include "runtime/session.h"

#include <math.h>

enum { N_SEQUENCES = 64, N_TOKENS = 5 };

static const char *const folders[] = {"qwen3-moe", "qwen35-moe", "lfm2-moe", "gemma4-moe", "gpt-oss", "maple"};
enum { N_FOLDERS = sizeof folders / sizeof *folders };

static const char *path_of(const char *folder, const char *file)
{
    static char paths[4][512];
    static unsigned next;
    char relative[128], *path = paths[next++ % 4];
    snprintf(relative, sizeof relative, "models-tiny/%s", folder);
    snprintf(path, sizeof paths[0], "%s/%s", shared_path(relative), file);
    return path;
}

/* ---- router ----------------------------------------------------------------------------------- */

static void routers_choose_as_stated(void **state)
{
    const float logits[5] = {1, 3, 3, -2, 2}, choice[5] = {0, 0, 0, 1, 0}, scales[5] = {1, 2, 3, 4, 5};
    float scores[5], weights[5], sum = 0;
    uint32_t experts[5];
    (void)state;
    whit_router r = {.n_experts = 5, .n_used = 3, .is_normalised = true, .factor = 2, .scales = scales};
    whit_route_token(&r, logits, scores, experts, weights);
    assert_int_equal(experts[0], 1); /* of two equal experts the lower index comes first */
    assert_int_equal(experts[1], 2);
    assert_int_equal(experts[2], 4);
    for (int i = 0; i < 3; i++) sum += weights[i] / scales[experts[i]];
    assert_true(fabsf(sum - 2) < 1e-6f);
    assert_true(fabsf(weights[0] / 2 - weights[1] / 3) < 1e-6f);
    /* The bias affects which experts are chosen, not their weights. */
    r = (whit_router){.n_experts = 5, .n_used = 2, .is_sigmoid = true, .factor = 1, .choice = choice};
    whit_route_token(&r, logits, scores, experts, weights);
    assert_int_equal(experts[0], 3);
    assert_int_equal(experts[1], 1);
    assert_true(fabsf(weights[0] - 0.119203f) < 1e-6f && fabsf(weights[1] - 0.952574f) < 1e-6f);
    /* For any logits, the chosen experts must be distinct and exist. */
    const float odd[5] = {NAN, INFINITY, -INFINITY, NAN, INFINITY};
    r.n_used = 5;
    whit_route_token(&r, odd, scores, experts, weights);
    uint32_t seen = 0;
    for (int i = 0; i < 5; i++) seen |= 1u << experts[i];
    assert_int_equal(seen, 31);
}

/* ---- bits ------------------------------------------------------------------------------------- */

static int32_t token_of(uint32_t sequence, uint32_t i)
{
    return (int32_t)((sequence * 131 + i * 71 + i * i * 7 + 3) % 500);
}

static void convert(const char *from, const char *to)
{
    whit_error error;
    whit_source source;
    whit_ndf_writer *writer;
    const whit_convert_options options = {.n_threads = 1};
    assert_ok(whit_source_open(from, NULL, &source, &error), error);
    assert_ok(whit_ndf_writer_open(to, NULL, NULL, &writer, &error), error);
    assert_ok(whit_convert(&source, &options, writer, &error), error);
    whit_ndf_writer_close(writer);
    whit_source_close(&source);
}

/* Computes the last logits (n_vocab) of each of n sequences from `first` on, in one session. */
static void run_beside(const whit_model *model, uint32_t first, uint32_t n, const char *cpu, uint32_t n_threads,
                       uint32_t n_batch, float *logits)
{
    whit_error error;
    whit_session *session;
    whit_step_token tokens[N_SEQUENCES * N_TOKENS];
    whit_session_options options = whit_session_options_default();
    const uint32_t n_vocab = whit_model_vocab_size(model);
    uint32_t n_tokens = 0;
    options.cpu = cpu;
    options.n_threads = n_threads;
    options.n_sequences = n;
    options.n_ctx_tokens = 64;
    options.n_batch_tokens = n_batch;
    options.n_logits = n;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    for (uint32_t i = 0; i < N_TOKENS; i++)
        for (uint32_t s = 0; s < n; s++)
            tokens[n_tokens++] =
                (whit_step_token){.sequence = s, .id = token_of(first + s, i), .want_logits = i + 1 == N_TOKENS};
    assert_ok(whit_session_step(session, tokens, n_tokens, &error), error);
    for (uint32_t s = 0; s < n; s++)
        memcpy(logits + (size_t)s * n_vocab, whit_session_logits(session, s), n_vocab * sizeof *logits);
    whit_session_close(session);
}

static void neighbours_change_no_bit(void **state)
{
    static const char *const levels[] = {"generic", "avx2", "avx512", "amx"};
    static const uint32_t splits[] = {512, 13};
    const uint32_t n_sequences = tests_are_brief() ? 20 : N_SEQUENCES, sizes[] = {2, 5, 17, n_sequences};
    (void)state;
    for (int f = 0; f < N_FOLDERS; f++) {
        convert(path_of(folders[f], "hf"), in_folder("model.ndf"));
        whit_model *model = open_model("model.ndf"), *source = open_model_at(path_of(folders[f], "hf"));
        const uint32_t n_vocab = whit_model_vocab_size(model);
        const size_t row_bytes = n_vocab * sizeof(float);
        float *alone = malloc(N_SEQUENCES * row_bytes), *beside = malloc(N_SEQUENCES * row_bytes);
        assert_true(alone && beside);
        /* a file written and read back keeps its identity */
        assert_memory_equal(whit_model_identity(model), whit_model_identity(source), 32);
        for (uint32_t s = 0; s < n_sequences; s++) run_beside(source, s, 1, "generic", 1, 1, alone + s * n_vocab);
        assert_memory_not_equal(alone, alone + n_vocab, row_bytes);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (size_t k = 0; k < 2; k++) {
                const uint32_t first = n_sequences - sizes[i];
                run_beside(model, first, sizes[i], levels[(i + k) % 4], 1 + (uint32_t)(i + k) % 3, splits[k], beside);
                for (uint32_t s = 0; s < sizes[i]; s++)
                    if (memcmp(beside + s * n_vocab, alone + (first + s) * n_vocab, row_bytes) != 0)
                        fail_msg("%s: sequence %u of %u beside each other, %s", folders[f], s, sizes[i],
                                 levels[(i + k) % 4]);
            }
        free(alone);
        free(beside);
        whit_model_close(model);
        whit_model_close(source);
        unlink(in_folder("model.ndf"));
    }
}

/* A kernel is chosen by a bucket of row counts, so its scratch must suffice for the largest count. */
static void scratch_suffices_for_all_rows(void **state)
{
    enum { N_ROWS = 13 };
    (void)state;
    for (int f = 0; f < N_FOLDERS; f++) {
        whit_error error;
        whit_session *session;
        whit_model *model = open_model_at(path_of(folders[f], "hf"));
        whit_session_options options = whit_session_options_default();
        options.n_threads = 1;
        options.n_ctx_tokens = options.n_batch_tokens = N_ROWS;
        assert_ok(whit_session_open(model, &options, &session, &error), error);
        for (uint32_t i = 0; i < session->schedules.n_choices; i++)
            for (uint32_t n = 1; n <= N_ROWS; n++) {
                const whit_exec_choice *choice = &session->schedules.choices[i];
                const whit_matmul_kernel *kernel = whit_exec_bucket(choice->kernels, n);
                const size_t bytes = kernel->scratch_bytes ? kernel->scratch_bytes(&choice->type, &choice->acts, n) : 0,
                             have = kernel->prepare ? session->exec.prepared_bytes - WHIT_ALIGN_BYTES
                                                    : session->exec.scratch_bytes;
                if (bytes > have)
                    fail_msg("%s: %s needs %zu of %zu bytes, %u rows", folders[f], kernel->name, bytes, have, n);
            }
        whit_session_close(session);
        whit_model_close(model);
    }
}

/* ---- damaged models --------------------------------------------------------------------------- */

static void read_all(const char *path, whit_buf *bytes)
{
    whit_error error;
    assert_ok(whit_read_file(path, (size_t)4 << 20, bytes, &error), error);
}

/* Returns the address after the first `text` in bytes. */
static uint8_t *find_after(const whit_buf *bytes, const char *text)
{
    uint8_t *at = memmem(bytes->data, bytes->size_bytes, text, strlen(text));
    if (!at) fail_msg("no '%s'", text);
    return at + strlen(text);
}

static void assert_refused(const char *path, const char *word)
{
    whit_error error;
    whit_model *model;
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    if (whit_model_open(path, &options, &model, &error) == WHIT_OK) fail_msg("opened, without '%s'", word);
    if (!strstr(error.message, word) || strchr(error.message, '\n')) fail_msg("'%s' lacks '%s'", error.message, word);
}

static void damaged_folders_are_refused(void **state)
{
    static const struct {
        const char *folder, *file, *from, *to, *word; /* from and to have the same length in bytes */
    } cases[] = {
        {"qwen3-moe", "config.json", "\"num_experts\": 8", "\"num_experts\": 0", "of 0 experts"},
        {"qwen3-moe", "config.json", "\"num_experts\": 8", "\"num_experts\": 7", "but the model has 7 experts"},
        {"qwen3-moe", "config.json", "\"num_experts\": 8", "\"num_experts\": 9", "of expert 8 of 9 is missing"},
        {"qwen3-moe", "config.json", "\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 9", "9 of 8 experts"},
        {"qwen3-moe", "config.json", "\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 0", "0 of 8 experts"},
        {"qwen3-moe", "config.json", "\"moe_intermediate_size\": 32", "\"moe_intermediate_size\": 48", "expert_gate"},
        {"qwen3-moe", "config.json", "\"moe_intermediate_size\": 32", "\"moe_intermediate_size\": 24", "24 rows"},
        {"qwen3-moe", "config.json", "\"decoder_sparse_step\": 1", "\"decoder_sparse_step\": 0", "sparse_step"},
        {"qwen3-moe", "config.json", "\"decoder_sparse_step\": 1", "\"decoder_sparse_step\": 2", "layers.0.gate"},
        {"qwen3-moe", "config.json", "\"mlp_only_layers\": []", "\"mlp_only_layers\":[7]", "mlp_only_layers"},
        {"qwen3-moe", "model.safetensors", "layers.0.mlp.experts.3.up_proj.weight",
         "layers.0.mlp.experts.3.up_pr.inv_freq", "of expert 3 of 8 is missing"},
        {"qwen3-moe", "model.safetensors", "layers.0.mlp.experts.3.up_proj", "layers.0.mlp.experts.9.up_proj",
         "of expert 9"},
        {"qwen35-moe", "config.json", "\"num_experts\": 6", "\"num_experts\": 5", "192 rows"},
        {"lfm2-moe", "config.json", "\"use_expert_bias\": true", "\"use_expert_bias\":false", "router_choice"},
        {"lfm2-moe", "config.json", "\"num_dense_layers\": 2", "\"num_dense_layers\": 1", "layers.1.router"},
        {"gpt-oss", "model.safetensors", "layers.0.mlp.experts.down_proj_scales",
         "layers.0.mlp.experts.down_p_inv_freq_", "is not known"},
        {"gpt-oss", "model.safetensors", "layers.0.mlp.experts.down_proj_scales",
         "layers.0.mlp.experts.down_pr.inv_freq", "its scales"},
        {"gpt-oss", "config.json", "\"num_local_experts\": 6", "\"num_local_experts\": 5", "rows"},
        {"gemma4-moe", "config.json", "\"top_k_experts\": 2", "\"top_k_experts\": 9", "9 of 8 experts"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const char *const files[] = {"config.json", "model.safetensors"};
        whit_error error;
        for (int f = 0; f < 2; f++) {
            whit_buf bytes = {0};
            char from[160];
            snprintf(from, sizeof from, "hf/%s", files[f]);
            read_all(path_of(cases[i].folder, from), &bytes);
            if (strcmp(files[f], cases[i].file) == 0)
                memcpy(find_after(&bytes, cases[i].from) - strlen(cases[i].from), cases[i].to, strlen(cases[i].to));
            assert_ok(whit_write_file(in_folder(files[f]), bytes.data, bytes.size_bytes, &error), error);
            whit_buf_free(&bytes);
        }
        assert_refused(in_folder(""), cases[i].word);
    }
    unlink(in_folder("config.json"));
    unlink(in_folder("model.safetensors"));
}

static void damaged_files_are_refused(void **state)
{
    static const struct {
        const char *name;
        uint32_t skipped, value; /* bytes between the name and the field, and the new u32 of the field */
        const char *word;
    } cases[] = {
        {"qwen3moe.expert_count", 4, 0, "of 0 experts"},
        {"qwen3moe.expert_count", 4, 7, "router"},
        {"qwen3moe.expert_count", 4, 1u << 20, "experts"},
        {"qwen3moe.expert_used_count", 4, 9, "9 of 8 experts"},
        {"qwen3moe.expert_used_count", 4, 0, "0 of 8 experts"},
        {"qwen3moe.expert_feed_forward_length", 4, 33, "33 rows"},
        {"qwen3moe.expert_feed_forward_length", 4, 0, "width 0"},
        {"blk.0.ffn_gate_inp.weight", 4, 64, "router"}, /* the field is the router's row length */
        {"blk.0.ffn_up_exps.weight", 12, 16, "expert_up"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        whit_error error;
        whit_buf bytes = {0};
        read_all(path_of("qwen3-moe", "qwen3-moe-f16.gguf"), &bytes);
        memcpy(find_after(&bytes, cases[i].name) + cases[i].skipped, &cases[i].value, sizeof cases[i].value);
        assert_ok(whit_write_file(in_folder("damaged.gguf"), bytes.data, bytes.size_bytes, &error), error);
        assert_refused(in_folder("damaged.gguf"), cases[i].word);
        whit_buf_free(&bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routers_choose_as_stated),      cmocka_unit_test(neighbours_change_no_bit),
        cmocka_unit_test(scratch_suffices_for_all_rows), cmocka_unit_test(damaged_folders_are_refused),
        cmocka_unit_test(damaged_files_are_refused),
    };
    return cmocka_run_group_tests_name("experts", tests, make_folder, remove_folder);
}
