/* SPDX-License-Identifier: MIT
 * Tests promises about memory: every allocation of open, load and generate may fail without a leak; generating a
 * token allocates nothing; arena and adapters take the predicted bytes, and a session takes little more than these. */
#include "test.h"

#include <malloc.h>
#include <math.h>

#include "adapter_sample.h"
#include "failing_memory.h"
#include "format/ndf_append.h"
#include "runtime/model.h"
#include "tiny_model.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static char folder[] = "/tmp/whit-memory-XXXXXX", gguf_path[64], ndf_path[64];

/* ---- every malloc of the process, unless a sanitizer replaces it ----------------------------- */

static long n_mallocs, malloc_fails_at = -1;

#if !SANITIZED
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *memory, size_t n);
extern void *__libc_memalign(size_t align, size_t n);

static bool refused(void)
{
    return __atomic_fetch_add(&n_mallocs, 1, __ATOMIC_RELAXED) == malloc_fails_at;
}

void *malloc(size_t n)
{
    return refused() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return refused() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *memory, size_t n)
{
    return refused() ? NULL : __libc_realloc(memory, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    return refused() ? NULL : __libc_memalign(align, n);
}
#endif

/* ---- open, load, generate -------------------------------------------------------------------- */

static bool ignore_text(void *user, const char *text, size_t n)
{
    (void)text;
    *(size_t *)user += n;
    return true;
}

/* Opens a model, a session and a sampler and generates; stops at the first failure. Everything is closed in any
 * case. */
static whit_status live(const char *path, const whit_allocator *allocator, const char *cache_dir, whit_error *error)
{
    whit_model *model = NULL;
    whit_session *session = NULL;
    whit_sampler *sampler = NULL;
    whit_model_options model_options = {
        .struct_bytes = sizeof model_options, .allocator = allocator, .cache_dir = cache_dir, .no_cache = !cache_dir};
    whit_session_options session_options = whit_session_options_default();
    session_options.n_threads = 2;
    session_options.n_ctx_tokens = 64;
    whit_generate_options generate = whit_generate_options_default();
    size_t n_text = 0, n_ids;
    int32_t ids[64];
    generate.n_tokens = 4;
    generate.ignore_end = true;
    generate.on_text = ignore_text;
    generate.user = &n_text;
    const char *stop[] = {"no such text"};
    generate.stop = stop;
    generate.n_stop = 1;
    whit_sampler_options sampler_options = whit_sampler_options_default();
    sampler_options.dry_multiplier = 0.5f;
    whit_status status = whit_model_open(path, &model_options, &model, error);
    if (status == WHIT_OK) status = whit_session_open(model, &session_options, &session, error);
    if (status == WHIT_OK) status = whit_sampler_open(model, &sampler_options, &sampler, error);
    if (status == WHIT_OK) status = whit_tokenize(model, "Once the time", 13, true, true, ids, 64, &n_ids, error);
    if (status == WHIT_OK) status = whit_generate(session, sampler, ids, n_ids, &generate, NULL, error);
    whit_sampler_close(sampler);
    whit_session_close(session);
    whit_model_close(model);
    return status;
}

/* The tokens that may end repetitions are searched once per model: a second sampler allocates less. */
static void a_second_sampler_takes_less(void **state)
{
    (void)state;
    struct failing failing = {.n_left = -1};
    whit_allocator allocator = {failing_alloc, failing_free, &failing};
    whit_model_options model_options = whit_model_options_default();
    whit_sampler_options options = whit_sampler_options_default();
    whit_sampler *samplers[2];
    whit_model *model;
    whit_error error;
    long n_taken[2];
    model_options.allocator = &allocator;
    model_options.no_cache = true;
    options.dry_multiplier = 0.5f;
    assert_ok(whit_model_open(gguf_path, &model_options, &model, &error), error);
    for (int i = 0; i < 2; i++) {
        failing.n_left = LONG_MAX;
        assert_ok(whit_sampler_open(model, &options, &samplers[i], &error), error);
        n_taken[i] = LONG_MAX - failing.n_left;
    }
    assert_true(n_taken[1] < n_taken[0]);
    for (int i = 0; i < 2; i++) whit_sampler_close(samplers[i]);
    whit_model_close(model);
    assert_int_equal(failing.n_live, 0);
}

static void fail_each(const char *path, const char *cache_dir)
{
    for (long n = 0;; n++) {
        struct failing failing = {.n_left = n};
        whit_allocator allocator = {failing_alloc, failing_free, &failing};
        whit_error error = {0};
        whit_status status = live(path, &allocator, cache_dir, &error);
        if (failing.n_live != 0) fail_msg("%s: allocation %ld refused: %ld not freed", path, n, failing.n_live);
        if (status == WHIT_OK && failing.n_left >= 0) {
            print_message("%s: %ld allocations\n", path, n);
            assert_true(n > 5);
            return;
        }
        /* A cache that cannot be used is no error: the conversion continues in memory. */
        if (status != WHIT_OK) assert_true(error.message[0] != 0);
        assert_true(n < 100000);
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    fail_each(gguf_path, NULL);
    fail_each(ndf_path, NULL);
}

static void every_malloc_may_fail(void **state)
{
    (void)state;
    if (SANITIZED) skip();
    whit_error error;
    long n_failed = 0;
    assert_ok(live(ndf_path, NULL, NULL, &error), error);
    for (long n = 0; n < 100000; n++) {
        long begin = __atomic_load_n(&n_mallocs, __ATOMIC_RELAXED);
        malloc_fails_at = begin + n;
        whit_status status = live(ndf_path, NULL, NULL, &error);
        bool reached = n_mallocs > malloc_fails_at;
        malloc_fails_at = -1;
        n_failed += status != WHIT_OK;
        if (!reached) break;
    }
    assert_true(n_failed > 5);
}

static void a_token_allocates_nothing(void **state)
{
    (void)state;
    whit_error error;
    struct failing failing = {.n_left = LONG_MAX};
    whit_allocator allocator = {failing_alloc, failing_free, &failing};
    whit_model *model;
    whit_session *session;
    whit_sampler *sampler;
    whit_detokenizer *detokenizer;
    whit_model_options model_options = {
        .struct_bytes = sizeof model_options, .allocator = &allocator, .no_cache = true};
    whit_session_options options = whit_session_options_default();
    options.n_sequences = 2;
    options.n_threads = 2;
    assert_ok(whit_model_open(ndf_path, &model_options, &model, &error), error);
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    assert_ok(whit_sampler_open(model, NULL, &sampler, &error), error);
    assert_ok(whit_detokenizer_open(model, true, &detokenizer, &error), error);
    int32_t id = whit_model_bos(model);
    long hooked = 0, total = 0;
    for (int i = 0; i < 200; i++) {
        if (i == 8) { /* the first uses are over */
            hooked = failing.n_left;
            total = n_mallocs;
        }
        const char *text;
        size_t n;
        whit_step_token tokens[2] = {{.sequence = 0, .id = id, .want_logits = true}, {.sequence = 1, .id = id}};
        assert_ok(whit_session_step(session, tokens, 2, &error), error);
        assert_ok(whit_sampler_pick(sampler, whit_session_logits(session, 0), &id, &error), error);
        assert_ok(whit_detokenizer_push(detokenizer, id, &text, &n, &error), error);
    }
    assert_int_equal(failing.n_left, hooked);
    assert_int_equal(n_mallocs, total);
    whit_detokenizer_close(detokenizer);
    whit_sampler_close(sampler);
    whit_session_close(session);
    whit_model_close(model);
    assert_int_equal(failing.n_live, 0);
}

static whit_status ban_one(void *user, float *logits, uint32_t n_vocab, whit_error *error)
{
    (void)error;
    logits[*(uint32_t *)user % n_vocab] = -INFINITY;
    return WHIT_OK;
}

/* Two generations at once, with guesses, stop strings, a stage and log-probabilities. */
static void nor_does_one_of_many_generations(void **state)
{
    (void)state;
    whit_error error;
    struct failing failing = {.n_left = LONG_MAX};
    whit_allocator allocator = {failing_alloc, failing_free, &failing};
    whit_model *model;
    whit_session *session;
    whit_sampler *samplers[2];
    whit_generation *all[2];
    whit_model_options model_options = {
        .struct_bytes = sizeof model_options, .allocator = &allocator, .no_cache = true};
    whit_session_options session_options = whit_session_options_default();
    session_options.n_sequences = 2;
    session_options.n_threads = 2;
    session_options.n_logits = 8;
    assert_ok(whit_model_open(ndf_path, &model_options, &model, &error), error);
    assert_ok(whit_session_open(model, &session_options, &session, &error), error);
    uint32_t banned = 7;
    size_t n_text = 0;
    const char *stops[] = {"never seen", "nor this"};
    whit_stage stage = whit_stage_default();
    stage.user = &banned;
    stage.apply = ban_one;
    const whit_stage *stages[] = {&stage};
    whit_generate_options options = whit_generate_options_default();
    options.n_tokens = 200;
    options.n_draft_tokens = 5;
    options.ignore_end = true;
    options.stop = stops;
    options.n_stop = 2;
    options.on_text = ignore_text;
    options.user = &n_text;
    options.logprobs = true;
    options.n_top_logprobs = 5;
    int32_t ids[] = {whit_model_bos(model), 260, 261, 262, 260, 261, 262, 260};
    for (uint32_t i = 0; i < 2; i++) {
        options.sequence = i;
        options.stages = stages;
        options.n_stages = i;
        assert_ok(whit_sampler_open(model, NULL, &samplers[i], &error), error);
        assert_ok(whit_generation_open(session, samplers[i], ids, 8, &options, &all[i], &error), error);
    }
    long hooked = 0, total = 0;
    size_t n_open = 2;
    for (int i = 0; n_open; i++) {
        if (i == 4) {
            hooked = failing.n_left;
            total = n_mallocs;
        }
        assert_ok(whit_generations_step(session, all, 2, &n_open, &error), error);
        if (!n_open) assert_true(i > 20);
    }
    assert_int_equal(failing.n_left, hooked);
    assert_int_equal(n_mallocs, total);
    assert_true(n_text > 100);
    for (int i = 0; i < 2; i++) {
        if (whit_generation_error(all[i])) fail_msg("%s", whit_generation_error(all[i])->message);
        whit_generation_close(all[i]);
        whit_sampler_close(samplers[i]);
    }
    whit_session_close(session);
    whit_model_close(model);
    assert_int_equal(failing.n_live, 0);
}

/* ---- predictions ----------------------------------------------------------------------------- */

static whit_adapter *make_adapter(const whit_model *model, const adapter_sample *sample)
{
    char path[80];
    whit_error error;
    whit_buf image = {0};
    whit_adapter *adapter;
    snprintf(path, sizeof path, "%s/adapter.ndf", folder);
    if (!adapter_sample_build(sample, model->file, &image, &error)) fail_msg("%s", error.message);
    assert_ok(whit_ndf_write_loose(path, WHIT_NDF_ADAPTER, "sample", image.data, image.size_bytes, NULL, &error),
              error);
    assert_ok(whit_adapter_open(model, path, &adapter, &error), error);
    whit_buf_free(&image);
    unlink(path);
    return adapter;
}

static void check_mounting(const whit_session_options *options)
{
    whit_error error;
    struct failing counted = {.n_left = -1};
    whit_allocator allocator = {failing_alloc, failing_free, &counted};
    whit_model_options model_options = {
        .struct_bytes = sizeof model_options, .allocator = &allocator, .no_cache = true};
    whit_model *model;
    assert_ok(whit_model_open(ndf_path, &model_options, &model, &error), error);
    whit_adapter *small = make_adapter(model, &(adapter_sample){.seed = 1, .rank = 3, .size = 0.1f});
    whit_adapter *large = make_adapter(model, &(adapter_sample){.seed = 2, .rank = 30, .size = 0.1f});
    const whit_mount mounts[] = {{large, 1}, {small, 0}, {small, 0.5f}}, one = {small, 1};
    size_t arena, of_one, of_three;
    assert_ok(whit_session_predict_bytes(model, options, NULL, 0, &arena, &error), error);
    assert_ok(whit_session_predict_bytes(model, options, &one, 1, &of_one, &error), error);
    assert_ok(whit_session_predict_bytes(model, options, mounts, 3, &of_three, &error), error);
    assert_true(arena < of_one && of_one < of_three);

    whit_session *session;
    assert_ok(whit_session_open(model, options, &session, &error), error);
    assert_int_equal(whit_session_arena_bytes(session), arena);
    size_t before = counted.live_bytes, last = options->n_sequences - 1;
    assert_ok(whit_session_mount(session, 0, &one, 1, &error), error);
    assert_int_equal(counted.live_bytes - before, of_one - arena);
    assert_ok(whit_session_mount(session, (uint32_t)last, mounts, 3, &error), error);
    assert_int_equal(counted.live_bytes - before, of_three - arena);
    assert_ok(whit_session_mount(session, 0, &one, 1, &error), error);
    whit_step_token tokens[] = {{.id = 1}, {.sequence = (uint32_t)last, .id = 2}};
    assert_ok(whit_session_step(session, tokens, 2, &error), error);
    assert_int_equal(counted.live_bytes - before, of_three - arena);

    whit_mount many[WHIT_MOUNTS_MAX + 1];
    for (int i = 0; i <= WHIT_MOUNTS_MAX; i++) many[i] = one;
    assert_int_equal(whit_session_predict_bytes(model, options, many, WHIT_MOUNTS_MAX + 1, &arena, &error),
                     WHIT_ERROR_LIMIT);
    assert_int_equal(arena, 0);
    whit_session_close(session);
    whit_adapter_close(small), whit_adapter_close(large);
    whit_model_close(model);
    assert_int_equal(counted.live_bytes, 0);
}

static void adapters_take_what_was_predicted(void **state)
{
    (void)state;
    whit_session_options options = whit_session_options_default();
    options.n_threads = 1;
    check_mounting(&options);
    options.n_sequences = 3;
    options.n_batch_tokens = 40;
    check_mounting(&options);
    options.no_fuse = true; /* no two matrices are fused */
    check_mounting(&options);
}

static size_t resident_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%*u %lu", &pages) != 1) pages = 0;
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

enum { N_CTX = 1024, N_STEP = 512 };

/* Fills every sequence of a session, N_STEP tokens at a time. */
static void fill(whit_session *session, uint32_t n_sequences)
{
    whit_error error;
    for (uint32_t q = 0; q < n_sequences; q++)
        for (uint32_t i = 0; i < N_CTX; i += N_STEP) {
            whit_step_token tokens[N_STEP];
            for (uint32_t k = 0; k < N_STEP; k++)
                tokens[k] =
                    (whit_step_token){.sequence = q, .id = (int32_t)((i + k) % TINY_N_VOCAB), .want_logits = k == 0};
            assert_ok(whit_session_step(session, tokens, N_STEP, &error), error);
        }
}

static void a_session_takes_what_was_predicted(void **state)
{
    (void)state;
    if (SANITIZED) skip(); /* the sanitizer's shadow memory would be counted */
    enum { N_SEQUENCES = 4, RANK = 1000 };
    char path[80];
    whit_error error;
    whit_model *model;
    whit_session *session;
    tiny_model tiny = {
        .seed = 3, .n_layers = 8, .n_embd = 128, .n_ff = 64, .n_heads = 2, .n_kv_heads = 2, .n_ctx = N_CTX};
    snprintf(path, sizeof path, "%s/wide.gguf", folder);
    assert_true(tiny_model_write(&tiny, path));
    whit_model_options model_options = {.struct_bytes = sizeof model_options, .no_cache = true};
    assert_ok(whit_model_open(path, &model_options, &model, &error), error);
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = N_CTX;
    options.kv = WHIT_KV_F32;
    options.act = WHIT_ACT_F32;
    /* The adapter has one matrix, so that its scratch is large compared with its factors. */
    whit_adapter *adapter = make_adapter(model, &(adapter_sample){.rank = RANK, .n_matrices = 1, .size = 0.1f});
    const whit_mount mount = {adapter, 1};
    /* A smaller session runs first, because the first use touches mapped weights and factors, and under an emulator the
     * code's translation grows by whole huge pages. */
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    assert_ok(whit_session_mount(session, 0, &mount, 1, &error), error);
    fill(session, 1);
    whit_session_close(session);
    malloc_trim(0); /* otherwise freed pages could hide new allocations */
    options.n_sequences = N_SEQUENCES;
    size_t predicted, before = resident_bytes();
    assert_ok(whit_session_predict_bytes(model, &options, &mount, 1, &predicted, &error), error);
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    assert_true((double)predicted > 1.1 * (double)whit_session_arena_bytes(session));
    assert_ok(whit_session_mount(session, 0, &mount, 1, &error), error);
    fill(session, N_SEQUENCES);
    size_t taken = resident_bytes() - before;
    print_message("predicted %zu, taken %zu\n", predicted, taken);
    assert_true((double)taken <= 1.05 * (double)predicted);
    assert_true((double)taken >= 0.95 * (double)predicted);
    whit_session_close(session);
    whit_adapter_close(adapter);
    whit_model_close(model);
    unlink(path);
}

static int make_models(void **state)
{
    (void)state;
    tiny_model tiny = tiny_model_default();
    if (!mkdtemp(folder)) return -1;
    snprintf(gguf_path, sizeof gguf_path, "%s/tiny.gguf", folder);
    snprintf(ndf_path, sizeof ndf_path, "%s/tiny.ndf", folder);
    if (!tiny_model_write(&tiny, gguf_path)) return -1;
    /* The cache's file is used as the .ndf file. */
    char cache[64], command[256];
    whit_error error;
    whit_model *model;
    snprintf(cache, sizeof cache, "%s/cache", folder);
    whit_model_options options = {.struct_bytes = sizeof options, .cache_dir = cache};
    if (whit_model_open(gguf_path, &options, &model, &error) != WHIT_OK) return -1;
    whit_model_close(model);
    snprintf(command, sizeof command, "mv %s/*.ndf %s && rm -r %s", cache, ndf_path, cache);
    return system(command);
}

static int remove_models(void **state)
{
    (void)state;
    unlink(gguf_path);
    unlink(ndf_path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_sampler_takes_less),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_malloc_may_fail),
        cmocka_unit_test(a_token_allocates_nothing),
        cmocka_unit_test(nor_does_one_of_many_generations),
        cmocka_unit_test(adapters_take_what_was_predicted),
        cmocka_unit_test(a_session_takes_what_was_predicted),
    };
    return cmocka_run_group_tests_name("memory", tests, make_models, remove_models);
}
