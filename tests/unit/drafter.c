/* SPDX-License-Identifier: MIT
 * Tests draft models: their forward pass against a reference in this file, and that they never change a text. */
#include "test.h"

#include <math.h>

#include "base/file.h"
#include "base/items.h"
#include "base/json.h"
#include "kernels/codec.h"
#include "random_model.h"
#include "runtime/generation.h"

enum { N_PROMPT = 60, N_MADE = 90, N_IDS = N_PROMPT + N_MADE };

static whit_model *open_written(whit_ndf_writer **writer)
{
    whit_error error;
    whit_model *model;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", whit_ndf_writer_fd(*writer));
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    assert_ok(whit_model_open(path, &options, &model, &error), error);
    return model;
}

static whit_model *open_random(uint32_t i, whit_ndf_writer **writer)
{
    whit_error error;
    whit_config config;
    assert_ok(random_model_make(i, writer, &config, &error), error);
    return open_written(writer);
}

/* Opens the n-th random model with a draft block; NULL after the last. */
static whit_model *open_drafting(uint32_t n, whit_ndf_writer **writer)
{
    for (uint32_t i = 0; i < random_model_count(); i++) {
        whit_model *model = open_random(i, writer);
        if (model->has_draft_block && n-- == 0) return model;
        whit_model_close(model);
        whit_ndf_writer_close(*writer);
    }
    return NULL;
}

/* ---- the forward pass -------------------------------------------------------------------------- */

/* Returns the values of a tensor, row-major; the caller frees them. */
static float *read_tensor(const whit_model *model, const char *name, uint32_t *n_rows, uint32_t *n_cols)
{
    const whit_resolver resolver = whit_weights_resolver((whit_weights *)(uintptr_t)&model->weights);
    const int32_t index = resolver.find(resolver.context, name);
    if (index < 0) fail_msg("no tensor %s", name);
    const whit_tensor *tensor = &model->weights.tensors[index];
    *n_rows = tensor->type.n_rows;
    *n_cols = tensor->type.n_cols;
    float *values = calloc((size_t)*n_rows * *n_cols, sizeof *values);
    assert_non_null(values);
    if (tensor->type.layout == WHIT_LAYOUT_PLAIN) {
        memcpy(values, tensor->part[WHIT_PART_CODES], *n_cols * sizeof *values);
        return values;
    }
    for (uint32_t r = 0; r < *n_rows; r++) {
        const int32_t id = (int32_t)r;
        whit_codec_get_rows(tensor, &id, 1, values + (size_t)r * *n_cols, *n_cols);
    }
    return values;
}

enum { WIDTH_MAX = 256 };

static const whit_model *reference_model;
static char reference_layer[32];

static uint32_t multiply(const char *name, bool in_layer, const double *x, double *y)
{
    char full[64];
    uint32_t n_rows, n_cols;
    snprintf(full, sizeof full, "%s%s", in_layer ? reference_layer : "", name);
    float *w = read_tensor(reference_model, full, &n_rows, &n_cols);
    assert_in_range(n_rows, 1, WIDTH_MAX);
    for (uint32_t r = 0; r < n_rows; r++) {
        y[r] = 0;
        for (uint32_t c = 0; c < n_cols; c++) y[r] += (double)w[(size_t)r * n_cols + c] * x[c];
    }
    free(w);
    return n_rows;
}

/* Normalises n elements of x in parts of the weight's size, such as heads. */
static void norm(const char *name, bool in_layer, const double *x, uint32_t n, double *y)
{
    char full[64];
    uint32_t one, size;
    snprintf(full, sizeof full, "%s%s", in_layer ? reference_layer : "", name);
    float *w = read_tensor(reference_model, full, &one, &size);
    for (uint32_t h = 0; h < n; h += size) {
        double sum = 0;
        for (uint32_t i = 0; i < size; i++) sum += x[h + i] * x[h + i];
        const double factor = 1 / sqrt(sum / size + 1e-5);
        for (uint32_t i = 0; i < size; i++) y[h + i] = x[h + i] * factor * w[i];
    }
    free(w);
}

static void rotate(double *x, uint32_t n, uint32_t head_dim, uint32_t rope_dim, double position)
{
    for (uint32_t h = 0; h < n; h += head_dim)
        for (uint32_t i = 0; i < rope_dim / 2; i++) {
            const double angle = position * pow(1e4, -2.0 * i / rope_dim), a = x[h + i], b = x[h + i + rope_dim / 2];
            x[h + i] = a * cos(angle) - b * sin(angle);
            x[h + i + rope_dim / 2] = a * sin(angle) + b * cos(angle);
        }
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

struct kept_row {
    double k[WIDTH_MAX], v[WIDTH_MAX];
};

/* Computes one row of the draft block of a hybrid with attention gates and dense feed-forward parts, from the hidden
 * state, the token after it and the earlier rows. Writes the logits, and the hidden state for a further guess. */
static void run_block(const double *hidden, int32_t id, uint32_t position, struct kept_row *rows, double *logits,
                      double *next)
{
    const whit_config *c = &reference_model->config;
    const whit_layer_kind kind = whit_config_kind(c, c->n_layers);
    const uint32_t n = c->n_embd, size = kind.head_dim, q_width = kind.n_heads * size;
    double pair[2 * WIDTH_MAX], e[WIDTH_MAX], x[WIDTH_MAX], h[WIDTH_MAX], q[WIDTH_MAX], gate[WIDTH_MAX];
    double attended[WIDTH_MAX] = {0}, y[WIDTH_MAX], up[WIDTH_MAX];
    uint32_t n_rows, n_cols;
    float *table = read_tensor(reference_model, "embed", &n_rows, &n_cols);
    for (uint32_t i = 0; i < n; i++) e[i] = table[(size_t)id * n + i];
    free(table);
    norm("draft_embed_norm", true, e, n, pair);
    norm("draft_hidden_norm", true, hidden, n, pair + n);
    multiply("draft_in", true, pair, x);
    norm("attn_norm", true, x, n, h);
    multiply("q", true, h, q);
    multiply("attn_gate", true, h, gate);
    multiply("k", true, h, y);
    norm("q_norm", true, q, q_width, q);
    norm("k_norm", true, y, kind.n_kv_heads * size, rows[position].k);
    multiply("v", true, h, rows[position].v);
    rotate(q, q_width, size, kind.rope_dim, position);
    rotate(rows[position].k, kind.n_kv_heads * size, size, kind.rope_dim, position);
    for (uint32_t head = 0; head < kind.n_heads; head++) {
        const uint32_t kv = head / (kind.n_heads / kind.n_kv_heads) * size;
        double sum = 0;
        for (uint32_t p = 0; p <= position; p++) {
            double score = 0;
            for (uint32_t i = 0; i < size; i++) score += q[head * size + i] * rows[p].k[kv + i];
            const double weight = exp(score / sqrt(size));
            sum += weight;
            for (uint32_t i = 0; i < size; i++) attended[head * size + i] += weight * rows[p].v[kv + i];
        }
        for (uint32_t i = 0; i < size; i++) attended[head * size + i] *= 1 / (1 + exp(-gate[head * size + i])) / sum;
    }
    multiply("o", true, attended, y);
    for (uint32_t i = 0; i < n; i++) x[i] += y[i];
    norm("ffn_norm", true, x, n, h);
    const uint32_t n_ff = multiply("gate", true, h, gate);
    multiply("up", true, h, up);
    for (uint32_t i = 0; i < n_ff; i++) gate[i] = silu(gate[i]) * up[i];
    multiply("down", true, gate, y);
    for (uint32_t i = 0; i < n; i++) x[i] += y[i];
    norm("draft_norm", true, x, n, next);
    multiply(c->tied_head ? "embed" : "head", false, next, logits);
}

static int32_t best_of(const double *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return (int32_t)best;
}

static whit_session *open_session(const whit_model *model, const whit_model *drafter, uint32_t n_batch)
{
    whit_error error;
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = 320;
    options.n_batch_tokens = n_batch;
    options.n_threads = 2;
    options.n_logits = 1 + WHIT_DRAFT_MAX;
    options.keep_hidden = true;
    assert_ok(whit_session_open_drafting(model, &options, drafter, &session, &error), error);
    return session;
}

static void feed(whit_session *session, const int32_t *ids, uint32_t n)
{
    whit_error error;
    for (uint32_t i = 0; i < n; i++) {
        const whit_step_token token = {.id = ids[i], .want_logits = i + 1 == n};
        assert_ok(whit_session_step(session, &token, 1, &error), error);
    }
}

/* Guesses and their logits must equal those of the reference above, which is fed the model's hidden states. */
static void guesses_are_those_of_the_block(void **state)
{
    (void)state;
    enum { N = 9, N_GUESSES = 3 };
    whit_ndf_writer *writer;
    whit_model *model = open_drafting(0, &writer);
    assert_non_null(model);
    reference_model = model;
    snprintf(reference_layer, sizeof reference_layer, "layers.%u.", model->config.n_layers);
    static const int32_t ids[N + 1] = {3, 1, 4, 15, 9, 2, 65, 35, 8, 79};
    static struct kept_row rows[N + N_GUESSES];
    double hidden[WIDTH_MAX], logits[WIDTH_MAX], next[WIDTH_MAX];
    whit_session *session = open_session(model, model, 16), *plain = open_session(model, NULL, 16);
    for (uint32_t i = 0; i < N; i++) { /* hidden states after the final norm, one per step */
        feed(plain, &ids[i], 1);
        for (uint32_t k = 0; k < model->config.n_embd; k++) hidden[k] = (double)whit_session_hidden(plain, 0)[k];
        run_block(hidden, ids[i + 1], i, rows, logits, next);
    }
    feed(session, ids, N);
    int32_t guesses[N_GUESSES];
    for (uint32_t k = 0; k < N_GUESSES; k++) {
        /* the last pass for k + 1 guesses computes the last guess's logits */
        assert_int_equal(whit_drafter_guess(session->drafter, 0, N, ids[N], k + 1, guesses, NULL), k + 1);
        assert_int_equal(guesses[k], best_of(logits, model->config.n_vocab));
        const float *given = whit_exec_row(&session->drafter->exec, session->drafter->plan.output, 0);
        for (uint32_t i = 0; i < model->config.n_vocab; i++)
            if (fabs(logits[i] - (double)given[i]) > 2e-3)
                fail_msg("guess %u, logit %u: %g, not %g", k, i, (double)given[i], logits[i]);
        memcpy(hidden, next, sizeof hidden);
        run_block(hidden, guesses[k], N + k, rows, logits, next);
    }
    whit_session_close(plain);
    whit_session_close(session);
    whit_model_close(model);
    whit_ndf_writer_close(writer);
}

/* ---- texts ------------------------------------------------------------------------------------- */

struct setting {
    uint32_t n_threads, n_batch, n_draft, n_sequences;
    whit_kv_type kv;
    float temperature;
    bool is_endless;
};

static uint64_t time_step(void *user, uint32_t n_columns, uint32_t n_prompt, uint32_t depth)
{
    (void)user, (void)depth;
    return n_columns || n_prompt ? 1000000 : 1000; /* columns and guesses are free, so they are used wherever allowed */
}

/* Generates the texts of all sequences in one session; each sequence has its own prompt. */
static void generate_texts(const whit_model *model, const whit_model *drafter, struct setting how, int32_t ids[][N_IDS])
{
    enum { SEQUENCES_MAX = 3 };
    whit_error error;
    whit_session *session;
    whit_sampler *samplers[SEQUENCES_MAX];
    whit_generation *all[SEQUENCES_MAX];
    size_t n_open = how.n_sequences;
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = how.is_endless ? 70 : N_IDS + 10;
    options.endless = how.is_endless;
    options.n_sinks = 0;
    options.n_batch_tokens = how.n_batch;
    options.n_threads = how.n_threads;
    options.n_sequences = how.n_sequences;
    options.n_logits = how.n_sequences * (1 + (how.n_draft == WHIT_DRAFT_BY_COST ? 7 : how.n_draft));
    options.kv = how.kv;
    assert_ok(whit_session_open_drafting(model, &options, drafter, &session, &error), error);
    session->costs.measure = time_step;
    for (uint32_t q = 0; q < how.n_sequences; q++) {
        whit_sampler_options sampling = whit_sampler_options_default();
        sampling.temperature = how.temperature;
        sampling.top_k = 2;
        sampling.seed = 7 + q;
        whit_generate_options generate = whit_generate_options_default();
        generate.sequence = q;
        generate.n_tokens = N_MADE;
        generate.n_draft_tokens = how.n_draft;
        generate.ignore_end = true;
        int32_t prompt[N_PROMPT];
        for (uint32_t i = 0; i < N_PROMPT; i++) prompt[i] = (int32_t)((i * (3 + q)) % 31);
        assert_ok(whit_sampler_open(model, &sampling, &samplers[q], &error), error);
        assert_ok(whit_generation_open(session, samplers[q], prompt, N_PROMPT, &generate, &all[q], &error), error);
    }
    while (n_open) assert_ok(whit_generations_step(session, all, how.n_sequences, &n_open, &error), error);
    for (uint32_t q = 0; q < how.n_sequences; q++) {
        size_t n;
        const int32_t *made = whit_generation_ids(all[q], &n);
        assert_int_equal(n, N_IDS);
        memcpy(ids[q], made, sizeof *ids);
        assert_int_equal(whit_session_position(session, q), N_IDS - 1);
        whit_generation_close(all[q]);
        whit_sampler_close(samplers[q]);
    }
    whit_session_close(session);
}

/* Settings that must not change the texts; the last ones have a packed or endless cache. */
static const struct setting settings[] = {
    {.n_threads = 1, .n_batch = 64, .n_draft = 1, .n_sequences = 1},
    {.n_threads = 2, .n_batch = 7, .n_draft = 3, .n_sequences = 1, .temperature = 0.8f},
    {.n_threads = 3, .n_batch = 64, .n_draft = 7, .n_sequences = 3, .kv = WHIT_KV_I8},
    {.n_threads = 2, .n_batch = 33, .n_draft = 2, .n_sequences = 2, .kv = WHIT_KV_F32, .temperature = 0.8f},
    {.n_threads = 2, .n_batch = 64, .n_draft = WHIT_DRAFT_BY_COST, .n_sequences = 1},
    {.n_threads = 1, .n_batch = 64, .n_draft = WHIT_DRAFT_BY_COST, .n_sequences = 3, .temperature = 0.8f},
    {.n_threads = 1, .n_batch = 64, .n_draft = 5, .n_sequences = 1, .kv = WHIT_KV_K4V2},
    {.n_threads = 2, .n_batch = 1, .n_draft = 7, .n_sequences = 1, .kv = WHIT_KV_BITMAP},
    {.n_threads = 2, .n_batch = 16, .n_draft = 3, .n_sequences = 1, .is_endless = true},
};
enum { N_SETTINGS = sizeof settings / sizeof *settings, N_OWN_CACHE = 3 };

static void compare_texts(const whit_model *model, const whit_model *drafter, uint32_t n_settings)
{
    for (uint32_t i = 0; i < n_settings; i++) {
        static int32_t plain[3][N_IDS], guessed[3][N_IDS];
        struct setting without = settings[i];
        without.n_draft = 0;
        generate_texts(model, NULL, without, plain);
        generate_texts(model, drafter, settings[i], guessed);
        assert_memory_equal(guessed, plain, settings[i].n_sequences * sizeof *plain);
    }
}

static void no_setting_changes_a_text(void **state)
{
    (void)state;
    uint32_t n_models = 0;
    for (whit_ndf_writer *writer;; n_models++) {
        whit_model *model = open_drafting(n_models, &writer);
        if (!model) break;
        compare_texts(model, model, N_SETTINGS);
        whit_model_close(model);
        whit_ndf_writer_close(writer);
    }
    assert_true(n_models >= 2);
}

/* After steps with partly right guesses, truncations and shared prefixes, no hidden state of a removed token may be
 * used, and guesses must equal those of a session that was fed in one step. */
static void guesses_do_not_depend_on_the_past(void **state)
{
    (void)state;
    enum { N = 40, N_GUESSES = 4 };
    whit_ndf_writer *writer;
    whit_model *model = open_drafting(0, &writer);
    int32_t ids[N + 1], fresh[N_GUESSES], played[N_GUESSES], wrong[] = {5, 6, 7, 8};
    for (int32_t i = 0; i <= N; i++) ids[i] = i * 7 % 83;
    whit_error error;
    whit_session *a = open_session(model, model, 16), *b = open_session(model, model, 5);
    feed(a, ids, N);
    assert_int_equal(whit_drafter_guess(a->drafter, 0, N, ids[N], N_GUESSES, fresh, NULL), N_GUESSES);
    feed(b, ids, N - 10);
    assert_int_equal(whit_drafter_guess(b->drafter, 0, N - 10, 77, N_GUESSES, played, NULL), N_GUESSES);
    feed(b, wrong, 4);
    assert_int_equal(whit_drafter_guess(b->drafter, 0, N - 6, 12, 2, played, NULL), 2);
    assert_ok(whit_session_truncate(b, 0, N - 10, &error), error);
    assert_int_equal(whit_drafter_guess(b->drafter, 0, N - 10, ids[N - 10], 1, played, NULL), 1);
    feed(b, ids + N - 10, 10);
    assert_int_equal(whit_drafter_guess(b->drafter, 0, N, ids[N], N_GUESSES, played, NULL), N_GUESSES);
    assert_memory_equal(played, fresh, sizeof fresh);
    assert_ok(whit_session_truncate(b, 0, 0, &error), error);
    assert_int_equal(whit_drafter_guess(b->drafter, 0, 0, 1, 1, played, NULL), 0);
    /* more tokens than there are stored hidden states: guessing begins anew */
    int32_t many[300];
    for (int32_t i = 0; i < 300; i++) many[i] = i * 5 % 89;
    feed(b, many, 300);
    assert_int_equal(whit_drafter_guess(b->drafter, 0, 300, 1, N_GUESSES, played, NULL), N_GUESSES);
    assert_int_equal(b->drafter->sequences[0].first, 300 - WHIT_DRAFTER_ROWS);
    whit_session_close(a);
    whit_session_close(b);
    whit_model_close(model);
    whit_ndf_writer_close(writer);
}

/* The draft cache of a long sequence begins at a late position; a shorter sequence that replaces it may end before
 * that. */
static void shorter_sequences_are_guessed_anew(void **state)
{
    (void)state;
    enum { N_LONG = 300, N_GUESSES = 4, BEGIN = N_LONG - WHIT_DRAFTER_ROWS };
    whit_error error;
    whit_ndf_writer *writer;
    whit_model *model = open_drafting(0, &writer);
    int32_t ids[N_LONG], fresh[N_GUESSES], played[N_GUESSES];
    for (int32_t i = 0; i < N_LONG; i++) ids[i] = i * 5 % 89;
    whit_session *a = open_session(model, model, 16), *b = open_session(model, model, 16);
    for (uint32_t n = BEGIN - WHIT_DRAFT_MAX; n <= BEGIN + 1; n++) {
        assert_ok(whit_session_truncate(a, 0, 0, &error), error);
        assert_ok(whit_session_truncate(b, 0, 0, &error), error);
        feed(a, ids, N_LONG);
        assert_int_equal(whit_drafter_guess(a->drafter, 0, N_LONG, 1, N_GUESSES, played, NULL), N_GUESSES);
        assert_int_equal(a->drafter->sequences[0].first, BEGIN);
        assert_ok(whit_session_truncate(a, 0, 0, &error), error);
        feed(a, ids, n);
        feed(b, ids, n);
        assert_int_equal(whit_drafter_guess(a->drafter, 0, n, ids[n], N_GUESSES, played, NULL), N_GUESSES);
        assert_int_equal(whit_drafter_guess(b->drafter, 0, n, ids[n], N_GUESSES, fresh, NULL), N_GUESSES);
        assert_memory_equal(played, fresh, sizeof fresh);
    }
    whit_session_close(a);
    whit_session_close(b);
    whit_model_close(model);
    whit_ndf_writer_close(writer);
}

/* ---- a draft model that reads the model's keys --------------------------------------------------- */

/* Opens the random model of family gemma4 and its draft model. */
static whit_model *open_gemma(whit_ndf_writer *writers[2], whit_model **drafter)
{
    whit_error error;
    whit_model *model = NULL;
    for (uint32_t i = 0; !model && i < random_model_count(); i++) {
        model = open_random(i, &writers[0]);
        if (strcmp(model->config.family, "gemma4") == 0) break;
        whit_model_close(model);
        whit_ndf_writer_close(writers[0]);
        model = NULL;
    }
    assert_non_null(model);
    assert_ok(random_model_make_drafter(false, &writers[1], &error), error);
    *drafter = open_written(&writers[1]);
    return model;
}

static void a_reading_draft_model_changes_no_text(void **state)
{
    (void)state;
    whit_error error;
    whit_ndf_writer *writers[2], *other_writer;
    whit_model *drafter, *model = open_gemma(writers, &drafter), *other = open_random(0, &other_writer);
    whit_session *session;
    compare_texts(model, drafter, N_SETTINGS - N_OWN_CACHE);
    whit_session_options options = whit_session_options_default();
    options.kv = WHIT_KV_K4V2;
    assert_int_equal(whit_session_open_drafting(model, &options, drafter, &session, &error), WHIT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "must be f16, f32 or i8"));
    options.kv = WHIT_KV_F16;
    assert_int_equal(whit_session_open_drafting(other, &options, drafter, &session, &error), WHIT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "the draft model reads rows of 48"));
    assert_int_equal(whit_session_open(drafter, &options, &session, &error), WHIT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "only predicts tokens for another model"));
    whit_model_close(other);
    whit_ndf_writer_close(other_writer);
    assert_ok(random_model_make_drafter(true, &other_writer, &error), error);
    other = open_written(&other_writer);
    assert_int_equal(whit_session_open_drafting(model, &options, other, &session, &error), WHIT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "windows, sizes or numbers of heads differ"));
    whit_model_close(other);
    whit_ndf_writer_close(other_writer);
    whit_model_close(drafter);
    whit_model_close(model);
    for (int i = 0; i < 2; i++) whit_ndf_writer_close(writers[i]);
}

/* Compares the published assistant's guesses and logits with golden.json, for a folder and a GGUF file. */
static void check_assistant(const char *path, const whit_json *json, uint32_t golden, const int32_t *ids,
                            const float *logits)
{
    enum { N_STEPS = 4, N_VOCAB = 512 };
    whit_error error;
    whit_model *model, *drafter;
    whit_session *session;
    const whit_model_options no_cache = {.struct_bytes = sizeof no_cache, .no_cache = true};
    const uint32_t positions = whit_json_get(json, golden, "positions"),
                   drafted = whit_json_get(json, golden, "drafted");
    assert_ok(whit_model_open(shared_path("models-tiny/gemma4-e2b/hf"), &no_cache, &model, &error), error);
    assert_ok(whit_model_open(path, &no_cache, &drafter, &error), error);
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = 64;
    options.n_threads = 1;
    options.kv = WHIT_KV_F32;
    options.act = WHIT_ACT_F32;
    assert_ok(whit_session_open_drafting(model, &options, drafter, &session, &error), error);
    uint32_t row = whit_json_first(json, drafted), n_fed = 0, n_rows = 0;
    for (uint32_t at = whit_json_first(json, positions); at != WHIT_JSON_NONE;
         at = whit_json_next(json, positions, at)) {
        int64_t p, id;
        assert_true(whit_json_i64(json, at, &p));
        feed(session, ids + n_fed, (uint32_t)p - n_fed);
        n_fed = (uint32_t)p;
        uint32_t wanted = whit_json_first(json, row);
        for (uint32_t k = 0; k < N_STEPS; k++, wanted = whit_json_next(json, row, wanted)) {
            int32_t guesses[N_STEPS];
            assert_int_equal(whit_drafter_guess(session->drafter, 0, n_fed, ids[p], k + 1, guesses, NULL), k + 1);
            assert_true(whit_json_i64(json, wanted, &id));
            assert_int_equal(guesses[k], id);
            const float *given = whit_exec_row(&session->drafter->exec, session->drafter->plan.output, 0);
            const float *golden_row = logits + ((size_t)n_rows * N_STEPS + k) * N_VOCAB;
            for (uint32_t i = 0; i < N_VOCAB; i++)
                if (fabs((double)given[i] - (double)golden_row[i]) > 1e-3)
                    fail_msg("position %d, guess %u, logit %u: %g, not %g", (int)p, k, i, (double)given[i],
                             (double)golden_row[i]);
        }
        row = whit_json_next(json, drafted, row);
        n_rows++;
    }
    assert_int_equal(n_rows, 12);
    whit_session_close(session);
    whit_model_close(drafter);
    whit_model_close(model);
}

static void the_assistant_guesses_what_its_golden_says(void **state)
{
    (void)state;
    whit_error error;
    whit_json json;
    whit_buf text = {0}, logits = {0}, tokens = {0};
    int32_t ids[48];
    uint32_t n_ids = 0, golden = WHIT_JSON_NONE;
    assert_ok(whit_read_file(shared_path("models-tiny/gemma4-e2b/golden.json"), 1 << 20, &text, &error), error);
    assert_ok(whit_read_file(shared_path("models-tiny/gemma4-e2b/draft-logits.f32"), 1 << 20, &logits, &error), error);
    assert_ok(whit_read_file(shared_path("models-tiny/gemma4-e2b/tokens.txt"), 1 << 20, &tokens, &error), error);
    assert_ok(whit_json_parse("golden.json", whit_chars(&text), text.size_bytes, NULL, &json, &error), error);
    whit_buf_append(&tokens, "", 1);
    for (char *at = (char *)tokens.data, *end; n_ids < 48; at = end) {
        ids[n_ids++] = (int32_t)strtol(at, &end, 10);
        while (*end && (*end < '0' || *end > '9')) end++;
    }
    const uint32_t goldens = whit_json_get(&json, 0, "goldens");
    for (uint32_t at = whit_json_first(&json, goldens); at != WHIT_JSON_NONE; at = whit_json_next(&json, goldens, at))
        if (whit_json_is(&json, whit_json_get(&json, at, "logits_file"), "draft-logits.f32")) golden = at;
    assert_int_not_equal(golden, WHIT_JSON_NONE);
    const float *rows = (const float *)(const void *)logits.data;
    check_assistant(shared_path("models-tiny/gemma4-e2b/assistant/hf"), &json, golden, ids, rows);
    check_assistant(shared_path("models-tiny/gemma4-e2b/assistant/gemma4-e2b-assistant-bf16.gguf"), &json, golden, ids,
                    rows);
    whit_json_close(&json);
    whit_buf_free(&text);
    whit_buf_free(&logits);
    whit_buf_free(&tokens);
}

static void models_without_a_block_are_refused(void **state)
{
    (void)state;
    whit_error error;
    whit_session *session;
    whit_ndf_writer *writer;
    whit_model *model = open_random(0, &writer);
    whit_session_options options = whit_session_options_default();
    assert_int_equal(whit_session_open_drafting(model, &options, model, &session, &error), WHIT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "no block that predicts further tokens"));
    whit_model_close(model);
    whit_ndf_writer_close(writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guesses_are_those_of_the_block),
        cmocka_unit_test(no_setting_changes_a_text),
        cmocka_unit_test(guesses_do_not_depend_on_the_past),
        cmocka_unit_test(shorter_sequences_are_guessed_anew),
        cmocka_unit_test(a_reading_draft_model_changes_no_text),
        cmocka_unit_test(the_assistant_guesses_what_its_golden_says),
        cmocka_unit_test(models_without_a_block_are_refused),
    };
    return cmocka_run_group_tests_name("drafter", tests, NULL, NULL);
}
