/* SPDX-License-Identifier: MIT
 * Tests a memory budget for experts: the bits are those without a budget, reads are counted, and pages beyond the
 * budget are dropped. */
#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "base/rng.h"
#include "runtime/model.h"
#include "test_folder.h"
#include "train/new_model.h"
#include "train/trainee.h"
#include "whit/experts.h"

enum { LAYERS = 3, EXPERTS = 8, USED = 2, WIDTH = 128, N_VOCAB = 64, N_TOKENS = 60 };

static const uint64_t expert_bytes = 3ull * WIDTH * WIDTH * sizeof(float);
static char path[256];

/* Makes a mixture of experts in f32 whose file is on disk, but not in the page cache. */
static int make_model(void **state)
{
    whit_error error;
    whit_model *model;
    whit_trainee trainee;
    whit_config config = {.family = "decoder-experts",
                          .n_layers = LAYERS,
                          .n_embd = WIDTH,
                          .n_heads = 2,
                          .n_kv_heads = 2,
                          .head_dim = 64,
                          .rope_dim = 64,
                          .n_vocab = N_VOCAB,
                          .n_ctx = 128,
                          .tied_head = true,
                          .norm_eps = 1e-6,
                          .rope_theta = 1e4,
                          .n_experts = EXPERTS,
                          .n_experts_used = USED,
                          .n_expert_ff = WIDTH,
                          .router_norm = true};
    if (make_folder(state)) return -1;
    const whit_new_model new_model = {.config = &config, .seed = 5};
    snprintf(path, sizeof path, "%s", in_folder("mixture.ndf"));
    assert_ok(whit_new_model_open(&new_model, NULL, &model, &error), error);
    assert_ok(whit_trainee_open(&trainee, model, NULL, NULL, NULL, &error), error);
    assert_ok(whit_trainee_write(&trainee, NULL, path, &error), error);
    whit_trainee_close(&trainee);
    whit_model_close(model);
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fsync(fd), 0);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    return 0;
}

static whit_session *open_session(const whit_model *model)
{
    whit_error error;
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    options.n_threads = 2;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    return session;
}

/* Computes the logits after each token, one step per token: (N_TOKENS, N_VOCAB). */
static void run_tokens(whit_session *session, float *logits)
{
    whit_error error;
    whit_rng rng = {3};
    for (int i = 0; i < N_TOKENS; i++) {
        whit_step_token token = {.id = (int32_t)whit_rng_below(&rng, N_VOCAB), .want_logits = true};
        assert_ok(whit_session_step(session, &token, 1, &error), error);
        memcpy(logits + i * N_VOCAB, whit_session_logits(session, 0), N_VOCAB * sizeof *logits);
    }
}

/* Returns how many pages of the experts' matrices are in memory, among the *n_all pages that belong to a single
 * expert. */
static size_t count_resident(const whit_model *model, size_t *n_all)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t n = 0;
    *n_all = 0;
    for (uint32_t i = 0; i < model->weights.n_tensors; i++) {
        const whit_tensor *tensor = &model->weights.tensors[i];
        if (!strstr(whit_ndf_tensor_name(model->file, i), ".expert_")) continue;
        const uint64_t bytes = tensor->part_bytes[WHIT_PART_CODES] / EXPERTS;
        for (uint32_t e = 0; e < EXPERTS; e++) {
            const uintptr_t begin = (uintptr_t)tensor->part[WHIT_PART_CODES] + e * bytes;
            const uintptr_t first = (begin + page - 1) / page * page, end = (begin + bytes) / page * page;
            for (uintptr_t at = first; at < end; at += page, ++*n_all) {
                unsigned char state = 0;
                assert_int_equal(mincore((void *)at, page, &state), 0);
                n += state & 1;
            }
        }
    }
    return n;
}

static void budgets_change_no_bit(void **state)
{
    (void)state;
    whit_error error;
    static float limited[N_TOKENS * N_VOCAB], expected[N_TOKENS * N_VOCAB];
    whit_model *model = open_model_at(path);
    size_t n_all, n_before = count_resident(model, &n_all), n_after;
    whit_session *session = open_session(model);
    const uint64_t budget = LAYERS * EXPERTS / 2 * expert_bytes;
    assert_ok(whit_session_limit_experts(session, budget, &error), error);
    assert_int_equal(whit_session_limit_experts(session, budget, &error), WHIT_ERROR_ARGUMENT);
    run_tokens(session, limited);
    whit_expert_counts counts = {.struct_bytes = sizeof counts};
    whit_session_count_experts(session, &counts);
    n_after = count_resident(model, &n_all);
    print_message("%llu experts read, %llu given back; %zu of %zu pages in memory before, %zu after\n",
                  (unsigned long long)counts.n_read, (unsigned long long)counts.n_given, n_before, n_all, n_after);
    assert_true(counts.all_bytes == LAYERS * EXPERTS * expert_bytes);
    assert_true(counts.bytes <= budget && counts.bytes_max == budget);
    assert_true(counts.n_given > 0 && counts.n_read - counts.n_given == counts.bytes / expert_bytes);
    assert_true(counts.read_bytes == counts.n_read * expert_bytes);
    assert_true(counts.n_read <= N_TOKENS * LAYERS * USED);
    if (n_before < n_all / 4)                  /* otherwise the file system keeps all pages */
        assert_true(n_after <= n_all * 3 / 4); /* the budget is a half; Linux does not drop pages that were just read */
    else
        print_message("this file system keeps its pages: their residency is not checked\n");
    whit_session_close(session);
    session = open_session(model);
    run_tokens(session, expected);
    assert_memory_equal(limited, expected, sizeof limited);
    counts.n_read = 1;
    whit_session_count_experts(session, &counts);
    assert_true(counts.n_read == 0 && counts.bytes_max == 0);
    whit_session_close(session);
    whit_model_close(model);
}

/* A budget below the experts that one layer uses for a token is raised to exactly these. */
static void small_budget(void **state)
{
    (void)state;
    whit_error error;
    static float logits[N_TOKENS * N_VOCAB];
    whit_model *model = open_model_at(path);
    whit_session *session = open_session(model);
    assert_ok(whit_session_limit_experts(session, 1, &error), error);
    run_tokens(session, logits);
    whit_expert_counts counts = {.struct_bytes = sizeof counts};
    whit_session_count_experts(session, &counts);
    assert_true(counts.bytes == USED * expert_bytes);
    whit_session_close(session);
    whit_model_close(model);
}

static void refusals(void **state)
{
    (void)state;
    whit_error error;
    whit_config config = {.family = "llama",
                          .n_layers = 1,
                          .n_embd = 32,
                          .n_ff = 32,
                          .n_heads = 2,
                          .n_kv_heads = 2,
                          .head_dim = 16,
                          .rope_dim = 16,
                          .n_vocab = N_VOCAB,
                          .n_ctx = 64,
                          .tied_head = true,
                          .norm_eps = 1e-6,
                          .rope_theta = 1e4};
    whit_model *model, *other;
    whit_trainee trainee;
    const whit_new_model new_model = {.config = &config};
    assert_ok(whit_new_model_open(&new_model, NULL, &model, &error), error);
    assert_ok(whit_trainee_open(&trainee, model, NULL, NULL, NULL, &error), error);
    assert_ok(whit_trainee_write(&trainee, NULL, in_folder("dense.ndf"), &error), error);
    whit_trainee_close(&trainee);
    whit_model_close(model);
    other = open_model("dense.ndf");
    whit_session *session = open_session(other);
    assert_int_equal(whit_session_limit_experts(session, 1, &error), WHIT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "no experts"));
    whit_session_close(session);
    whit_model_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(budgets_change_no_bit), cmocka_unit_test(small_budget),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, make_model, remove_folder);
}
