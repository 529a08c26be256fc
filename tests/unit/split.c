/* SPDX-License-Identifier: MIT
 * Tests a model that several ranks run together, here threads of one process: the logits of one process, to the bit,
 * for every KV type, batches and calls that change sequences; each rank's heads and tiles; and messages and bytes as
 * in docs/dev/perf/ranks.md. */
#include "test_folder.h"

#include "base/rng.h"
#include "loopback_ranks.h"
#include "model/convert.h"
#include "model/plan_split.h"
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

/* The ranks of the running test. Not on its stack, which is left when an assertion fails while the other ranks still
 * wait. */
static struct world {
    loopback all;
    uint32_t n_ranks;                 /* 0: no ranks */
    struct follower ranks[RANKS_MAX]; /* ranks[0] is the caller's */
    whit_model *model;
} world;

static void *follow(void *context)
{
    struct follower *f = context;
    whit_model *model;
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    f->status = whit_model_open(f->path, &options, &model, &f->error);
    if (f->status == WHIT_OK) f->status = whit_model_split(model, &f->ranks, &f->error);
    if (f->status == WHIT_OK) f->status = whit_model_follow(model, &f->error);
    if (f->status != WHIT_OK) loopback_cut(f->own.all); /* otherwise the other ranks would wait forever */
    whit_model_close(model);
    return NULL;
}

/* Starts the other ranks with the model at `path`. */
static void start_others(uint32_t n_ranks, const char *path)
{
    memset(&world, 0, sizeof world);
    loopback_open(&world.all, n_ranks);
    for (uint32_t r = 0; r < n_ranks; r++) {
        struct follower *f = &world.ranks[r];
        f->path = path;
        f->ranks = loopback_ranks(&world.all, r, &f->own);
        if (r) assert_int_equal(pthread_create(&f->thread, NULL, follow, f), 0);
        world.n_ranks = r + 1;
    }
}

/* Starts the other ranks with the model at `other`, and opens the one at `path` as rank 0. */
static whit_status open_world(uint32_t n_ranks, const char *path, const char *other, whit_error *error)
{
    start_others(n_ranks, other);
    world.model = open_model_at(path);
    return whit_model_split(world.model, &world.ranks[0].ranks, error);
}

static void close_world(void)
{
    whit_model_close(world.model);
    for (uint32_t r = 1; r < world.n_ranks; r++) pthread_join(world.ranks[r].thread, NULL);
    loopback_close(&world.all);
    world.n_ranks = 0;
}

/* Ends the ranks of a test that failed before it closed them. Rank 0's model may have open sessions and is not
 * closed. */
static int end_world(void **state)
{
    (void)state;
    if (!world.n_ranks) return 0;
    loopback_cut(&world.all);
    world.model = NULL;
    close_world();
    return 0;
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

/* Runs prompts, steps of several sequences, and every call that changes one. `digest` becomes the hash of all
 * logits. */
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
    for (uint32_t i = 0; i < 6; i++) { /* steps of one to N_SEQUENCES sequences */
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
    assert_int_not_equal(whit_session_truncate(session, 1, N_CTX, &error), WHIT_OK); /* refused before ranks are told */
    feed(session, 1, ids, 1, &hash);
    whit_session_close(session);
    whit_hash_end(&hash, digest);
}

static void check_same(const char *path, whit_kv_type kv, whit_act_type act, uint32_t n_min, uint32_t n_max)
{
    uint8_t whole[WHIT_HASH_BYTES], split[WHIT_HASH_BYTES];
    const whit_session_options options = options_of(kv, act);
    whit_model *model = open_model_at(path);
    play(model, &options, whole);
    whit_model_close(model);
    for (uint32_t n = n_min; n <= n_max; n++) {
        whit_error error;
        assert_ok(open_world(n, path, path, &error), error);
        play(world.model, &options, split);
        close_world();
        for (uint32_t r = 1; r < n; r++) assert_ok(world.ranks[r].status, world.ranks[r].error);
        if (memcmp(whole, split, sizeof whole) != 0) print_message("%s: kv %d, %u ranks\n", path, kv, n);
        assert_memory_equal(whole, split, sizeof whole);
    }
}

static void every_kv_type_gives_the_same_bits(void **state)
{
    (void)state;
    check_same(in_folder("plain.gguf"), WHIT_KV_F16, WHIT_ACT_I8, 2, RANKS_MAX);
    for (uint32_t kv = WHIT_KV_F16 + 1; kv < WHIT_KV_TYPES; kv++) /* 2, 3 or 4 ranks */
        check_same(in_folder("plain.gguf"), (whit_kv_type)kv, WHIT_ACT_I8, 2 + kv % 3, 2 + kv % 3);
}

static void every_matrix_gives_the_same_bits(void **state)
{
    (void)state;
    check_same(in_folder("plain.gguf"), WHIT_KV_F16, WHIT_ACT_F32, 2, 2);
    check_same(in_folder("q8.gguf"), WHIT_KV_F16, WHIT_ACT_I8, 2, RANKS_MAX);
    check_same(in_folder("k4.gguf"), WHIT_KV_F16, WHIT_ACT_I8, 3, 3);
    check_same(in_folder("ternary.gguf"), WHIT_KV_I8, WHIT_ACT_I8, 4, 4);
    check_same(in_folder("one_head.gguf"), WHIT_KV_K4V2, WHIT_ACT_I8, 3, 3);
}

static void every_family_gives_the_same_bits(void **state)
{
    static const char *const names[] = {"bitnet-b158",   "gemma3-text", "gemma4-e2b",    "gemma4-moe", "granite",
                                        "gpt-oss",       "lfm2",        "lfm2-moe",      "maple",      "olmo3",
                                        "phi3-longrope", "qwen3-moe",   "qwen35-hybrid", "qwen35-moe"};
    (void)state;
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[2048];
        snprintf(path, sizeof path, "%s/models-tiny/%s/hf", WHIT_SHARED_DIR, names[i]);
        if (access(path, R_OK) != 0) {
            print_message("skipped: no %s\n", path);
            continue;
        }
        /* the heads of states are divided differently for each rank count */
        const bool is_hybrid = !strcmp(names[i], "qwen35-hybrid");
        const uint32_t n = 2 + i % 3;
        check_same(path, i % 2 ? WHIT_KV_I8 : WHIT_KV_F16, WHIT_ACT_I8, is_hybrid ? 2 : n, is_hybrid ? RANKS_MAX : n);
    }
}

/* ---- a screened head -------------------------------------------------------------------------- */

static void convert_head(const char *from, const char *to)
{
    whit_error error;
    whit_source source;
    whit_ndf_writer *writer;
    const whit_convert_options options = {.head = "i8s"};
    assert_ok(whit_source_open(from, NULL, &source, &error), error);
    assert_ok(whit_ndf_writer_open(to, NULL, NULL, &writer, &error), error);
    assert_ok(whit_convert(&source, &options, writer, &error), error);
    whit_ndf_writer_close(writer);
    whit_source_close(&source);
}

/* Checks that the n_top largest logits of `exact` are in `found` with the same bits, and that all others of `found` are
 * below them. */
static void check_top(const float *exact, const float *found, uint32_t n, uint32_t n_top)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t n_above = 0, n_found_above = 0;
        for (uint32_t j = 0; j < n; j++) {
            n_above += exact[j] > exact[i] || (exact[j] == exact[i] && j < i);
            n_found_above += found[j] > found[i] || (found[j] == found[i] && j < i);
        }
        assert_int_equal(n_above < n_top, n_found_above < n_top);
        if (n_above < n_top) assert_memory_equal(&exact[i], &found[i], sizeof *exact);
    }
}

static void a_screened_head_has_the_same_largest_logits(void **state)
{
    (void)state;
    whit_error error;
    const char *path = in_folder("screened.ndf");
    whit_model *model = open_model_at(path);
    const uint32_t n_vocab = (uint32_t)whit_model_vocab_size(model);
    for (uint32_t n = 2; n <= RANKS_MAX; n++) {
        whit_session *whole, *split;
        uint32_t n_estimated = 0;
        whit_session_options options = options_of(WHIT_KV_F16, WHIT_ACT_I8);
        assert_ok(open_world(n, path, path, &error), error);
        assert_ok(whit_session_open(world.model, &options, &split, &error), error);
        options.exact_head = true;
        assert_ok(whit_session_open(model, &options, &whole, &error), error);
        for (uint32_t i = 0; i < 24; i++) {
            whit_step_token tokens[N_SEQUENCES];
            const uint32_t n_tokens = 1 + i % N_SEQUENCES, n_top = i % 4 ? 1 : 1 + i;
            for (uint32_t q = 0; q < n_tokens; q++)
                tokens[q] = (whit_step_token){.sequence = q,
                                              .id = (int32_t)((7 + 31 * i + 5 * q) % n_vocab),
                                              .want_logits = true,
                                              .n_top = n_top};
            assert_ok(whit_session_step(whole, tokens, n_tokens, &error), error);
            assert_ok(whit_session_step(split, tokens, n_tokens, &error), error);
            for (uint32_t q = 0; q < n_tokens; q++) {
                const float *exact = whit_session_logits(whole, q), *found = whit_session_logits(split, q);
                check_top(exact, found, n_vocab, n_top);
                for (uint32_t j = 0; j < n_vocab; j++) n_estimated += memcmp(&exact[j], &found[j], sizeof *exact) != 0;
                assert_true(split->exec.n_rescored[q] <= (n_vocab + n - 1) / n + WHIT_TILE_ROWS);
            }
        }
        assert_true(n_estimated > 0);
        whit_session_close(whole);
        whit_session_close(split);
        close_world();
        for (uint32_t r = 1; r < n; r++) assert_ok(world.ranks[r].status, world.ranks[r].error);
    }
    whit_model_close(model);
}

/* ---- messages, bytes, and the parts of a rank ------------------------------------------------ */

/* Returns the bytes that all ranks together receive of a value, without their own shares: f32, or (group not 0) int8 in
 * groups with a scale and a sum each. */
static uint64_t exchanged(uint32_t width, uint32_t group, uint32_t n_ranks)
{
    return (uint64_t)(n_ranks - 1) * (group ? width + width / group * 8 : width * 4);
}

static void bytes_are_those_of_the_formula(void **state)
{
    const struct {
        const char *name;
        uint32_t n_embd, n_ff, group;
    } models[] = {{"plain.gguf", 64, 96, 0}, {"q8.gguf", 256, 768, 32}};
    (void)state;
    for (size_t m = 0; m < 2; m++)
        for (uint32_t n = 2; n <= RANKS_MAX; n++) {
            whit_error error;
            whit_session *session;
            const uint32_t n_layers = 2, n_others = n - 1;
            const whit_session_options options = options_of(WHIT_KV_F16, WHIT_ACT_I8);
            const whit_step_token token = {.id = 5, .want_logits = true};
            const char *path = in_folder(models[m].name);
            assert_ok(open_world(n, path, path, &error), error);
            assert_ok(whit_session_open(world.model, &options, &session, &error), error);
            assert_ok(whit_session_step(session, &token, 1, &error), error); /* the first step is over on all ranks */
            const uint64_t messages = world.all.n_messages, bytes = world.all.n_bytes;
            const whit_model_ranks told = *world.model->split;
            assert_ok(whit_session_step(session, &token, 1, &error), error);
            const uint64_t n_told = world.model->split->n_messages - told.n_messages;
            const uint64_t told_bytes = world.model->split->sent_bytes - told.sent_bytes;
            const uint32_t units = (TINY_N_VOCAB + 15) / 16, own = units / n * 16;
            const uint64_t layer = 2 * exchanged(models[m].n_embd, 0, n) +
                exchanged(models[m].n_embd, models[m].group, n) + exchanged(models[m].n_ff, models[m].group, n);
            assert_int_equal(n_told, 2 * n_others);
            assert_true(told_bytes <= 512 * n_others);
            assert_int_equal(world.all.n_bytes - bytes, n_layers * layer + 4 * (TINY_N_VOCAB - own) + told_bytes);
            /* With more ranks than KV heads, the additional ranks have no part of the attention's result. */
            const uint32_t n_senders = n < (m ? 4u : 2u) ? n : m ? 4 : 2;
            assert_int_equal(world.all.n_messages - messages,
                             n_layers * (3 * n + n_senders) * n_others + n_others + n_told);
            whit_session_close(session);
            close_world();
        }
}

/* A session of rank r of n without other ranks; nothing is exchanged until it steps. */
struct lone_rank {
    loopback all;
    loopback_rank own;
    whit_ranks ranks;
    whit_model_ranks split;
    whit_session *session;
};

static void open_lone(struct lone_rank *lone, whit_model *model, const whit_session_options *options, uint32_t n,
                      uint32_t r)
{
    whit_error error;
    lone->all = (loopback){.n_ranks = n};
    lone->ranks = loopback_ranks(&lone->all, r, &lone->own);
    lone->split = (whit_model_ranks){.ranks = &lone->ranks};
    model->split = &lone->split;
    assert_ok(whit_session_open_here(model, options, &lone->session, &error), error);
}

static void close_lone(struct lone_rank *lone, whit_model *model)
{
    lone->split.is_lost = true; /* the other ranks do not exist, so nothing is sent to them */
    whit_session_close(lone->session);
    model->split = NULL;
}

/* Returns the bytes of the tiles that cover this rank's columns of a matrix. */
static uint64_t tile_bytes(const whit_plan *plan, const whit_plan_step *step, const whit_tensor *tensor)
{
    const whit_plan_value *output = &plan->values[step->output - 1]; /* of a mixture: the outputs of one expert */
    const uint64_t n_tiles = (output->width + WHIT_TILE_ROWS - 1) / WHIT_TILE_ROWS;
    const whit_columns own = step->own.end ? step->own : whit_split_columns(plan->ranks, output);
    const uint64_t n_own = (own.end + WHIT_TILE_ROWS - 1) / WHIT_TILE_ROWS - own.begin / WHIT_TILE_ROWS;
    return whit_codec_tensor_bytes(tensor) * n_own / n_tiles;
}

/* Returns the bytes of the tensors that this rank multiplies by, vectors included; *whole_bytes becomes those of one
 * process without ranks. Tables for lookup are not counted, because their pages are given back. */
static uint64_t weight_bytes(const whit_plan *plan, const whit_tensor *tensors, uint64_t *whole_bytes)
{
    uint64_t bytes = 0;
    *whole_bytes = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const whit_plan_step *step = &plan->steps[i];
        if (step->weight < 0 || step->op == WHIT_PLAN_EMBED) continue;
        const whit_tensor *tensor = &tensors[step->weight];
        const uint64_t whole = whit_codec_tensor_bytes(tensor);
        const bool is_again = step->own.begin && i && plan->steps[i - 1].output == step->output;
        if (!is_again) *whole_bytes += whole;
        const bool is_matrix = step->op == WHIT_PLAN_LINEAR || step->op == WHIT_PLAN_EXPERT_LINEAR;
        bytes += is_matrix && step->is_split ? tile_bytes(plan, step, tensor) : whole;
    }
    return bytes;
}

static void a_rank_has_its_part_of_weights_and_heads(void **state)
{
    (void)state;
    whit_model *model = open_model("large.gguf");
    for (uint32_t n = 2; n <= RANKS_MAX; n++)
        for (uint32_t r = 0; r < n; r++) {
            struct lone_rank lone;
            const whit_session_options options = options_of(WHIT_KV_F16, WHIT_ACT_I8);
            open_lone(&lone, model, &options, n, r);
            const whit_session *session = lone.session;
            uint64_t whole;
            const uint64_t bytes = weight_bytes(&session->plan, model->weights.tensors, &whole);
            if ((double)bytes > (1.0 / n + 0.1) * (double)whole)
                print_message("%u of %u: %f\n", r, n, (double)bytes / (double)whole);
            assert_true((double)bytes <= (1.0 / n + 0.1) * (double)whole);
            assert_true(session->kv.classes[0].n_kv_heads <= (8 + n - 1) / n);
            close_lone(&lone, model);
        }
    whit_model_close(model);
}

static bool find_hybrid(const char *name, char path[2048])
{
    snprintf(path, 2048, "%s/models-tiny/%s/hf", WHIT_SHARED_DIR, name);
    if (access(path, R_OK) == 0) return true;
    print_message("skipped: no %s\n", path);
    return false;
}

/* The model has two key heads and four value heads of width 32 in three of four layers. Value head j reads key head j
 * mod 2. */
static void states_are_divided_by_heads(void **state)
{
    char path[2048];
    (void)state;
    if (!find_hybrid("qwen35-hybrid", path)) return;
    whit_model *model = open_model_at(path);
    whit_session_options options = options_of(WHIT_KV_F16, WHIT_ACT_I8);
    options.state_bytes =
        250000; /* a whole state takes 157 KB: with their own shares, ranks would count different numbers of marks */
    for (uint32_t n = 2; n <= RANKS_MAX; n++) {
        uint32_t n_heads = 0, n_marks = 0;
        for (uint32_t r = 0; r < n; r++) {
            struct lone_rank lone;
            open_lone(&lone, model, &options, n, r);
            const whit_state *own = &lone.session->kv.state;
            const uint32_t heads = 4 * (r + 1) / n - 4 * r / n, keys = heads < 2 ? heads : 2;
            const uint32_t channels = 2 * 32 * keys + 32 * heads;
            assert_true(heads <= (4 + n - 1) / n);
            for (uint32_t i = 0; i < 3; i++) {
                assert_int_equal(own->places[i].shape.n_heads, heads);
                assert_int_equal(own->places[i].shape.n_channels, channels);
            }
            assert_int_equal(own->places[3].shape.n_channels, 0);
            /* Rings of 19 inputs; per head a state, and rings of 16 keys, changes and decays. */
            assert_int_equal(own->sequence_elems, 3 * (19 * channels + heads * (32 * 32 + 16 * (32 + 32 + 1))));
            if (!r) n_marks = lone.session->marks.n;
            assert_true(n_marks > 0);
            assert_int_equal(lone.session->marks.n, n_marks);
            n_heads += heads;
            close_lone(&lone, model);
        }
        assert_int_equal(n_heads, 4);
    }
    whit_model_close(model);
}

/* Every layer makes four exchanges, with attention or a recurrence. */
static void recurrent_layers_exchange_as_attention(void **state)
{
    static const struct {
        const char *name;
        uint64_t received; /* bytes that rank 0 of 2 receives; 0: not counted */
    } models[] = {
        /* Half of each value, but all of the attention's, which has one KV head. */
        {"qwen35-hybrid", 4 * (3 * (64 + 64 + 32 + 64) + 128 + 64 + 32 + 64 + 256)},
        {"lfm2", 0},
    };
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        whit_error error;
        whit_session *session;
        char path[2048];
        const whit_session_options options = options_of(WHIT_KV_F16, WHIT_ACT_I8);
        const whit_step_token token = {.id = 5, .want_logits = true};
        if (!find_hybrid(models[m].name, path)) continue;
        assert_ok(open_world(2, path, path, &error), error);
        assert_ok(whit_session_open(world.model, &options, &session, &error), error);
        assert_ok(whit_session_step(session, &token, 1, &error), error);
        assert_int_equal(session->exec.traffic.n_gathers, 4 * session->model->config.n_layers + 1);
        if (models[m].received) assert_int_equal(session->exec.traffic.received_bytes, models[m].received);
        whit_session_close(session);
        close_world();
    }
}

/* ---- failures -------------------------------------------------------------------------------- */

static void a_lost_rank_fails_a_step(void **state)
{
    (void)state;
    whit_error error;
    whit_session *session;
    const whit_session_options options = options_of(WHIT_KV_F16, WHIT_ACT_I8);
    const whit_step_token token = {.id = 5, .want_logits = true};
    const char *path = in_folder("plain.gguf");
    assert_ok(open_world(3, path, path, &error), error);
    assert_ok(whit_session_open(world.model, &options, &session, &error), error);
    assert_ok(whit_session_step(session, &token, 1, &error), error);
    loopback_cut(&world.all);
    assert_int_equal(whit_session_step(session, &token, 1, &error), WHIT_ERROR_IO);
    assert_non_null(strstr(error.message, "of another rank has ended"));
    assert_int_equal(whit_session_position(session, 0), 1);
    whit_session_close(session);
    close_world();
    for (uint32_t r = 1; r < 3; r++) assert_int_equal(world.ranks[r].status, WHIT_ERROR_IO);
}

/* As if an assertion failed before rank 0 joined the others: the end of the test must end them. */
static void ranks_end_after_an_early_failure(void **state)
{
    start_others(3, in_folder("plain.gguf"));
    end_world(state);
    for (uint32_t r = 1; r < 3; r++) assert_int_equal(world.ranks[r].status, WHIT_ERROR_IO);
}

static void a_lost_exchange_fails_a_step(void **state)
{
    (void)state;
    whit_error error;
    whit_session *session;
    const whit_session_options options = options_of(WHIT_KV_F16, WHIT_ACT_I8);
    const whit_step_token token = {.id = 5, .want_logits = true};
    const char *path = in_folder("plain.gguf");
    assert_ok(open_world(2, path, path, &error), error);
    assert_ok(whit_session_open(world.model, &options, &session, &error), error);
    world.all.fails_gathers = true; /* within the pass: orders still arrive */
    for (int i = 0; i < 2; i++) assert_int_equal(whit_session_step(session, &token, 1, &error), WHIT_ERROR_IO);
    assert_int_equal(whit_session_position(session, 0), 0);
    assert_null(whit_session_logits(session, 0));
    whit_session_close(session);
    close_world();
    assert_int_equal(world.ranks[1].status, WHIT_ERROR_IO);
}

static void another_model_is_refused(void **state)
{
    (void)state;
    whit_error error;
    assert_int_equal(open_world(2, in_folder("plain.gguf"), in_folder("q8.gguf"), &error), WHIT_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "differs from that of rank 0"));
    close_world();
}

static void what_is_not_supported_is_refused(void **state)
{
    (void)state;
    whit_error error;
    whit_session *session;
    whit_session_file *file;
    volatile bool cancel = false;
    uint32_t n_tokens;
    const char *path = in_folder("plain.gguf");
    whit_session_options options = options_of(WHIT_KV_F16, WHIT_ACT_I8);
    const whit_step_token token = {.id = 5, .want_logits = true};
    assert_ok(open_world(2, path, path, &error), error);
    options.n_threads = WHIT_POOL_THREADS_MAX + 1;
    assert_int_equal(whit_session_open(world.model, &options, &session, &error), WHIT_ERROR_ARGUMENT);
    options.n_threads = 1;
    options.cancel = &cancel;
    assert_ok(whit_session_open(world.model, &options, &session, &error), error);
    assert_int_equal(whit_session_load(session, 0, in_folder("file"), "test", &file, &error), WHIT_ERROR_UNSUPPORTED);
    assert_int_equal(whit_session_snapshot(session, 0, in_folder("file"), "test", &n_tokens, &error),
                     WHIT_ERROR_UNSUPPORTED);
    cancel = true;
    assert_int_equal(whit_session_step(session, &token, 1, &error), WHIT_ERROR_CANCELLED);
    cancel = false;
    assert_ok(whit_session_step(session, &token, 1, &error), error);
    whit_session_close(session);
    close_world();
    assert_ok(world.ranks[1].status, world.ranks[1].error);
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
    tiny.n_embd = 512;
    tiny.n_ff = 1280;
    tiny.n_heads = tiny.n_kv_heads = 8;
    if (!tiny_model_write(&tiny, in_folder("large.gguf"))) return -1;
    tiny.n_embd = 256;
    tiny.n_ff = 768;
    tiny.kind = WHIT_GGML_Q4_K;
    tiny.n_kv_heads = 2;
    if (!tiny_model_write(&tiny, in_folder("k4.gguf"))) return -1;
    tiny.kind = WHIT_GGML_TQ2_0;
    tiny.n_heads = 4;
    tiny.tied_head = true;
    if (!tiny_model_write(&tiny, in_folder("ternary.gguf"))) return -1;
    tiny.n_kv_heads = 1;
    tiny.kind = WHIT_GGML_Q8_0;
    if (!tiny_model_write(&tiny, in_folder("one_head.gguf"))) return -1;
    convert_head(in_folder("one_head.gguf"), in_folder("screened.ndf"));
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_kv_type_gives_the_same_bits, end_world),
        cmocka_unit_test_teardown(every_matrix_gives_the_same_bits, end_world),
        cmocka_unit_test_teardown(every_family_gives_the_same_bits, end_world),
        cmocka_unit_test_teardown(a_screened_head_has_the_same_largest_logits, end_world),
        cmocka_unit_test_teardown(bytes_are_those_of_the_formula, end_world),
        cmocka_unit_test_teardown(a_rank_has_its_part_of_weights_and_heads, end_world),
        cmocka_unit_test_teardown(states_are_divided_by_heads, end_world),
        cmocka_unit_test_teardown(recurrent_layers_exchange_as_attention, end_world),
        cmocka_unit_test_teardown(a_lost_rank_fails_a_step, end_world),
        cmocka_unit_test_teardown(ranks_end_after_an_early_failure, end_world),
        cmocka_unit_test_teardown(a_lost_exchange_fails_a_step, end_world),
        cmocka_unit_test_teardown(another_model_is_refused, end_world),
        cmocka_unit_test_teardown(what_is_not_supported_is_refused, end_world),
    };
    return cmocka_run_group_tests(tests, set_up, remove_folder);
}
