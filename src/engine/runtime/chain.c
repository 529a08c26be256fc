/* SPDX-License-Identifier: MIT
 * Runs the chain of samplers. Every probability is exp((logit - greatest) / temperature), divided by the sum of these
 * terms over the candidates left at that point, in double precision. */
#include "runtime/chain.h"
#include "runtime/elementary.h"
#include "base/mem.h"

#include <float.h>

enum { MIROSTAT_LOOK = 100 }; /* number of most probable candidates from which mirostat 1 estimates the slope */

/* ---- opening ------------------------------------------------------------------------------- */

static whit_status check_options(const whit_sampler_options *o, whit_error *error)
{
    const struct {
        const char *name;
        double value, min, max;
    } ranges[] = {
        {"temperature", o->temperature, -FLT_MAX, FLT_MAX},
        {"dynatemp range", o->dynatemp_range, 0, FLT_MAX},
        {"dynatemp exponent", o->dynatemp_exponent, 0, FLT_MAX},
        {"top-p", o->top_p, 0, 1},
        {"min-p", o->min_p, 0, 1},
        {"typical-p", o->typical_p, 0, 1},
        {"top-n-sigma", o->top_n_sigma, -FLT_MAX, FLT_MAX},
        {"xtc probability", o->xtc_probability, 0, 1},
        {"xtc threshold", o->xtc_threshold, 0, 1},
        {"repeat penalty", o->repeat_penalty, FLT_MIN, FLT_MAX},
        {"presence penalty", o->presence_penalty, -FLT_MAX, FLT_MAX},
        {"frequency penalty", o->frequency_penalty, -FLT_MAX, FLT_MAX},
        {"dry multiplier", o->dry_multiplier, 0, FLT_MAX},
        {"dry base", o->dry_base, 0, FLT_MAX},
        {"dry allowed length", o->dry_allowed_length, 0, INT32_MAX},
        {"top-k", o->top_k, -1, INT32_MAX},
        {"window of penalties", o->penalty_last_n, -1, INT32_MAX},
        {"window of dry", o->dry_penalty_last_n, -1, INT32_MAX},
        {"mirostat", o->mirostat, 0, 2},
        {"mirostat tau", o->mirostat_tau, -FLT_MAX, FLT_MAX},
        {"mirostat eta", o->mirostat_eta, -FLT_MAX, FLT_MAX},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (ranges[i].value >= ranges[i].min && ranges[i].value <= ranges[i].max) continue;
        if (ranges[i].max == INT32_MAX)
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s is %g, but must be at least %g", ranges[i].name,
                             ranges[i].value, ranges[i].min);
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s is %g, but must be from %g to %g", ranges[i].name,
                         ranges[i].value, ranges[i].min, ranges[i].max);
    }
    return WHIT_OK;
}

static whit_status copy_biases(whit_chain *chain, whit_error *error)
{
    const whit_sampler_options *o = &chain->options;
    size_t n = o->n_biases;
    if (n == 0) return WHIT_OK;
    if (!o->bias_ids || !o->bias_values)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "n_biases is %zu, but bias_ids or bias_values is NULL", n);
    for (size_t i = 0; i < n; i++) {
        if (o->bias_ids[i] < 0 || (uint32_t)o->bias_ids[i] >= chain->candidates.n_vocab)
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "logit bias: the vocabulary has no token %d", o->bias_ids[i]);
        if (!(o->bias_values[i] <= FLT_MAX)) /* -infinity is allowed: it bans a token */
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "logit bias of token %d is not a number", o->bias_ids[i]);
    }
    chain->bias_ids = whit_zalloc_array(chain->allocator, n, sizeof *chain->bias_ids);
    chain->bias_values = whit_zalloc_array(chain->allocator, n, sizeof *chain->bias_values);
    if (!chain->bias_ids || !chain->bias_values)
        return whit_fail_memory(error, "the list of logit biases", n * sizeof *chain->bias_ids);
    memcpy(chain->bias_ids, o->bias_ids, n * sizeof *chain->bias_ids);
    memcpy(chain->bias_values, o->bias_values, n * sizeof *chain->bias_values);
    return WHIT_OK;
}

whit_status whit_chain_open(uint32_t n_vocab, const whit_sampler_options *options, const uint8_t *breakers,
                            const whit_allocator *allocator, whit_chain *chain, whit_error *error)
{
    *chain = (whit_chain){.options = *options, .allocator = allocator};
    if (n_vocab == 0)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "the vocabulary of a sampler needs at least one token");
    whit_status status = check_options(options, error);
    if (status == WHIT_OK) status = whit_candidates_open(n_vocab, allocator, &chain->candidates, error);
    if (status == WHIT_OK)
        status = whit_history_open(n_vocab, options->n_history_tokens, allocator, &chain->history, error);
    chain->history.breakers = breakers;
    if (status == WHIT_OK) status = copy_biases(chain, error);
    if (status == WHIT_OK)
        whit_chain_reset(chain);
    else
        whit_chain_close(chain);
    return status;
}

void whit_chain_close(whit_chain *chain)
{
    size_t n = chain->options.n_biases;
    whit_candidates_close(&chain->candidates);
    whit_history_close(&chain->history);
    whit_free(chain->allocator, chain->bias_ids, n * sizeof *chain->bias_ids);
    whit_free(chain->allocator, chain->bias_values, n * sizeof *chain->bias_values);
    *chain = (whit_chain){0};
}

void whit_chain_reset(whit_chain *chain)
{
    chain->rng.state = chain->options.seed;
    chain->mirostat_mu = 2.0 * chain->options.mirostat_tau;
    whit_history_clear(&chain->history);
}

void whit_chain_accept(whit_chain *chain, uint32_t id)
{
    if (id < chain->candidates.n_vocab) whit_history_push(&chain->history, id);
}

/* ---- probabilities ------------------------------------------------------------------------- */

typedef struct softmax {
    double max, temperature, sum;
} softmax;

static double weight(double logit, const void *context)
{
    const softmax *s = context;
    return whit_quick_exp((logit - s->max) / s->temperature);
}

static double weight_times_distance(double logit, const void *context)
{
    const softmax *s = context;
    double w = weight(logit, context);
    return w > 0.0 ? w * ((logit - s->max) / s->temperature) : 0.0;
}

static softmax softmax_of(whit_candidates *c, double temperature)
{
    softmax s = {.max = whit_key_logit(whit_candidates_max(c)), .temperature = temperature};
    s.sum = whit_candidates_sum(c, weight, &s);
    return s;
}

static double probability(const softmax *s, uint64_t key)
{
    return weight(whit_key_logit(key), s) / s->sum;
}

/* Returns the surprise of a candidate with probability p: -ln p. */
static double surprise(const softmax *s, uint64_t key)
{
    return whit_quick_log(s->sum) - ((double)whit_key_logit(key) - s->max) / s->temperature;
}

/* Returns the entropy of the candidates in nats: the sum of p * -ln p. */
static double entropy(whit_candidates *c, const softmax *s)
{
    return whit_quick_log(s->sum) - whit_candidates_sum(c, weight_times_distance, s) / s->sum;
}

/* Draws one candidate by its probability: the first one in descending order at which the cumulative sum of weights
 * exceeds a random target. */
static uint64_t draw(whit_chain *chain, const softmax *s)
{
    whit_candidates *c = &chain->candidates;
    whit_rng *rng = &chain->rng;
    chain->drawn.max = s->max;
    chain->drawn.temperature = s->temperature;
    chain->drawn.sum = s->sum;
    double target = whit_rng_uniform(rng) * s->sum, sum = 0.0;
    uint32_t n = whit_candidates_count(c);
    for (uint32_t i = 0; i + 1 < n; i++) {
        uint64_t key = whit_candidates_at(c, i);
        sum += weight(whit_key_logit(key), s);
        if (sum > target) return key;
    }
    return whit_candidates_at(c, n - 1);
}

/* ---- the samplers, in the order of the chain ----------------------------------------------- */

static double logit_itself(double logit, const void *context)
{
    (void)context;
    return logit;
}

static double square_distance(double logit, const void *context)
{
    double distance = logit - *(const double *)context;
    return distance * distance;
}

/* Keeps the candidates whose logit is at most n_sigma standard deviations below the greatest. */
static void top_n_sigma(whit_candidates *c, double n_sigma)
{
    if (n_sigma <= 0.0) return;
    double n = whit_candidates_count(c);
    double mean = whit_candidates_sum(c, logit_itself, NULL) / n;
    double sigma = sqrt(whit_candidates_sum(c, square_distance, &mean) / n);
    whit_candidates_keep_from(c, (double)whit_key_logit(whit_candidates_max(c)) - n_sigma * sigma);
}

/* Locally typical sampling (Meister and others, 2022): keeps the candidates whose surprise is nearest to the entropy,
 * until their mass exceeds p. These candidates are an interval of the order, grown from the middle; of two equal
 * distances the more probable side is taken first. In a flat distribution all surprises equal the entropy except for
 * rounding; with the margin of 1e-9 none of them counts as less. */
static void typical(whit_candidates *c, double p)
{
    if (p >= 1.0) return;
    softmax s = softmax_of(c, 1.0);
    double middle = entropy(c, &s), mass = 0.0;
    uint32_t n = whit_candidates_count(c), begin = 0;
    while (begin < n && surprise(&s, whit_candidates_at(c, begin)) < middle - 1e-9) begin++;
    uint32_t end = begin; /* the candidates [begin, end) are kept */
    do {
        double before = begin > 0 ? middle - surprise(&s, whit_candidates_at(c, begin - 1)) : INFINITY;
        double after = end < n ? surprise(&s, whit_candidates_at(c, end)) - middle : INFINITY;
        uint32_t taken = before <= after ? --begin : end++;
        mass += probability(&s, whit_candidates_at(c, taken));
    } while (mass <= p && end - begin < n);
    whit_candidates_keep(c, end);
    whit_candidates_drop_greatest(c, begin);
}

/* Keeps the smallest number of most probable candidates whose probabilities add up to at least p. */
static void top_p(whit_candidates *c, double p)
{
    if (p >= 1.0) return;
    softmax s = softmax_of(c, 1.0);
    uint32_t n = whit_candidates_count(c), kept = 0;
    double mass = 0.0;
    do {
        mass += probability(&s, whit_candidates_at(c, kept++));
    } while (mass < p && kept < n);
    whit_candidates_keep(c, kept);
}

/* Keeps candidates at least p times as probable as the most probable one. */
static void min_p(whit_candidates *c, double p)
{
    if (p <= 0.0) return;
    whit_candidates_keep_from(c, (double)whit_key_logit(whit_candidates_max(c)) + whit_quick_log(p));
}

/* "Exclude top choices": with probability `chance`, drops all candidates with a probability of at least `threshold`
 * except the least probable of these; does nothing if the threshold is above 0.5. */
static void xtc(whit_candidates *c, double chance, double threshold, whit_rng *rng)
{
    if (chance <= 0.0 || threshold > 0.5 || whit_candidates_count(c) < 2) return;
    if (whit_rng_uniform(rng) > chance) return;
    softmax s = softmax_of(c, 1.0);
    uint32_t n = whit_candidates_count(c), n_top = 0;
    while (n_top < n && probability(&s, whit_candidates_at(c, n_top)) >= threshold) n_top++;
    if (n_top > 1) whit_candidates_drop_greatest(c, n_top - 1);
}

/* If range > 0 and there are several candidates, returns a temperature between t - range (at least 0) and t + range
 * that grows with the entropy; else returns t. */
static double dynamic_temperature(whit_candidates *c, double t, double range, double exponent)
{
    uint32_t n = whit_candidates_count(c);
    if (range <= 0.0 || n <= 1) return t;
    softmax s = softmax_of(c, 1.0);
    double share = entropy(c, &s) / whit_quick_log(n);
    double low = t > range ? t - range : 0.0;
    return low + (t + range - low) * whit_quick_pow(share, exponent);
}

/* ---- mirostat (Basu and others, 2020) ------------------------------------------------------ */

/* Mirostat version 1: computes how many candidates to keep from the exponent of Zipf's law, fitted to the most probable
 * ones. */
static uint32_t mirostat_count(whit_candidates *c, double temperature, double mu)
{
    uint32_t n = whit_candidates_count(c);
    double xy = 0.0, xx = 0.0;
    for (uint32_t i = 0; i + 1 < n && i + 1 < MIROSTAT_LOOK; i++) {
        double x = whit_quick_log((i + 2.0) / (i + 1.0));
        double upper = whit_key_logit(whit_candidates_at(c, i));
        double lower = whit_key_logit(whit_candidates_at(c, i + 1));
        xy += x * ((upper - lower) / temperature);
        xx += x * x;
    }
    if (xx == 0.0) return 1;
    double slope = xy / xx, beyond = slope - 1.0;
    /* With a slope of 1, `beyond` is 0: the limit of the formula is used, which is ln(n_vocab). */
    double harmonic = beyond == 0.0 ? whit_quick_log(c->n_vocab) : (1.0 - whit_quick_pow(c->n_vocab, -beyond)) / beyond;
    double k = whit_quick_pow(whit_quick_pow(2.0, mu) / harmonic, 1.0 / slope);
    if (!(k > 1.0)) return 1;
    return k < n ? (uint32_t)k : n;
}

/* Mirostat version 2: returns the number of candidates whose surprise is at most mu bits, at least 1. */
static uint32_t mirostat_count_2(whit_candidates *c, double temperature, double mu)
{
    softmax s = softmax_of(c, temperature);
    uint32_t n = whit_candidates_count(c), kept = 1;
    double limit = mu * whit_quick_log(2.0);
    while (kept < n && surprise(&s, whit_candidates_at(c, kept)) <= limit) kept++;
    return kept;
}

static uint64_t mirostat(whit_chain *chain)
{
    whit_candidates *c = &chain->candidates;
    const whit_sampler_options *o = &chain->options;
    double t = o->temperature;
    whit_candidates_keep(
        c, o->mirostat == 1 ? mirostat_count(c, t, chain->mirostat_mu) : mirostat_count_2(c, t, chain->mirostat_mu));
    softmax s = softmax_of(c, t);
    uint64_t key = draw(chain, &s);
    double bits = surprise(&s, key) / whit_quick_log(2.0);
    chain->mirostat_mu -= o->mirostat_eta * (bits - o->mirostat_tau);
    return key;
}

/* ---- one pick ------------------------------------------------------------------------------ */

static uint32_t window(int32_t last_n, uint32_t n_history)
{
    return last_n < 0 || (uint32_t)last_n > n_history ? n_history : (uint32_t)last_n;
}

static bool penalizes(const whit_sampler_options *o)
{
    return o->mirostat == 0 && o->penalty_last_n != 0 &&
        (o->repeat_penalty != 1.0f || o->frequency_penalty != 0.0f || o->presence_penalty != 0.0f);
}

static bool penalizes_repetition(const whit_sampler_options *o)
{
    return o->mirostat == 0 && o->dry_penalty_last_n != 0 && o->dry_multiplier != 0.0f && o->dry_base >= 1.0f;
}

/* Applies biases and penalties, and removes banned tokens. */
static void edit_logits(whit_chain *chain, bool any_banned)
{
    const whit_sampler_options *o = &chain->options;
    whit_candidates *c = &chain->candidates;
    for (size_t i = 0; i < o->n_biases; i++) {
        uint32_t id = (uint32_t)chain->bias_ids[i];
        double logit = (double)whit_key_logit(c->keys[id]) + chain->bias_values[i];
        if (logit > FLT_MAX) logit = FLT_MAX;
        if (logit < -FLT_MAX) logit = -INFINITY;
        any_banned |= logit < -FLT_MAX;
        c->keys[id] = whit_key((float)logit, id);
    }
    uint32_t n_history = chain->history.n_history;
    if (penalizes(o))
        whit_history_penalize(&chain->history, c, window(o->penalty_last_n, n_history), o->repeat_penalty,
                              o->frequency_penalty, o->presence_penalty);
    if (penalizes_repetition(o))
        whit_history_penalize_repetition(&chain->history, c, window(o->dry_penalty_last_n, n_history),
                                         o->dry_multiplier, o->dry_base, (uint32_t)o->dry_allowed_length);
    if (any_banned) whit_candidates_keep_from(c, -FLT_MAX);
}

static uint64_t pick_by_chance(whit_chain *chain)
{
    const whit_sampler_options *o = &chain->options;
    whit_candidates *c = &chain->candidates;
    top_n_sigma(c, o->top_n_sigma);
    if (o->top_k > 0) whit_candidates_keep(c, (uint32_t)o->top_k);
    typical(c, o->typical_p);
    top_p(c, o->top_p);
    min_p(c, o->min_p);
    xtc(c, o->xtc_probability, o->xtc_threshold, &chain->rng);
    double t = dynamic_temperature(c, o->temperature, o->dynatemp_range, o->dynatemp_exponent);
    softmax s = softmax_of(c, fmax(t, 1e-30)); /* avoids a temperature of 0, which an entropy of 0 may give */
    return draw(chain, &s);
}

/* Loads all logits, or at least as many of the greatest ones as the pick needs; false if a logit is neither finite nor
 * -infinity. */
static bool load_logits(const whit_chain *chain, whit_candidates *c, const float *logits, bool *any_banned)
{
    uint32_t n_needed;
    *any_banned = false;
    return (whit_chain_needs_only_top(chain, &n_needed) && whit_candidates_load_greatest(c, logits, n_needed)) ||
        whit_candidates_load(c, logits, any_banned);
}

whit_status whit_chain_pick(whit_chain *chain, const float *logits, uint32_t *id, whit_error *error)
{
    whit_candidates *c = &chain->candidates;
    bool any_banned;
    if (!load_logits(chain, c, logits, &any_banned))
        return whit_fail(error, WHIT_ERROR_NUMERIC,
                         "the model's outputs are not finite: its weights are damaged, or an adapter is too strong");
    edit_logits(chain, any_banned);
    if (whit_candidates_count(c) == 0)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "every token is banned, by logit biases, a grammar or a program: relax them");
    uint64_t key;
    chain->drawn.sum = 0;
    if (chain->options.temperature <= 0.0f)
        key = whit_candidates_max(c);
    else if (chain->options.mirostat != 0)
        key = mirostat(chain);
    else
        key = pick_by_chance(chain);
    *id = whit_key_id(key);
    chain->drawn_key = key;
    whit_chain_accept(chain, *id);
    return WHIT_OK;
}

void whit_chain_drawn(whit_chain *chain, uint32_t n_top, whit_logprob *entries)
{
    const softmax s = {chain->drawn.max, chain->drawn.temperature, chain->drawn.sum};
    bool is_drawn = s.sum > 0;
    uint32_t n = is_drawn ? whit_candidates_count(&chain->candidates) : 1;
    for (uint32_t i = 0; i <= n_top; i++) {
        uint64_t key = i && is_drawn && i <= n ? whit_candidates_at(&chain->candidates, i - 1) : chain->drawn_key;
        bool is_left = i <= n;
        entries[i] = (whit_logprob){is_left ? (int32_t)whit_key_id(key) : -1,
                                    is_left && is_drawn ? (float)-surprise(&s, key) : 0};
    }
}

bool whit_chain_needs_only_top(const whit_chain *chain, uint32_t *k)
{
    const whit_sampler_options *o = &chain->options;
    if (o->n_biases || penalizes(o) || penalizes_repetition(o)) return false;
    if (o->temperature <= 0.0f) {
        *k = 1;
        return true;
    }
    if (o->mirostat != 0 || o->top_n_sigma > 0.0f || o->top_k <= 0) return false;
    *k = (uint32_t)o->top_k;
    return true;
}
