/* SPDX-License-Identifier: MIT
 * Compares the sampler chain with a simple reference: all candidates sorted, functions of libm, one list per stage. */
#include "test.h"

#include "runtime/elementary.h"
#include "base/mem.h"
#include "runtime/chain.h"

#include <float.h>

enum { VOCAB_MAX = 700, HISTORY = 200 };

/* ---- the reference ------------------------------------------------------------------------- */

typedef struct choice {
    double logit;
    uint32_t id;
} choice;

typedef struct reference {
    const whit_sampler_options *o;
    const uint8_t *breakers;
    whit_rng rng;
    double mu;
    uint32_t seen[100000];
    uint32_t n_seen;
    choice list[VOCAB_MAX];
    double p[VOCAB_MAX];
    uint32_t n;
} reference;

static int by_logit(const void *a, const void *b)
{
    const choice *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static void softmax_ref(reference *r, double t)
{
    double sum = 0;
    for (uint32_t i = 0; i < r->n; i++) sum += r->p[i] = exp((r->list[i].logit - r->list[0].logit) / t);
    for (uint32_t i = 0; i < r->n; i++) r->p[i] /= sum;
}

static double entropy_ref(const reference *r)
{
    double sum = 0;
    for (uint32_t i = 0; i < r->n; i++)
        if (r->p[i] > 0) sum -= r->p[i] * log(r->p[i]);
    return sum;
}

static uint32_t draw_ref(reference *r)
{
    double u = whit_rng_uniform(&r->rng), sum = 0;
    for (uint32_t i = 0; i < r->n; i++)
        if ((sum += r->p[i]) > u) return i;
    return r->n - 1;
}

static void drop_front(reference *r, uint32_t n)
{
    memmove(r->list, r->list + n, (r->n - n) * sizeof r->list[0]);
    r->n -= n;
}

static uint32_t length_of_window(const reference *r, int32_t last_n)
{
    uint32_t n = r->n_seen < HISTORY ? r->n_seen : HISTORY;
    return last_n < 0 || (uint32_t)last_n > n ? n : (uint32_t)last_n;
}

static bool breaks(const reference *r, uint32_t id)
{
    return r->breakers[id / 8] >> (id % 8) & 1;
}

static void penalties_ref(reference *r)
{
    const whit_sampler_options *o = r->o;
    uint32_t n = length_of_window(r, o->penalty_last_n);
    for (uint32_t i = 0; i < r->n; i++) {
        uint32_t count = 0;
        for (uint32_t j = 0; j < n; j++) count += r->seen[r->n_seen - 1 - j] == r->list[i].id;
        if (!count) continue;
        double logit = r->list[i].logit;
        logit = logit <= 0 ? logit * o->repeat_penalty : logit / o->repeat_penalty;
        r->list[i].logit = (float)(logit - count * (double)o->frequency_penalty - o->presence_penalty);
    }
}

static void dry_ref(reference *r)
{
    const whit_sampler_options *o = r->o;
    uint32_t n = length_of_window(r, o->dry_penalty_last_n);
    const uint32_t *end = r->seen + r->n_seen;
    for (uint32_t i = 0; i < r->n; i++) {
        uint32_t longest = 0;
        bool found = false;
        if (breaks(r, r->list[i].id)) continue;
        for (uint32_t at = 1; at < n; at++) { /* an earlier occurrence, `at` tokens before the end */
            if (end[-(ptrdiff_t)at] != r->list[i].id) continue;
            uint32_t length = 0;
            while (at + length < n && end[-1 - (ptrdiff_t)length] == end[-1 - (ptrdiff_t)(at + length)] &&
                   !breaks(r, end[-1 - (ptrdiff_t)length]))
                length++;
            if (length >= (uint32_t)o->dry_allowed_length) {
                found = true;
                if (length > longest) longest = length;
            }
        }
        if (found)
            r->list[i].logit = (float)(r->list[i].logit -
                                       o->dry_multiplier * pow(o->dry_base, longest - (double)o->dry_allowed_length));
    }
}

static void sigma_ref(reference *r)
{
    double mean = 0, var = 0;
    for (uint32_t i = 0; i < r->n; i++) mean += r->list[i].logit / r->n;
    for (uint32_t i = 0; i < r->n; i++) var += (r->list[i].logit - mean) * (r->list[i].logit - mean) / r->n;
    double cut = r->list[0].logit - r->o->top_n_sigma * sqrt(var);
    while (r->list[r->n - 1].logit < cut) r->n--;
}

static void typical_ref(reference *r)
{
    softmax_ref(r, 1);
    double h = entropy_ref(r), mass = 0;
    bool kept[VOCAB_MAX] = {0};
    for (uint32_t taken = 0; taken < r->n; taken++) {
        uint32_t best = UINT32_MAX;
        double best_distance = INFINITY;
        for (uint32_t i = 0; i < r->n; i++) {
            double distance = fabs(-log(r->p[i]) - h);
            /* ties: from the middle outwards, the more probable side first */
            bool upper = -log(r->p[i]) < h - 1e-9;
            if (!kept[i] && distance < best_distance + (upper ? 1e-9 : -1e-9)) best = i, best_distance = distance;
        }
        if (best == UINT32_MAX) break;
        kept[best] = true;
        if ((mass += r->p[best]) > r->o->typical_p) break;
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n; i++)
        if (kept[i]) r->list[n++] = r->list[i];
    r->n = n;
}

static uint32_t mirostat_ref(reference *r, uint32_t n_vocab)
{
    const whit_sampler_options *o = r->o;
    softmax_ref(r, o->temperature);
    if (o->mirostat == 1) {
        double xy = 0, xx = 0;
        for (uint32_t i = 0; i + 1 < r->n && i < 99; i++) {
            double x = log((i + 2.0) / (i + 1.0));
            xy += x * (r->list[i].logit - r->list[i + 1].logit) / o->temperature;
            xx += x * x;
        }
        double s = xy / xx, k = pow((s - 1) * pow(2, r->mu) / (1 - pow(n_vocab, 1 - s)), 1 / s);
        if (!(k >= 1)) k = 1;
        if (k < r->n) r->n = (uint32_t)k;
    } else {
        uint32_t n = 1;
        while (n < r->n && -log2(r->p[n]) <= r->mu) n++;
        r->n = n;
    }
    softmax_ref(r, o->temperature);
    uint32_t i = draw_ref(r);
    r->mu -= o->mirostat_eta * (-log2(r->p[i]) - o->mirostat_tau);
    return r->list[i].id;
}

static uint32_t pick_ref(reference *r, const float *logits, uint32_t n_vocab)
{
    const whit_sampler_options *o = r->o;
    r->n = n_vocab;
    for (uint32_t i = 0; i < n_vocab; i++) r->list[i] = (choice){logits[i], i};
    for (size_t i = 0; i < o->n_biases; i++) {
        choice *biased = &r->list[o->bias_ids[i]];
        biased->logit = (float)(biased->logit + o->bias_values[i]);
    }
    if (!o->mirostat) penalties_ref(r);
    if (!o->mirostat && o->dry_multiplier > 0) dry_ref(r);
    qsort(r->list, r->n, sizeof r->list[0], by_logit);
    while (r->list[r->n - 1].logit < -FLT_MAX) r->n--;
    if (o->temperature <= 0) return r->list[0].id;
    if (o->mirostat) return mirostat_ref(r, n_vocab);
    if (o->top_n_sigma > 0) sigma_ref(r);
    if (o->top_k > 0 && r->n > (uint32_t)o->top_k) r->n = (uint32_t)o->top_k;
    if (o->typical_p < 1) typical_ref(r);
    if (o->top_p < 1) {
        softmax_ref(r, 1);
        double mass = 0;
        for (uint32_t i = 0; i < r->n; i++)
            if ((mass += r->p[i]) >= o->top_p) r->n = i + 1;
    }
    if (o->min_p > 0)
        while (r->list[r->n - 1].logit < r->list[0].logit + log(o->min_p)) r->n--;
    if (o->xtc_probability > 0 && o->xtc_threshold <= 0.5 && r->n > 1 &&
        whit_rng_uniform(&r->rng) <= o->xtc_probability) {
        softmax_ref(r, 1);
        uint32_t n_top = 0;
        while (n_top < r->n && r->p[n_top] >= o->xtc_threshold) n_top++;
        if (n_top > 1) drop_front(r, n_top - 1);
    }
    double t = o->temperature;
    if (o->dynatemp_range > 0 && r->n > 1) {
        softmax_ref(r, 1);
        double low = fmax(0, t - o->dynatemp_range), high = t + o->dynatemp_range;
        t = low + (high - low) * pow(entropy_ref(r) / log(r->n), o->dynatemp_exponent);
    }
    softmax_ref(r, fmax(t, 1e-30));
    return r->list[draw_ref(r)].id;
}

/* ---- tests --------------------------------------------------------------------------------- */

static double normal(whit_rng *rng)
{
    double sum = 0;
    for (int i = 0; i < 12; i++) sum += whit_rng_uniform(rng);
    return sum - 6;
}

static whit_sampler_options plain_options(uint64_t seed)
{
    return (whit_sampler_options){.seed = seed,
                                  .temperature = 1,
                                  .dynatemp_exponent = 1,
                                  .top_p = 1,
                                  .typical_p = 1,
                                  .top_n_sigma = -1,
                                  .xtc_threshold = 0.1f,
                                  .repeat_penalty = 1,
                                  .penalty_last_n = 64,
                                  .dry_base = 1.75f,
                                  .dry_allowed_length = 2,
                                  .dry_penalty_last_n = -1,
                                  .mirostat_tau = 5,
                                  .mirostat_eta = 0.1f,
                                  .n_history_tokens = HISTORY};
}

static whit_sampler_options random_options(whit_rng *rng)
{
    whit_sampler_options o = plain_options(whit_rng_next(rng));
    o.temperature = whit_rng_below(rng, 8) ? 0.3f + 1.5f * (float)whit_rng_uniform(rng) : 0.0f;
    if (!whit_rng_below(rng, 3)) o.top_k = (int32_t)whit_rng_below(rng, 60);
    if (!whit_rng_below(rng, 3)) o.top_p = (float)whit_rng_uniform(rng);
    if (!whit_rng_below(rng, 3)) o.min_p = 0.3f * (float)whit_rng_uniform(rng);
    if (!whit_rng_below(rng, 4)) o.typical_p = (float)whit_rng_uniform(rng);
    if (!whit_rng_below(rng, 4)) o.top_n_sigma = 3.0f * (float)whit_rng_uniform(rng);
    if (!whit_rng_below(rng, 4)) o.xtc_probability = 0.7f, o.xtc_threshold = 0.02f;
    if (!whit_rng_below(rng, 4)) o.dynatemp_range = 0.5f, o.dynatemp_exponent = 1.3f;
    if (!whit_rng_below(rng, 3)) {
        o.repeat_penalty = 1.3f;
        o.frequency_penalty = 0.1f;
        o.presence_penalty = 0.2f;
        o.penalty_last_n = (int32_t)whit_rng_below(rng, 300) - 1;
    }
    if (!whit_rng_below(rng, 3)) {
        o.dry_multiplier = 0.8f;
        o.dry_allowed_length = (int32_t)whit_rng_below(rng, 4);
        if (whit_rng_below(rng, 2)) o.dry_penalty_last_n = 50;
    }
    if (!whit_rng_below(rng, 5)) o.mirostat = 1 + (int32_t)whit_rng_below(rng, 2), o.mirostat_tau = 3;
    return o;
}

/* Makes random logits; in some calls they have ties, are all equal, or are extreme. */
static void random_logits(whit_rng *rng, float *logits, uint32_t n)
{
    uint64_t kind = whit_rng_below(rng, 8);
    for (uint32_t i = 0; i < n; i++) {
        double x = 3 * normal(rng);
        if (kind == 0) x = (double)(int)x;
        if (kind == 1) x = 2.5;
        if (kind == 2) x = x > 5 ? 0.0 : -0.0;
        if (kind == 3) x *= 1000;
        if (kind == 4 && i % 7 == 0) x = -1e38;
        logits[i] = (float)x;
    }
}

static void picks_equal_the_reference(void **state)
{
    (void)state;
    whit_rng rng = {.state = 7};
    reference *r = calloc(1, sizeof *r);
    static float logits[VOCAB_MAX];
    for (int trial = 0; trial < 1500; trial++) {
        /* every second vocabulary has at most 8 tokens, so that texts repeat themselves */
        uint32_t n_vocab = 1 + (uint32_t)whit_rng_below(&rng, trial % 2 ? 8 : VOCAB_MAX);
        whit_sampler_options o = random_options(&rng);
        uint8_t breakers[VOCAB_MAX / 8 + 1] = {[0] = 4};
        int32_t bias_ids[2] = {0, (int32_t)(n_vocab - 1)};
        float bias_values[2] = {1.5f, n_vocab > 1 ? -INFINITY : 1.0f};
        if (trial % 5 == 0) o.bias_ids = bias_ids, o.bias_values = bias_values, o.n_biases = 2;
        whit_error error;
        whit_chain chain;
        assert_ok(whit_chain_open(n_vocab, &o, breakers, NULL, &chain, &error), error);
        memset(r, 0, sizeof *r);
        r->o = &o;
        r->breakers = breakers;
        r->rng.state = o.seed;
        r->mu = 2 * o.mirostat_tau;
        for (int step = 0; step < 40; step++) {
            random_logits(&rng, logits, n_vocab);
            uint32_t id, expected = pick_ref(r, logits, n_vocab);
            assert_ok(whit_chain_pick(&chain, logits, &id, &error), error);
            if (id != expected) fail_msg("trial %d step %d: %u, the reference says %u", trial, step, id, expected);
            r->seen[r->n_seen++] = id;
        }
        whit_chain_close(&chain);
    }
    free(r);
}

static void elementary_functions_are_close(void **state)
{
    (void)state;
    whit_rng rng = {.state = 3};
    for (int i = 0; i < 200000; i++) {
        double x = 1400 * whit_rng_uniform(&rng) - 700, y = exp(x);
        if (fabs(whit_quick_exp(x) - y) > 4e-16 * 4 * y) fail_msg("exp(%a)", x);
        double z = fabs(whit_quick_log(y) - log(y));
        if (z > 1e-15 * fmax(1, fabs(log(y)))) fail_msg("log(%a)", y);
    }
    assert_true(whit_quick_exp(0) == 1.0 && whit_quick_log(1.0) == 0.0);
    assert_true(whit_quick_exp(-INFINITY) == 0.0 && whit_quick_exp(INFINITY) == INFINITY);
    assert_true(whit_quick_log(0.0) == -INFINITY);
    assert_true(whit_quick_pow(0, 0) == 1.0 && whit_quick_pow(0, 2) == 0.0);
}

/* A vocabulary of real size. The expected ids are written here, so that a machine with other results is noticed. */
static void a_seed_gives_the_same_picks_everywhere(void **state)
{
    (void)state;
    enum { VOCAB = 128256 };
    float *logits = malloc(VOCAB * sizeof *logits);
    static const int32_t top_ks[] = {40, 0, 0};
    static const float top_ps[] = {0.95f, 0.9f, 1.0f};
    static const uint32_t expected[3][4] = {
        {98159, 124331, 92130, 78177}, {101809, 26389, 81696, 23038}, {40074, 67848, 93833, 120981}};
    for (int chain_kind = 0; chain_kind < 3; chain_kind++) {
        whit_rng rng = {.state = 11};
        whit_sampler_options o = plain_options(42);
        o.top_k = top_ks[chain_kind];
        o.top_p = top_ps[chain_kind];
        whit_error error;
        whit_chain chain;
        assert_ok(whit_chain_open(VOCAB, &o, NULL, NULL, &chain, &error), error);
        for (int round = 0; round < 2; round++) {
            whit_rng again = rng;
            for (int i = 0; i < 4; i++) {
                for (uint32_t j = 0; j < VOCAB; j++) logits[j] = (float)(2.5 * normal(&again));
                uint32_t id;
                assert_ok(whit_chain_pick(&chain, logits, &id, &error), error);
                assert_int_equal(id, expected[chain_kind][i]);
            }
            whit_chain_reset(&chain);
        }
        whit_chain_close(&chain);
    }
    free(logits);
}

/* A bias of 0 changes no logit but needs all of them, so a chain with one is the reference. */
static void greatest_logits_are_enough(void **state)
{
    (void)state;
    enum { VOCAB = 20037, TRIALS = 300, N_TOP = 4 };
    whit_rng rng = {.state = 5};
    float *logits = malloc(VOCAB * sizeof *logits);
    int32_t bias_id = 9;
    float bias_value = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        whit_sampler_options o = plain_options(whit_rng_next(&rng));
        uint32_t k, n_vocab = trial % 3 ? VOCAB : 1 + (uint32_t)whit_rng_below(&rng, VOCAB);
        o.temperature = trial % 4 ? 0.8f : 0.0f;
        o.top_k = 1 + (int32_t)whit_rng_below(&rng, trial % 5 ? 100 : 400);
        if (trial % 2) o.top_p = 0.9f, o.min_p = 0.05f, o.typical_p = 0.95f;
        if (trial % 7 == 0) o.xtc_probability = 0.5f, o.dynatemp_range = 0.4f;
        whit_chain chain, whole;
        whit_error error;
        assert_ok(whit_chain_open(n_vocab, &o, NULL, NULL, &chain, &error), error);
        o.bias_ids = &bias_id, o.bias_values = &bias_value, o.n_biases = n_vocab > 9;
        assert_ok(whit_chain_open(n_vocab, &o, NULL, NULL, &whole, &error), error);
        assert_true(whit_chain_needs_only_top(&chain, &k));
        assert_true(n_vocab <= 9 || !whit_chain_needs_only_top(&whole, &k));
        for (int step = 0; step < 6; step++) {
            uint32_t id, expected;
            whit_logprob drawn[1 + N_TOP], drawn_expected[1 + N_TOP];
            random_logits(&rng, logits, n_vocab);
            if (step == 4) logits[n_vocab / 2] = -INFINITY;
            assert_ok(whit_chain_pick(&chain, logits, &id, &error), error);
            assert_ok(whit_chain_pick(&whole, logits, &expected, &error), error);
            assert_int_equal(id, expected);
            whit_chain_drawn(&chain, N_TOP, drawn);
            whit_chain_drawn(&whole, N_TOP, drawn_expected);
            assert_memory_equal(drawn, drawn_expected, sizeof drawn);
        }
        logits[n_vocab - 1] = NAN;
        assert_int_equal(whit_chain_pick(&chain, logits, &k, &error), WHIT_ERROR_NUMERIC);
        whit_chain_close(&chain);
        whit_chain_close(&whole);
    }
    free(logits);
}

static void bad_numbers_are_refused(void **state)
{
    (void)state;
    whit_error error;
    whit_chain chain;
    whit_sampler_options o = plain_options(1);
    assert_ok(whit_chain_open(5, &o, NULL, NULL, &chain, &error), error);
    float bad[2] = {NAN, INFINITY};
    for (int i = 0; i < 2; i++) {
        float logits[5] = {0, 1, 2, bad[i], 4};
        uint32_t id = 77;
        assert_int_equal(whit_chain_pick(&chain, logits, &id, &error), WHIT_ERROR_NUMERIC);
        assert_int_equal(id, 77);
    }
    uint32_t only = 0; /* minus infinity bans */
    float banned[5] = {-INFINITY, -INFINITY, -INFINITY, -3, -INFINITY};
    for (int i = 0; i < 8; i++) {
        assert_ok(whit_chain_pick(&chain, banned, &only, &error), error);
        assert_int_equal(only, 3);
    }
    banned[3] = -INFINITY;
    assert_int_equal(whit_chain_pick(&chain, banned, &only, &error), WHIT_ERROR_ARGUMENT);
    whit_chain_close(&chain);
    int32_t ids[2] = {0, 1};
    float values[2] = {-INFINITY, -INFINITY};
    o.bias_ids = ids, o.bias_values = values, o.n_biases = 2;
    assert_ok(whit_chain_open(2, &o, NULL, NULL, &chain, &error), error);
    uint32_t id;
    assert_int_equal(whit_chain_pick(&chain, (float[2]){0, 0}, &id, &error), WHIT_ERROR_ARGUMENT);
    whit_chain_close(&chain);
    values[1] = NAN;
    assert_int_equal(whit_chain_open(2, &o, NULL, NULL, &chain, &error), WHIT_ERROR_ARGUMENT);
    values[1] = 0, ids[1] = 2;
    assert_int_equal(whit_chain_open(2, &o, NULL, NULL, &chain, &error), WHIT_ERROR_ARGUMENT);
    o = plain_options(1);
    o.temperature = NAN;
    assert_int_equal(whit_chain_open(2, &o, NULL, NULL, &chain, &error), WHIT_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "temperature"));
}

typedef struct meter {
    int n_allocs, fail_at;
} meter;

static void *metered_alloc(void *user, size_t size_bytes, size_t align_bytes)
{
    meter *self = user;
    if (self->n_allocs++ == self->fail_at) return NULL;
    return aligned_alloc(align_bytes, whit_round_up(size_bytes ? size_bytes : 1, align_bytes));
}

static void metered_free(void *user, void *memory, size_t size_bytes)
{
    (void)user, (void)size_bytes;
    free(memory);
}

static void memory_is_taken_at_open_only(void **state)
{
    (void)state;
    whit_sampler_options o = plain_options(1);
    int32_t id0 = 3;
    float value = 1;
    o.bias_ids = &id0, o.bias_values = &value, o.n_biases = 1;
    o.dry_multiplier = 1, o.repeat_penalty = 1.1f, o.top_p = 0.9f, o.typical_p = 0.9f;
    whit_status status = WHIT_ERROR_MEMORY;
    for (int fail_at = 0; status != WHIT_OK; fail_at++) {
        meter self = {.fail_at = fail_at};
        whit_allocator allocator = {metered_alloc, metered_free, &self};
        whit_error error;
        whit_chain chain;
        status = whit_chain_open(50, &o, NULL, &allocator, &chain, &error);
        if (status != WHIT_OK) {
            assert_int_equal(status, WHIT_ERROR_MEMORY);
            continue;
        }
        int n_open = self.n_allocs;
        float logits[50] = {0};
        for (int i = 0; i < 500; i++) {
            uint32_t id;
            logits[i % 50] += 0.1f;
            assert_ok(whit_chain_pick(&chain, logits, &id, &error), error);
        }
        assert_int_equal(self.n_allocs, n_open);
        whit_chain_close(&chain);
    }
}

static void top_only_chains_say_so(void **state)
{
    (void)state;
    whit_error error;
    whit_chain chain;
    uint32_t k = 0;
    whit_sampler_options o = plain_options(1);
    assert_ok(whit_chain_open(2, &o, NULL, NULL, &chain, &error), error);
    assert_false(whit_chain_needs_only_top(&chain, &k));
    chain.options.top_k = 40;
    assert_true(whit_chain_needs_only_top(&chain, &k));
    assert_int_equal(k, 40);
    chain.options.temperature = 0;
    assert_true(whit_chain_needs_only_top(&chain, &k));
    assert_int_equal(k, 1);
    chain.options.repeat_penalty = 1.1f;
    assert_false(whit_chain_needs_only_top(&chain, &k));
    whit_chain_close(&chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elementary_functions_are_close),
        cmocka_unit_test(picks_equal_the_reference),
        cmocka_unit_test(a_seed_gives_the_same_picks_everywhere),
        cmocka_unit_test(bad_numbers_are_refused),
        cmocka_unit_test(memory_is_taken_at_open_only),
        cmocka_unit_test(top_only_chains_say_so),
        cmocka_unit_test(greatest_logits_are_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
