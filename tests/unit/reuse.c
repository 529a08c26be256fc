/* SPDX-License-Identifier: MIT
 * Tests the reuse of stored prefixes: reused blocks are those that would be computed with the mounted adapters, also
 * when memory is short and blocks are overwritten. */
#include "test_folder.h"

#include "adapter_sample.h"
#include "base/rng.h"
#include "format/ndf_append.h"
#include "runtime/session.h"
#include "tiny_model.h"

enum { N_CTX = 256, N_SEQUENCES = 3, N_ADAPTERS = 2 };

static whit_model *model;
static whit_adapter *adapters[N_ADAPTERS];

static int set_up(void **state)
{
    tiny_model tiny = tiny_model_default();
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    whit_error error;
    if (make_folder(state) || !tiny_model_write(&tiny, in_folder("a.gguf"))) return -1;
    if (whit_model_open(in_folder("a.gguf"), &options, &model, &error) != WHIT_OK) return -1;
    for (uint64_t i = 0; i < N_ADAPTERS; i++) {
        whit_buf image = {0};
        adapter_sample sample = {.seed = i, .rank = 3, .size = 0.3f};
        const char *path = in_folder(i ? "1.ndf" : "0.ndf");
        if (!adapter_sample_build(&sample, model->file, &image, &error) ||
            whit_ndf_write_loose(path, WHIT_NDF_ADAPTER, "a", image.data, image.size_bytes, NULL, &error) != WHIT_OK ||
            whit_adapter_open(model, path, &adapters[i], &error) != WHIT_OK)
            return -1;
        whit_buf_free(&image);
    }
    return 0;
}

static int tear_down(void **state)
{
    for (int i = 0; i < N_ADAPTERS; i++) whit_adapter_close(adapters[i]);
    whit_model_close(model);
    return remove_folder(state);
}

static whit_session *open_session(uint32_t n_sequences)
{
    whit_error error;
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = N_CTX;
    options.n_sequences = n_sequences;
    options.n_threads = 1;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    return session;
}

/* Feeds ids [from, n). Returns the logits of the last. */
static const float *feed(whit_session *session, uint32_t sequence, const int32_t *ids, size_t from, size_t n)
{
    whit_error error;
    whit_step_token tokens[N_CTX];
    for (size_t i = from; i < n; i++)
        tokens[i - from] = (whit_step_token){.sequence = sequence, .id = ids[i], .want_logits = i + 1 == n};
    assert_ok(whit_session_step(session, tokens, n - from, &error), error);
    return whit_session_logits(session, 0);
}

static void fill(int32_t *ids, size_t from, size_t n, uint64_t seed)
{
    whit_rng rng = {seed};
    for (size_t i = from; i < n; i++) ids[i] = 259 + (int32_t)whit_rng_below(&rng, TINY_N_PIECES);
}

static void one_prompt_serves_many(void **state)
{
    (void)state;
    whit_error error;
    int32_t ids[N_CTX];
    uint32_t n_present;
    enum { PROMPT = 200, N = 210 };
    whit_session *session = open_session(8), *alone = open_session(1);
    fill(ids, 0, PROMPT, 1);
    for (uint32_t q = 0; q < 8; q++) {
        fill(ids, PROMPT, N, 100 + q);
        assert_ok(whit_session_reuse(session, q, ids, N, &n_present, &error), error);
        assert_int_equal(n_present, q ? 192 : 0); /* only the first sequence computes the prompt */
        const float *logits = feed(session, q, ids, n_present, N);
        assert_ok(whit_session_truncate(alone, 0, 0, &error), error);
        assert_memory_equal(logits, feed(alone, 0, ids, 0, N), whit_model_vocab_size(model) * sizeof *logits);
    }
    /* Three common blocks of the prompt, and a last one for each sequence. */
    uint32_t n_used = 0;
    for (uint32_t b = 0; b < session->kv.classes[0].pool.n_blocks; b++)
        n_used += session->kv.classes[0].pool.references[b] > 0;
    assert_int_equal(n_used, 3 + 8);
    whit_session_close(session);
    whit_session_close(alone);
}

static void ended_sequences_are_found(void **state)
{
    (void)state;
    whit_error error;
    int32_t ids[N_CTX], others[N_CTX];
    uint32_t n_present;
    whit_session *session = open_session(1);
    whit_mount mount = {adapters[0], 0.5f};
    fill(ids, 0, N_CTX, 1);
    fill(others, 0, N_CTX, 2);
    feed(session, 0, ids, 0, 150);
    assert_ok(whit_session_truncate(session, 0, 0, &error), error);
    assert_ok(whit_session_reuse(session, 0, ids, N_CTX, &n_present, &error), error);
    assert_int_equal(n_present, 128);
    /* A sequence's own tokens are reused one by one; if the whole prompt is present, its last token is still left to
     * compute. */
    feed(session, 0, ids, 128, 150);
    assert_ok(whit_session_reuse(session, 0, ids, 145, &n_present, &error), error);
    assert_int_equal(n_present, 144);
    assert_ok(whit_session_reuse(session, 0, ids, 128, &n_present, &error), error);
    assert_int_equal(n_present, 127);
    /* After truncation and another continuation from the middle of a block, the old block is still found. */
    assert_ok(whit_session_truncate(session, 0, 100, &error), error);
    feed(session, 0, others, 100, 130);
    assert_ok(whit_session_reuse(session, 0, ids, N_CTX, &n_present, &error), error);
    assert_int_equal(n_present, 128);
    /* A text with few common tokens must not overwrite the block. */
    assert_ok(whit_session_truncate(session, 0, 5, &error), error);
    feed(session, 0, others, 5, 70);
    assert_ok(whit_session_reuse(session, 0, ids, N_CTX, &n_present, &error), error);
    assert_int_equal(n_present, 128);
    /* With an adapter nothing may be reused; without it again, the blocks may. */
    assert_ok(whit_session_truncate(session, 0, 0, &error), error);
    assert_ok(whit_session_mount(session, 0, &mount, 1, &error), error);
    assert_ok(whit_session_reuse(session, 0, ids, N_CTX, &n_present, &error), error);
    assert_int_equal(n_present, 0);
    feed(session, 0, ids, 0, 70);
    assert_ok(whit_session_mount(session, 0, NULL, 0, &error), error);
    assert_ok(whit_session_reuse(session, 0, ids, 80, &n_present, &error), error);
    assert_int_equal(n_present, 64); /* the block computed without the adapter, not the 70 tokens computed with it */
    /* The memory has four blocks: another text takes them all. */
    assert_ok(whit_session_truncate(session, 0, 0, &error), error);
    feed(session, 0, others, 0, N_CTX);
    assert_ok(whit_session_reuse(session, 0, ids, N_CTX, &n_present, &error), error);
    assert_int_equal(n_present, 0);
    whit_session_close(session);
}

/* The prefix cache as reported by its events. */
static struct mirror {
    uint8_t keys[64][WHIT_CACHE_KEY_BYTES];
    size_t n, n_stored, n_removed;
} mirror;

static size_t find_key(const uint8_t *key)
{
    size_t i = 0;
    while (i < mirror.n && memcmp(mirror.keys[i], key, WHIT_CACHE_KEY_BYTES) != 0) i++;
    return i;
}

static void follow_event(void *user, const whit_cache_event *event)
{
    const whit_session *session = user;
    const size_t at = find_key(event->key);
    if (event->ids) {
        uint8_t key[WHIT_HASH_BYTES];
        assert_int_equal(at, mirror.n);
        assert_in_range(mirror.n, 0, 63);
        memcpy(mirror.keys[mirror.n++], event->key, WHIT_CACHE_KEY_BYTES);
        mirror.n_stored++;
        /* The event's ids and parent must be those of the sequence for which the block was computed. */
        const int32_t *ids = whit_session_tokens_of(session, event->sequence);
        const uint32_t b = (uint32_t)(event->ids - ids) / WHIT_CACHE_BLOCK_TOKENS;
        assert_int_equal(event->parent == NULL, b == 0);
        whit_session_block_key(session, event->sequence, b, key);
        if (event->parent) assert_memory_equal(event->parent, key, sizeof key);
    } else {
        assert_true(at < mirror.n);
        memmove(mirror.keys[at], mirror.keys[--mirror.n], WHIT_CACHE_KEY_BYTES);
        mirror.n_removed++;
    }
}

static void compare_with_mirror(whit_session *session)
{
    uint32_t n_blocks, n_found;
    whit_session_count_blocks(session, &n_blocks, &n_found);
    assert_int_equal(n_found, mirror.n);
    assert_true(n_found <= n_blocks);
    const whit_kv_pool *pool = &whit_kv_told_class(&session->kv)->pool;
    assert_int_equal(n_blocks, pool->n_blocks);
    for (size_t i = 0; i < mirror.n; i++) assert_true(whit_kv_pool_knows(pool, mirror.keys[i]));
}

/* Prompts from a tree with few branches, adapters that are mounted and unmounted, truncation anywhere: logits must be
 * those of a session that computes everything. */
static void is_what_would_be_computed(void **state)
{
    (void)state;
    whit_error error;
    whit_rng rng = {7};
    whit_session *session = open_session(N_SEQUENCES), *plain = open_session(1);
    size_t n_vocab = whit_model_vocab_size(model), n_found = 0;
    mirror = (struct mirror){.n = 0};
    whit_session_watch_cache(session, follow_event, session);
    const int rounds = tests_are_brief() ? 20 : 150;
    for (int round = 0; round < rounds; round++) {
        int32_t ids[N_CTX];
        uint32_t n_present, sequence = (uint32_t)whit_rng_below(&rng, N_SEQUENCES);
        size_t n = 40 + (size_t)whit_rng_below(&rng, N_CTX - 40);
        for (size_t at = 0; at < N_CTX; at += 48) /* pieces that are not whole blocks */
            fill(ids, at, at + 48 < N_CTX ? at + 48 : N_CTX, at + whit_rng_below(&rng, at ? 2 : 1));
        whit_mount mount = {adapters[whit_rng_below(&rng, N_ADAPTERS)], 0.5f};
        size_t n_mounts = (size_t)whit_rng_below(&rng, 2);
        if (whit_rng_below(&rng, 3) == 0)
            assert_ok(whit_session_mount(session, sequence, &mount, n_mounts, &error), error);
        mount = session->mounts[sequence].items[0];
        assert_ok(whit_session_reuse(session, sequence, ids, n, &n_present, &error), error);
        n_found += n_present;
        const float *logits = feed(session, sequence, ids, n_present, n);
        assert_ok(whit_session_truncate(plain, 0, 0, &error), error);
        assert_ok(whit_session_mount(plain, 0, &mount, session->mounts[sequence].n, &error), error);
        assert_memory_equal(logits, feed(plain, 0, ids, 0, n), n_vocab * sizeof *logits);
        uint32_t cut = (uint32_t)whit_rng_below(&rng, n + 1);
        if (whit_rng_below(&rng, 2)) assert_ok(whit_session_truncate(session, sequence, cut, &error), error);
        if (whit_rng_below(&rng, 4) == 0) {
            uint32_t to = (uint32_t)whit_rng_below(&rng, N_SEQUENCES);
            cut = whit_session_position(session, sequence);
            assert_ok(whit_session_share(session, sequence, to, cut, &error), error);
        }
        compare_with_mirror(session);
    }
    assert_true(mirror.n_stored > (size_t)rounds / 2 && mirror.n_removed > (size_t)rounds / 2);
    assert_true(n_found > (size_t)rounds * 20);
    whit_session_close(session);
    whit_session_close(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_prompt_serves_many),
        cmocka_unit_test(ended_sequences_are_found),
        cmocka_unit_test(is_what_would_be_computed),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
