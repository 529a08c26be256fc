/* SPDX-License-Identifier: MIT
 * A model that several ranks run together, here threads of one process: the same logits as in one process, to the bit,
 * for every KV type, batches and calls that change sequences; each rank's heads and tiles; messages and bytes as the
 * documents state them (docs/use/fleet.md). */
#include "test_folder.h"

#include "base/rng.h"
#include "loopback_ranks.h"
#include "runtime/split.h"
#include "tiny_model.h"

enum { N_CTX = 384, N_SEQUENCES = 3, RANKS_MAX = 4, N_PROMPT = 150 };

/* ---- ranks ----------------------------------------------------------------------------------- */

struct follower {
    pthread_t thread;
    const char *path;
    whit_ranks ranks;
    loopback_rank own;
    whit_status status;
    whit_error error;
};

struct world {
    loopback all;
    uint32_t n_ranks;
    struct follower ranks[RANKS_MAX]; /* [0] is the caller's own */
    whit_model *model;
};

static void *follow(void *context)
{
    struct follower *f = context;
    whit_model *model;
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    f->status = whit_model_open(f->path, &options, &model, &f->error);
    if (f->status == WHIT_OK) f->status = whit_model_split(model, &f->ranks, &f->error);
    if (f->status == WHIT_OK) f->status = whit_model_follow(model, &f->error);
    if (f->status != WHIT_OK) loopback_cut(f->own.all); /* else the others would wait forever */
    whit_model_close(model);
    return NULL;
}

/* Starts the other ranks with model `other`, and opens model `path` as rank 0. */
static whit_status open_world(struct world *world, uint32_t n_ranks, const char *path, const char *other,
                              whit_error *error)
{
    world->n_ranks = n_ranks;
    loopback_open(&world->all, n_ranks);
    for (uint32_t r = 0; r < n_ranks; r++) {
        struct follower *f = &world->ranks[r];
        f->path = other;
        f->ranks = loopback_ranks(&world->all, r, &f->own);
        if (r) assert_int_equal(pthread_create(&f->thread, NULL, follow, f), 0);
    }
    world->model = open_model_at(path);
    return whit_model_split(world->model, &world->ranks[0].ranks, error);
}

static void close_world(struct world *world)
{
    whit_model_close(world->model);
    for (uint32_t r = 1; r < world->n_ranks; r++) pthread_join(world->ranks[r].thread, NULL);
    loopback_close(&world->all);
}

/* ---- a run ----------------------------------------------------------------------------------- */

static whit_session_options options_of(whit_kv_type kv, whit_act_type act)
{
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = N_CTX;
    options.n_sequences = N_SEQUENCES;
    options.n_batch_tokens = 48;
    options.n_logits = 48;
    options.n_threads = 2;
    options.kv = kv;
    options.act = act;
    return options;
}

static void add_logits(whit_hash *hash, const whit_session *session, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float *logits = whit_session_logits(session, i);
        assert_non_null(logits);
        whit_hash_add(hash, logits, whit_model_vocab_size(session->model) * sizeof *logits);
    }
}

static void feed(whit_session *session, uint32_t sequence, const int32_t *ids, uint32_t n, whit_hash *hash)
{
    whit_error error;
    whit_step_token tokens[N_PROMPT];
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = (whit_step_token){.sequence = sequence, .id = ids[i], .want_logits = i + 5 >= n};
    assert_ok(whit_session_step(session, tokens, n, &error), error);
    add_logits(hash, session, n < 5 ? n : 5);
}

/* Prompts, steps of several sequences, and every call that changes one; the hash of all logits on the way. */
static void play(const whit_model *model, const whit_session_options *options, uint8_t digest[WHIT_HASH_BYTES])
{
    whit_error error;
    whit_session *session;
    whit_hash hash;
    whit_rng rng = {7};
    int32_t ids[N_CTX];
    uint32_t n_present;
    for (uint32_t i = 0; i < N_CTX; i++) ids[i] = (int32_t)whit_rng_below(&rng, whit_model_vocab_size(model));
    whit_hash_begin(&hash, "test.split");
    assert_ok(whit_session_open(model, options, &session, &error), error);
    feed(session, 0, ids, N_PROMPT, &hash);
    feed(session, 1, ids + 7, 3, &hash);
    for (uint32_t i = 0; i < 6; i++) { /* several sequences, and sequences that end */
        whit_step_token tokens[N_SEQUENCES];
        const uint32_t n = 1 + i % N_SEQUENCES;
        for (uint32_t q = 0; q < n; q++)
            tokens[q] = (whit_step_token){.sequence = q, .id = ids[20 * q + i], .want_logits = true, .n_top = 4};
        assert_ok(whit_session_step(session, tokens, n, &error), error);
        add_logits(&hash, session, n);
    }
    assert_ok(whit_session_truncate(session, 0, N_PROMPT - 9, &error), error);
    feed(session, 0, ids + 100, 2, &hash);
    assert_ok(whit_session_share(session, 0, 2, whit_session_position(session, 0), &error), error);
    feed(session, 2, ids + 60, 4, &hash);
    assert_ok(whit_session_mark(session, 2, &error), error);
    assert_ok(whit_session_truncate(session, 1, 0, &error), error);
    assert_ok(whit_session_reuse(session, 1, ids, 140, &n_present, &error), error);
    feed(session, 1, ids + n_present, 140 - n_present, &hash);
    assert_int_not_equal(whit_session_truncate(session, 1, N_CTX, &error), WHIT_OK); /* told to nobody */
    feed(session, 1, ids, 1, &hash);
    whit_session_close(session);
    whit_hash_end(&hash, digest);
}

static void check_same(const char *path, whit_kv_type kv, whit_act_type act)
{
    uint8_t whole[WHIT_HASH_BYTES], split[WHIT_HASH_BYTES];
    const whit_session_options options = options_of(kv, act);
    whit_model *model = open_model_at(path);
    play(model, &options, whole);
    whit_model_close(model);
    for (uint32_t n = 2; n <= RANKS_MAX; n++) {
        whit_error error;
        struct world world;
        assert_ok(open_world(&world, n, path, path, &error), error);
        play(world.model, &options, split);
        close_world(&world);
        for (uint32_t r = 1; r < n; r++) assert_ok(world.ranks[r].status, world.ranks[r].error);
        if (memcmp(whole, split, sizeof whole) != 0) print_message("%s: kv %d, %u ranks\n", path, kv, n);
        assert_memory_equal(whole, split, sizeof whole);
    }
}

static void every_kv_type_gives_the_same_bits(void **state)
{
    (void)state;
    for (int kv = 0; kv < WHIT_KV_TYPES; kv++) check_same(in_folder("plain.gguf"), (whit_kv_type)kv, WHIT_ACT_I8);
}

static void every_matrix_gives_the_same_bits(void **state)
{
    (void)state;
    check_same(in_folder("plain.gguf"), WHIT_KV_F16, WHIT_ACT_F32);
    check_same(in_folder("q8.gguf"), WHIT_KV_F16, WHIT_ACT_I8);
    check_same(in_folder("k4.gguf"), WHIT_KV_F16, WHIT_ACT_I8);
    check_same(in_folder("ternary.gguf"), WHIT_KV_I8, WHIT_ACT_I8);
    check_same(in_folder("one_head.gguf"), WHIT_KV_K4V2, WHIT_ACT_I8);
}

/* ---- fixtures -------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    tiny_model tiny = tiny_model_default();
    if (make_folder(state) || !tiny_model_write(&tiny, in_folder("plain.gguf"))) return -1;
    tiny.n_embd = 256;
    tiny.n_ff = 768;
    tiny.n_heads = 8;
    tiny.n_kv_heads = 4;
    tiny.kind = WHIT_GGML_Q8_0;
    if (!tiny_model_write(&tiny, in_folder("q8.gguf"))) return -1;
    tiny.kind = WHIT_GGML_Q4_K;
    tiny.n_kv_heads = 2;
    if (!tiny_model_write(&tiny, in_folder("k4.gguf"))) return -1;
    tiny.kind = WHIT_GGML_TQ2_0;
    tiny.n_heads = 4;
    tiny.tied_head = true;
    if (!tiny_model_write(&tiny, in_folder("ternary.gguf"))) return -1;
    tiny.n_kv_heads = 1;
    tiny.kind = WHIT_GGML_Q8_0;
    return tiny_model_write(&tiny, in_folder("one_head.gguf")) ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kv_type_gives_the_same_bits),
        cmocka_unit_test(every_matrix_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, set_up, remove_folder);
}
