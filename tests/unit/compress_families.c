/* SPDX-License-Identifier: MIT
 * Tests compression of models with recurrent layers and with experts: the tiny models of ../shared are rounded by
 * every method. */
#include "test.h"

#include "base/file.h"
#include "base/rng.h"
#include "compress/compress.h"
#include "compress/hessian.h"
#include "compress/stages.h"
#include "compress/weighted.h"
#include "model/convert.h"
#include "test_folder.h"

#include <math.h>

/* sanitizers run the same code with fewer tokens, too few to judge quality */
#ifdef __SANITIZE_ADDRESS__
enum { N_IDS = 1024, IS_SHORT = true };
#else
enum { N_IDS = 4096, IS_SHORT = false };
#endif
enum { WINDOW = 128, N_MEASURED = 96 };

/* Models, and the codecs of matrices that are not tested. */
static const struct {
    const char *name, *mixed[10];
    size_t n_mixed;
} models[] = {
    {"qwen35-hybrid", {"gate=f16", "up=f16", "down=f16", "q=f16", "k=f16", "v=f16", "o=f16", "attn_gate=f16"}, 8},
    {"lfm2", {"gate=f16", "up=f16", "down=f16", "q=f16", "k=f16", "v=f16", "o=f16"}, 7},
    {"qwen3-moe", {"q=f16", "k=f16", "v=f16", "o=f16"}, 4},
    {"lfm2-moe", {"gate=f16", "up=f16", "down=f16", "q=f16", "k=f16", "v=f16", "o=f16"}, 7},
    {"qwen35-moe", {"q=f16", "k=f16", "v=f16", "o=f16", "attn_gate=f16", "mixed=f16", "z=f16", "delta_o=f16"}, 8},
};

static uint32_t n_experts, n_unseen; /* sums over all reports */

/* Returns random ids of which a few are frequent and most are rare, as in a text. */
static int32_t *make_ids(uint32_t n_vocab, size_t n, uint64_t seed)
{
    whit_rng rng = {seed};
    int32_t *ids = malloc(n * sizeof *ids);
    assert_non_null(ids);
    for (size_t i = 0; i < n; i++) {
        double u = whit_rng_uniform(&rng);
        ids[i] = (int32_t)(u * u * u * u * n_vocab);
    }
    return ids;
}

static void open_source(const char *name, whit_source *source)
{
    char relative[256];
    whit_error error;
    snprintf(relative, sizeof relative, "models-tiny/%s/hf", name);
    assert_ok(whit_source_open(shared_path(relative), NULL, source, &error), error);
}

/* Cancels a run at a share of its progress; 0: never. */
struct stop {
    double at;
    uint32_t n_calls;
    double share; /* last share of "compressing", which must not fall */
};

static bool go_on(void *user, const char *what, double share)
{
    struct stop *stop = user;
    if (!strcmp(what, "compressing")) {
        assert_true(share >= stop->share && share <= 1);
        stop->share = share;
    }
    stop->n_calls++;
    return !stop->at || stop->share < stop->at;
}

static whit_status compress(const char *name, whit_compress_options options, double stop_at, const char *path,
                            uint32_t *n_calls, whit_error *error)
{
    whit_source source;
    struct stop stop = {.at = stop_at};
    open_source(name, &source);
    int32_t *ids = make_ids(source.config.n_vocab, N_IDS, 1);
    options.ids = ids;
    options.n_ids = options.max_tokens = N_IDS;
    options.n_tokens = WINDOW;
    options.bos = -1;
    options.progress = go_on;
    options.user = &stop;
    whit_status status = whit_compress(&source, &options, path, NULL, error);
    if (n_calls) *n_calls = stop.n_calls;
    free(ids);
    whit_source_close(&source);
    return status;
}

/* Returns (N_MEASURED, vocabulary) logits of the model at `path`; the caller frees them. */
static float *find_logits(const char *path, uint32_t *n_vocab)
{
    whit_error error;
    whit_model *model;
    whit_session *session;
    whit_model_options open = {.struct_bytes = sizeof open, .no_cache = true};
    assert_ok(whit_model_open(path, &open, &model, &error), error);
    whit_session_options options = whit_session_options_default();
    options.kv = WHIT_KV_F32;
    options.act = WHIT_ACT_F32;
    options.n_threads = 1;
    options.n_logits = N_MEASURED;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    *n_vocab = whit_model_vocab_size(model);
    int32_t *ids = make_ids(*n_vocab, N_MEASURED, 2);
    whit_step_token tokens[N_MEASURED];
    for (int i = 0; i < N_MEASURED; i++) tokens[i] = (whit_step_token){.id = ids[i], .want_logits = true};
    assert_ok(whit_session_step(session, tokens, N_MEASURED, &error), error);
    float *logits = malloc((size_t)N_MEASURED * *n_vocab * sizeof *logits);
    assert_non_null(logits);
    for (uint32_t i = 0; i < N_MEASURED; i++)
        memcpy(logits + (size_t)i * *n_vocab, whit_session_logits(session, i), *n_vocab * sizeof *logits);
    whit_session_close(session);
    whit_model_close(model);
    free(ids);
    return logits;
}

static double log_sum(const float *x, uint32_t n)
{
    double most = x[0], sum = 0;
    for (uint32_t i = 1; i < n; i++) most = fmax(most, x[i]);
    for (uint32_t i = 0; i < n; i++) sum += exp(x[i] - most);
    return most + log(sum);
}

/* Returns the mean KL(original || compressed) over a text other than the calibration text. */
static double find_kl(const char *name, const char *compressed)
{
    char relative[256];
    uint32_t n, n_too;
    snprintf(relative, sizeof relative, "models-tiny/%s/hf", name);
    float *p = find_logits(shared_path(relative), &n), *q = find_logits(compressed, &n_too);
    double sum = 0;
    assert_int_equal(n, n_too);
    for (uint32_t i = 0; i < N_MEASURED; i++) {
        const float *x = p + (size_t)i * n, *y = q + (size_t)i * n;
        double px = log_sum(x, n), qy = log_sum(y, n);
        for (uint32_t k = 0; k < n; k++) sum += exp(x[k] - px) * ((x[k] - px) - (y[k] - qy));
    }
    free(p);
    free(q);
    return sum / N_MEASURED;
}

/* Eight bits must lose almost nothing; with four levels each method must be better than the previous one. */
static void methods_in_order(void **state)
{
    (void)state;
    static const char *const names[] = {"rtn", "gptq", "full"};
    if (IS_SHORT) skip();
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        whit_error error;
        double kl = INFINITY;
        char path[256];
        snprintf(path, sizeof path, "%s", in_folder("out.ndf"));
        whit_compress_options options = {.codec = "i8", .method = WHIT_COMPRESS_GPTQ, .n_threads = 1};
        assert_ok(compress(models[m].name, options, 0, path, NULL, &error), error);
        double near = find_kl(models[m].name, path);
        print_message("%s: i8 %.3g\n", models[m].name, near);
        for (int method = WHIT_COMPRESS_RTN; method <= WHIT_COMPRESS_FULL; method++) {
            options = (whit_compress_options){.codec = "q2",
                                              .method = (whit_compress_method)method,
                                              .group = 64,
                                              .n_threads = 1,
                                              .mixed = models[m].mixed,
                                              .n_mixed = models[m].n_mixed};
            assert_ok(compress(models[m].name, options, 0, path, NULL, &error), error);
            double now = find_kl(models[m].name, path);
            print_message("%s: q2 by %s %.4f\n", models[m].name, names[method], now);
            assert_true(now < kl);
            kl = now;
        }
        /* in a mixture with random routers, any type changes the choice of experts for some token */
        assert_true(near < (strstr(models[m].name, "moe") ? 0.2 : 0.01) * kl);
    }
}

static void assert_same_files(const char *a, const char *b)
{
    whit_map x = {0}, y = {0};
    whit_error error;
    assert_ok(whit_map_open(a, NULL, &x, &error), error);
    assert_ok(whit_map_open(b, NULL, &y, &error), error);
    assert_int_equal(x.size_bytes, y.size_bytes);
    assert_memory_equal(x.data, y.data, x.size_bytes);
    whit_map_close(&x);
    whit_map_close(&y);
}

/* The bytes must depend neither on the number of threads nor on an interruption. */
static void same_bytes(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        if (tests_are_brief() && strcmp(models[m].name, "lfm2") != 0 && strcmp(models[m].name, "qwen35-moe") != 0)
            continue;
        whit_error error;
        char one[256], other[256];
        uint32_t n_calls;
        whit_compress_options options = {.codec = "t", .method = WHIT_COMPRESS_FULL, .n_threads = 1};
        snprintf(one, sizeof one, "%s", in_folder("one.ndf"));
        snprintf(other, sizeof other, "%s", in_folder("other.ndf"));
        assert_ok(compress(models[m].name, options, 0, one, &n_calls, &error), error);
        assert_true(n_calls > 200); /* progress is also reported within the sweeps of a matrix */
        options.n_threads = 3;
        assert_ok(compress(models[m].name, options, 0, other, NULL, &error), error);
        assert_same_files(one, other);
        assert_int_equal(compress(models[m].name, options, 2.0 / 3, other, NULL, &error), WHIT_ERROR_CANCELLED);
        options.resume = true;
        options.n_threads = 1;
        uint32_t n_left;
        assert_ok(compress(models[m].name, options, 0, other, &n_left, &error), error);
        assert_true(n_left < n_calls); /* finished layers are not computed again */
        assert_same_files(one, other);
    }
}

/* Plain rounding must report progress, too, and must stop without a file when cancelled. */
static void rounding_ends(void **state)
{
    (void)state;
    whit_error error;
    uint32_t n_calls;
    const char *path = in_folder("stopped.ndf");
    const whit_compress_options options = {.codec = "q2", .method = WHIT_COMPRESS_RTN, .group = 64, .n_threads = 1};
    assert_int_equal(compress(models[0].name, options, 1e-9, path, &n_calls, &error), WHIT_ERROR_CANCELLED);
    assert_int_equal(n_calls, 1);
    assert_int_not_equal(access(path, F_OK), 0);
}

struct choice {
    double at, share, widest; /* ends the run once it hears of share `at`; widest step between two shares */
};

static bool hear_choice(void *user, const char *what, double share)
{
    struct choice *choice = user;
    if (strcmp(what, "choosing codecs") != 0) return true;
    assert_true(share >= choice->share && share <= 1 + 1e-9);
    if (share - choice->share > choice->widest) choice->widest = share - choice->share;
    choice->share = share;
    return share < choice->at;
}

static whit_status choose(struct choice *choice, const char *path, whit_error *error)
{
    whit_source source;
    open_source("qwen3-tied", &source);
    int32_t *ids = make_ids(source.config.n_vocab, N_IDS / 4, 1);
    const whit_compress_options options = {.codec = "q2",
                                           .bits = 2.4,
                                           .method = WHIT_COMPRESS_FULL,
                                           .group = 128,
                                           .ids = ids,
                                           .n_ids = N_IDS / 4,
                                           .max_tokens = N_IDS / 4,
                                           .n_tokens = WINDOW,
                                           .bos = -1,
                                           .n_threads = 1,
                                           .progress = hear_choice,
                                           .user = choice};
    whit_status status = whit_compress(&source, &options, path, NULL, error);
    free(ids);
    whit_source_close(&source);
    return status;
}

/* The choice of codecs tells its progress from within a matrix and a pass over the text, and ends there. */
static void choice_is_told_of(void **state)
{
    (void)state;
    whit_error error;
    const char *path = in_folder("chosen.ndf");
    struct choice whole = {.at = 2};
    assert_ok(choose(&whole, path, &error), error);
    assert_float_equal(whole.share, 1, 1e-9);
    assert_true(whole.widest < 0.05); /* variants that still equal the original are passed at once */
    unlink(path);
    for (double at = 0.3; at < 1; at += 0.5) { /* among the candidates, and in a pass over the text */
        struct choice cut = {.at = at};
        assert_int_equal(choose(&cut, path, &error), WHIT_ERROR_CANCELLED);
        assert_true(cut.share < at + 0.05);
        assert_int_not_equal(access(path, F_OK), 0);
    }
}

enum { WIDE_ROWS = 2048, WIDE_COLS = 1024 };

static whit_status read_wide_row(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows,
                                 whit_error *error)
{
    (void)tensor, (void)error;
    for (uint32_t j = 0; j < WIDE_COLS; j++) ((float *)rows->elems)[j] = (float)((row * 31 + j * 17) % 97) - 48;
    return WHIT_OK;
}

struct shares {
    uint32_t n, n_wanted; /* number of calls after which to cancel; 0: never */
    double last;
};

static bool hear_share(void *user, double share)
{
    struct shares *shares = user;
    assert_true(share > shares->last && share <= 1);
    shares->last = share;
    return ++shares->n != shares->n_wanted;
}

/* Rounding a wide matrix takes seconds, so progress must be reported and cancelling must work within one matrix. */
static void a_wide_matrix_is_told_of(void **state)
{
    (void)state;
    whit_error error;
    whit_pool *pool;
    const whit_source source = {.path = "wide"};
    const whit_source_tensor tensor = {
        .name = "layers.0.up",
        .type = {.codec = WHIT_CODEC_F32, .layout = WHIT_LAYOUT_TILE16, .n_rows = WIDE_ROWS, .n_cols = WIDE_COLS},
        .read_row = read_wide_row};
    whit_tensor_type type = {.codec = WHIT_CODEC_T5,
                             .layout = WHIT_LAYOUT_TILE16,
                             .scale_kind = WHIT_SCALE_GROUP,
                             .scale_type = WHIT_SCALE_F16,
                             .group = 128,
                             .n_rows = WIDE_ROWS,
                             .n_cols = WIDE_COLS};
    assert_ok(whit_pool_open(1, NULL, &pool, &error), error);
    for (uint32_t n_wanted = 0; n_wanted < 2; n_wanted++) {
        struct shares shares = {.n_wanted = n_wanted};
        whit_finished finished = {0};
        double lost;
        const whit_status status = whit_weighted_round(&finished, &source, &tensor, &type, NULL,
                                                       &(whit_within){hear_share, &shares}, pool, &lost, &error);
        assert_int_equal(status, n_wanted ? WHIT_ERROR_CANCELLED : WHIT_OK);
        assert_true(n_wanted ? shares.n == 1 && shares.last < 1 : shares.n >= 2 && shares.last == 1);
        whit_finished_free(&finished, NULL);
    }
    whit_pool_close(pool);
}

static void count_unseen(void *user, const whit_compress_report *report)
{
    (void)user;
    n_experts += report->n_experts;
    n_unseen += report->n_unseen;
}

/* Experts that no token of a short text reaches are rounded plainly, and counted. */
static void unseen_experts(void **state)
{
    (void)state;
    whit_error error;
    whit_source source;
    int32_t ids[32];
    uint32_t n_vocab;
    open_source("qwen3-moe", &source);
    for (int i = 0; i < 32; i++) ids[i] = 7;
    whit_compress_options options = {.codec = "q2",
                                     .method = WHIT_COMPRESS_FULL,
                                     .group = 64,
                                     .n_threads = 1,
                                     .ids = ids,
                                     .n_ids = 32,
                                     .max_tokens = 32,
                                     .n_tokens = 16,
                                     .bos = -1,
                                     .report = count_unseen};
    char path[256];
    snprintf(path, sizeof path, "%s", in_folder("unseen.ndf"));
    n_experts = n_unseen = 0;
    assert_ok(whit_compress(&source, &options, path, NULL, &error), error);
    whit_source_close(&source);
    print_message("%u of %u experts' matrices saw no token\n", n_unseen, n_experts);
    assert_int_equal(n_experts, 2 * 3 * 8); /* layers, matrices, experts */
    assert_true(n_unseen > 0 && n_unseen < n_experts);
    float *logits = find_logits(path, &n_vocab);
    for (size_t i = 0; i < (size_t)N_MEASURED * n_vocab; i++) assert_true(isfinite(logits[i]));
    free(logits);
}

/* Adds to lost (n_experts, n_out, n) for each pair of token and expert: the residual's loss at the token times the
 * pair's input. The losses are multiplied by the route weights squared, the inputs by the route weights. */
static void add_expected(const whit_stream *stream, whit_ref residual, whit_ref value, size_t n_out, size_t n,
                         float *lost)
{
    const whit_tape_pairs *pairs = &stream->tape[1].pairs;
    const float *x = whit_tape_value(&stream->tape[1], value), *r = whit_tape_value(&stream->tape[1], residual),
                *original = whit_tape_value(&stream->tape[0], residual);
    for (uint32_t e = 0; e < pairs->n_experts; e++)
        for (uint32_t row = pairs->first[e]; row < pairs->first[e + 1]; row++) {
            const size_t token = pairs->token_of[row];
            const double weight = pairs->weight_of[row];
            double sum = 0;
            for (uint32_t i = pairs->first[0]; i < pairs->first[pairs->n_experts]; i++)
                if (pairs->token_of[i] == token) sum += (double)pairs->weight_of[i] * (double)pairs->weight_of[i];
            for (size_t k = 0; k < n_out; k++)
                for (size_t j = 0; j < n; j++)
                    lost[(e * n_out + k) * n + j] +=
                        (float)(weight * weight / sum *
                                ((double)original[token * n_out + k] - (double)r[token * n_out + k]) * weight *
                                (double)x[row * n + j]);
        }
}

/* The last matrices of experts must compensate for earlier losses of the residual stream, with and without a shared
 * expert. */
static void losses_of_the_stream(void **state)
{
    (void)state;
    static const struct {
        const char *name, *broken, *residual;
    } mixtures[] = {{"qwen3-moe", "layers.0.o", "layers.0.attn_residual"},
                    {"qwen35-moe", "layers.0.delta_o", "layers.0.mix_residual"}};
    for (int m = 0; m < 2; m++) {
        whit_error error;
        whit_source source;
        whit_stream stream;
        whit_blas blas;
        whit_pool *pool;
        whit_layer_stage stage;
        whit_ref residual = 0;
        open_source(mixtures[m].name, &source);
        int32_t *ids = make_ids(source.config.n_vocab, 64, 1);
        assert_ok(whit_pool_open(1, NULL, &pool, &error), error);
        assert_ok(whit_stream_open(&stream, &source, ids, 64, 16, 64, -1, &whit_source_find(&source, "embed")->type,
                                   NULL, pool, NULL, &error),
                  error);
        assert_ok(whit_stream_load(&stream, 0, &error), error);
        assert_ok(whit_blas_open(&blas, WHIT_PRECISION_F32, whit_loops_find(), 0, 0, 1, NULL, &error), error);
        for (uint32_t at = 0; whit_layer_next_stage(&stream, &at, &stage);) {
            assert_ok(whit_stage_residual(&stream, &stage, &residual, &error), error);
            if (stage.n_experts && stage.n == 1) break;
            assert_true(!stage.n_experts || !residual);
        }
        assert_true(stage.n_experts && residual == whit_graph_find(&stream.graph, mixtures[m].residual));
        const int32_t before = whit_params_find(&stream.params[0], mixtures[m].broken);
        assert_true(before >= 0);
        float *weights = whit_stream_values(&stream, WHIT_STREAM_COMPRESSED, before);
        for (size_t i = 0; i < stream.params[0].items[before].n; i++) weights[i] *= 1.25f;
        whit_hessian_experts experts = {.n = stage.n_experts, .residual = residual};
        assert_ok(whit_hessian_gather_experts(&experts, &stream, &blas, stage.input, true, &error), error);
        const size_t n = experts.of[0].text.n, n_out = source.config.n_embd;
        float *expected = calloc(stage.n_experts * n_out * n, sizeof *expected), largest = 0;
        assert_non_null(expected);
        assert_int_equal(stream.n_batches, 1); /* the tape contains the pairs of the last batch only */
        whit_stream_run(&stream, 0, stage.input);
        add_expected(&stream, residual, stage.input, n_out, n, expected);
        for (size_t i = 0; i < stage.n_experts * n_out * n; i++) largest = fmaxf(largest, fabsf(expected[i]));
        assert_true(largest > 0);
        for (uint32_t e = 0; e < stage.n_experts; e++)
            for (size_t i = 0; i < n_out * n; i++)
                assert_true(fabsf(experts.of[e].text.lost[i] - expected[e * n_out * n + i]) < 1e-4f * largest);
        free(expected);
        whit_hessian_free_experts(&experts);
        whit_blas_close(&blas);
        whit_stream_close(&stream);
        whit_pool_close(pool);
        whit_source_close(&source);
        free(ids);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(methods_in_order), cmocka_unit_test(same_bytes),
                                       cmocka_unit_test(rounding_ends),    cmocka_unit_test(a_wide_matrix_is_told_of),
                                       cmocka_unit_test(unseen_experts),   cmocka_unit_test(losses_of_the_stream),
                                       cmocka_unit_test(choice_is_told_of)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
