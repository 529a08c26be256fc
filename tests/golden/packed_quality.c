/* SPDX-License-Identifier: MIT
 * Tests how much packed caches cost in quality: trained models with each type against f32, window by window over the
 * second halves, as in `whit perplexity -c 256 --second-half --kv-base f32`. Each bound is far below the loss of a
 * cache from which no packed block is read; that loss is stated with the bound. WHIT_WINDOWS sets the number of
 * windows of prose-6M; the long test takes all. WHIT_TABLE=1 prints the table of docs/use/context.md. */
#include "test.h"

#include <math.h>
#include <unistd.h>

#include "base/file.h"
#include "model/convert.h"
#include "model/exec_step.h"
#include "runtime/session.h"

enum { N_CTX = 256, FIRST = N_CTX / 2, MOST_CASES = 16 };

/* ---- attention without packed blocks ----------------------------------------------------------- */

static whit_kv_attend_fn *packed_attend;

/* Attends to the positions of each span that are in [first, end). */
static void attend_between(uint32_t first, uint32_t end, whit_kv_group *group, const uint8_t *queries,
                           const whit_kv_span *spans, uint32_t n, uint32_t head_dim, float scale, float *partials,
                           float *into)
{
    whit_kv_span *cut = calloc(n, sizeof *cut);
    assert_non_null(cut);
    for (uint32_t i = 0; i < n; i++)
        cut[i] = (whit_kv_span){(uint16_t)(spans[i].begin > first ? spans[i].begin : first),
                                (uint16_t)(spans[i].end < end ? spans[i].end : end)};
    packed_attend(group, NULL, queries, cut, n, head_dim, scale, partials, into);
    free(cut);
}

/* Replaces a packed type's kernel: attends only to attention sinks and open blocks. */
static void attend_unpacked(whit_kv_group *group, const whit_kv_group *next, const uint8_t *queries,
                            const whit_kv_span *spans, uint32_t n, uint32_t head_dim, float scale, float *partials,
                            float *into)
{
    (void)next;
    const uint32_t n_closed = (uint32_t)__builtin_popcount(group->closed) * WHIT_KV_BLOCK_TOKENS;
    const size_t elems = whit_kv_partial_elems(head_dim);
    float *scratch = whit_alloc(NULL, n * elems * sizeof *scratch);
    assert_non_null(scratch);
    if (!into) /* the partial result of a query without positions */
        for (uint32_t i = 0; i < n; i++) partials[i * elems + head_dim + 1] = 0;
    float *sum = into ? into : partials;
    if (group->sinks) attend_between(0, WHIT_KV_SINKS, group, queries, spans, n, head_dim, scale, scratch, sum);
    attend_between(n_closed, WHIT_KV_GROUP_TOKENS, group, queries, spans, n, head_dim, scale, scratch, sum);
    whit_free(NULL, scratch, n * elems * sizeof *scratch);
}

/* ---- divergences ------------------------------------------------------------------------------ */

typedef struct kv_case {
    const char *name;
    whit_kv_type kv;
    uint32_t window;
    bool reads_packed;
    /* ratio: upper limit of the perplexity's ratio to the first case; kl: upper limit of the KL divergence or,
     * without reads_packed, lower limit; 0: no limit */
    double ratio, kl;
} kv_case;

typedef struct subject {
    whit_session *session;
    double nll, kl;
} subject;

static double log_sum(const float *logits, uint32_t n)
{
    double most = -INFINITY, sum = 0;
    for (uint32_t i = 0; i < n; i++) most = fmax(most, (double)logits[i]);
    for (uint32_t i = 0; i < n; i++) sum += exp((double)logits[i] - most);
    return most + log(sum);
}

static void score(subject *s, const float *logits, const float *base, double base_sum, uint32_t n, int32_t next)
{
    const double sum = log_sum(logits, n);
    double kl = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double p = (double)base[i] - base_sum, q = (double)logits[i] - sum;
        kl += exp(p) * (p - q);
    }
    s->kl += kl;
    s->nll += sum - (double)logits[next];
}

static void open_subject(const whit_model *model, const kv_case *c, subject *s)
{
    whit_error error;
    whit_session_options options = whit_session_options_default();
    options.kv = c->kv;
    options.n_kv_window = c->window;
    options.act = WHIT_ACT_F32;
    options.n_threads = 1;
    options.n_ctx_tokens = options.n_batch_tokens = options.n_logits = N_CTX;
    *s = (subject){0};
    assert_ok(whit_session_open(model, &options, &s->session, &error), error);
    whit_exec *exec = &s->session->exec;
    for (uint32_t i = 0; !c->reads_packed && i < s->session->kv.n_classes; i++) {
        if (!exec->caches[i].pack) continue;
        packed_attend = exec->caches[i].attend;
        exec->caches[i].attend = attend_unpacked;
    }
}

static void run_window(subject *s, const int32_t *ids)
{
    whit_error error;
    whit_step_token tokens[N_CTX];
    for (uint32_t i = 0; i < N_CTX; i++) tokens[i] = (whit_step_token){.id = ids[i], .want_logits = i >= FIRST};
    assert_ok(whit_session_truncate(s->session, 0, 0, &error), error);
    assert_ok(whit_session_step(s->session, tokens, N_CTX, &error), error);
}

/* Measures all cases window by window. The others are compared with the first case. */
static void measure(const whit_model *model, int32_t *ids, size_t n_windows, const kv_case *cases, size_t n_cases,
                    subject *subjects)
{
    const uint32_t n_vocab = whit_model_vocab_size(model);
    for (size_t c = 0; c < n_cases; c++) open_subject(model, &cases[c], &subjects[c]);
    for (size_t w = 0; w < n_windows; w++) {
        int32_t *window = ids + w * N_CTX;
        window[0] = whit_model_bos(model);
        for (size_t c = 0; c < n_cases; c++) run_window(&subjects[c], window);
        for (uint32_t i = 0; i + 1 < N_CTX - FIRST; i++) {
            const float *base = whit_session_logits(subjects[0].session, i);
            const double sum = log_sum(base, n_vocab);
            for (size_t c = 0; c < n_cases; c++)
                score(&subjects[c], whit_session_logits(subjects[c].session, i), base, sum, n_vocab,
                      window[FIRST + i + 1]);
        }
    }
    const double n = (double)n_windows * (N_CTX - FIRST - 1);
    for (size_t c = 0; c < n_cases; c++) {
        subjects[c].kl /= n, subjects[c].nll /= n;
        whit_session_close(subjects[c].session);
    }
}

static size_t tokens_of(const whit_model *model, const char *path, int32_t **ids)
{
    whit_error error;
    whit_map map = {0};
    size_t n = 0;
    assert_ok(whit_map_open(path, NULL, &map, &error), error);
    *ids = calloc(map.size_bytes + 1, sizeof **ids);
    assert_non_null(*ids);
    assert_ok(
        whit_tokenize(model, (const char *)map.data, map.size_bytes, true, false, *ids, map.size_bytes + 1, &n, &error),
        error);
    whit_map_close(&map);
    return n;
}

static void check(const char *model_path, const char *text, size_t most_windows, const kv_case *cases, size_t n_cases)
{
    whit_error error;
    whit_model *model;
    subject subjects[MOST_CASES];
    int32_t *ids;
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    assert_ok(whit_model_open(shared_path(model_path), &options, &model, &error), error);
    size_t n_windows = tokens_of(model, shared_path(text), &ids) / N_CTX;
    if (n_windows > most_windows) n_windows = most_windows;
    assert_true(n_windows > 0 && n_cases <= MOST_CASES);
    measure(model, ids, n_windows, cases, n_cases, subjects);
    for (size_t c = 1; c < n_cases; c++) {
        const double ratio = exp(subjects[c].nll - subjects[0].nll), kl = subjects[c].kl;
        if (getenv("WHIT_TABLE"))
            print_message("%s, %zu windows: %s, --kv-window %u%s: ratio %.4f, KL %.5f\n", model_path, n_windows,
                          cases[c].name, cases[c].window, cases[c].reads_packed ? "" : ", packed blocks not read",
                          ratio, kl);
        const bool is_bad = (cases[c].ratio > 0 && !(ratio <= cases[c].ratio)) ||
            (cases[c].kl > 0 && !(cases[c].reads_packed ? kl <= cases[c].kl : kl >= cases[c].kl));
        if (is_bad)
            fail_msg("%s, %s, --kv-window %u%s: ratio %.5f and KL %.6f, the bounds are %g and %g", model_path,
                     cases[c].name, cases[c].window, cases[c].reads_packed ? "" : ", packed blocks not read", ratio, kl,
                     cases[c].ratio, cases[c].kl);
    }
    free(ids);
    whit_model_close(model);
}

static void prose(void **state)
{
    (void)state;
    static const kv_case cases[] = {
        {"f32", WHIT_KV_F32, 0, true, 0, 0},           {"k4v2", WHIT_KV_K4V2, 0, true, 1.006, 0.002},
        {"k2v2", WHIT_KV_K2V2, 0, true, 1.012, 0.006}, {"bitmap", WHIT_KV_BITMAP, 0, true, 1.040, 0.008},
        {"bitmap", WHIT_KV_BITMAP, 0, false, 0, 0},    {"k4v2", WHIT_KV_K4V2, 1, true, 0, 0.001},
        {"k2v2", WHIT_KV_K2V2, 1, true, 0, 0.003},     {"bitmap", WHIT_KV_BITMAP, 1, true, 0, 0.006},
        {"bitmap", WHIT_KV_BITMAP, 1, false, 0, 0}};
    const char *windows = getenv("WHIT_WINDOWS");
    check("models/prose-6M/prose-6M-f16.gguf", "models/prose-6M/own.txt", windows ? strtoul(windows, NULL, 10) : 4,
          cases, sizeof cases / sizeof *cases);
}

/* Measures a model with long-range attention; its tokens have few bytes, its heads 8 dimensions. */
static void stories(void **state)
{
    (void)state;
    static const kv_case cases[] = {
        {"f32", WHIT_KV_F32, 0, true, 0, 0},           {"k4v2", WHIT_KV_K4V2, 0, true, 1.01, 0.01},
        {"k2v2", WHIT_KV_K2V2, 0, true, 1.03, 0.07},   {"bitmap", WHIT_KV_BITMAP, 0, true, 1.147, 0.16},
        {"bitmap", WHIT_KV_BITMAP, 0, false, 0, 0},    {"k4v2", WHIT_KV_K4V2, 1, true, 1.005, 0.0025},
        {"k2v2", WHIT_KV_K2V2, 1, true, 1.012, 0.012}, {"bitmap", WHIT_KV_BITMAP, 1, true, 1.023, 0.015},
        {"bitmap", WHIT_KV_BITMAP, 1, false, 0, 0}};
    check("models/stories260K/stories260K.gguf", "corpora/tinystories_sample.txt", SIZE_MAX, cases,
          sizeof cases / sizeof *cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(prose), cmocka_unit_test(stories)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
