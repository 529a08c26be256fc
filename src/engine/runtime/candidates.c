/* SPDX-License-Identifier: MIT
 * Sorts candidates by a heap whose greatest keys are moved into a sorted end, only as far as needed. */
#include "runtime/candidates.h"
#include "base/mem.h"

/* Sums of at most FEW candidates are computed without a pass over the whole vocabulary. */
enum { LANES = 16, BLOCK = 64, GREATEST_MAX = 256, FEW = 64 };

whit_status whit_candidates_open(uint32_t n_vocab, const whit_allocator *allocator, whit_candidates *candidates,
                                 whit_error *error)
{
    *candidates = (whit_candidates){.n_vocab = n_vocab, .allocator = allocator};
    candidates->keys = whit_zalloc_array(allocator, n_vocab, sizeof *candidates->keys);
    candidates->terms = whit_zalloc_array(allocator, n_vocab, sizeof *candidates->terms);
    candidates->maxima = whit_zalloc_array(allocator, n_vocab / BLOCK + 1, sizeof *candidates->maxima);
    if (candidates->keys && candidates->terms && candidates->maxima) return WHIT_OK;
    whit_candidates_close(candidates);
    return whit_fail_memory(error, "the candidates of a sampler", 17 * (size_t)n_vocab);
}

void whit_candidates_close(whit_candidates *candidates)
{
    size_t n = candidates->n_vocab;
    whit_free(candidates->allocator, candidates->keys, n * sizeof *candidates->keys);
    whit_free(candidates->allocator, candidates->terms, n * sizeof *candidates->terms);
    whit_free(candidates->allocator, candidates->maxima, (n / BLOCK + 1) * sizeof *candidates->maxima);
    *candidates = (whit_candidates){0};
}

bool whit_candidates_load(whit_candidates *candidates, const float *logits, bool *any_banned)
{
    uint32_t n = candidates->n_vocab, n_bad = 0, n_banned = 0;
    for (uint32_t id = 0; id < n; id++) {
        uint32_t bits;
        memcpy(&bits, &logits[id], sizeof bits);
        n_bad += (bits & 0x7f800000u) == 0x7f800000u;
        n_banned += bits == 0xff800000u;
        candidates->keys[id] = whit_key(logits[id], id);
    }
    candidates->size = candidates->n_heap = n;
    candidates->n_sorted = 0;
    candidates->is_heap = false;
    *any_banned = n_banned > 0;
    return n_bad == n_banned;
}

/* Maps a logit's bits to an integer of the same order (-0 is below 0). Applied twice, it restores the bits. It is used
 * because compilers vectorise the maximum of integers. */
static inline int32_t ordered_bits(int32_t bits)
{
    return bits ^ (bits >> 31 & INT32_MAX);
}

/* Returns the greatest of BLOCK logits; sets *is_finite to false if one of them is NaN or infinite. */
static float greatest_of_block(const float *logits, bool *is_finite)
{
    const int32_t infinity = 0x7f800000;
    int32_t greatest = INT32_MIN, least = INT32_MAX;
    for (uint32_t i = 0; i < BLOCK; i++) {
        int32_t bits;
        memcpy(&bits, &logits[i], sizeof bits);
        bits = ordered_bits(bits);
        greatest = bits > greatest ? bits : greatest;
        least = bits < least ? bits : least;
    }
    *is_finite &= greatest < infinity && least > ordered_bits((int32_t)(INT32_MIN | infinity));
    greatest = ordered_bits(greatest);
    float logit;
    memcpy(&logit, &greatest, sizeof logit);
    return logit;
}

/* Returns the k-th greatest of n numbers, 0 < k <= GREATEST_MAX, k <= n. */
static float find_kth(const float *x, uint32_t n, uint32_t k)
{
    float kept[GREATEST_MAX]; /* the greatest numbers so far, in descending order */
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (n_kept == k && !(x[i] > kept[k - 1])) continue;
        uint32_t at = n_kept < k ? n_kept++ : k - 1;
        for (; at > 0 && x[i] > kept[at - 1]; at--) kept[at] = kept[at - 1];
        kept[at] = x[i];
    }
    return kept[k - 1];
}

static void load_from(whit_candidates *candidates, const float *logits, uint32_t begin, uint32_t end, float least)
{
    for (uint32_t id = begin; id < end; id++)
        if (logits[id] >= least) candidates->keys[candidates->size++] = whit_key(logits[id], id);
}

/* The k-th greatest of the blocks' maxima is at most the k-th greatest logit, so the k greatest logits are in blocks
 * whose maximum reaches it; only these blocks are read again. */
bool whit_candidates_load_greatest(whit_candidates *candidates, const float *logits, uint32_t k)
{
    uint32_t n = candidates->n_vocab, n_blocks = n / BLOCK;
    bool is_finite = true;
    candidates->size = candidates->n_heap = candidates->n_sorted = 0;
    candidates->is_heap = false;
    if (k == 0 || k > GREATEST_MAX || k > n_blocks) return false;
    for (uint32_t b = 0; b < n_blocks; b++) candidates->maxima[b] = greatest_of_block(logits + b * BLOCK, &is_finite);
    for (uint32_t id = n_blocks * BLOCK; id < n; id++) is_finite &= logits[id] - logits[id] == 0.0f;
    if (!is_finite) return false;
    float least = find_kth(candidates->maxima, n_blocks, k);
    for (uint32_t b = 0; b < n_blocks; b++)
        if (candidates->maxima[b] >= least) load_from(candidates, logits, b * BLOCK, (b + 1) * BLOCK, least);
    load_from(candidates, logits, n_blocks * BLOCK, n, least);
    candidates->n_heap = candidates->size;
    return true;
}

/* Inserts `key` at index i or below it in a heap of n keys whose greatest key is first. */
static void sift_down(uint64_t *heap, uint32_t n, uint32_t i, uint64_t key)
{
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= n) break;
        if (child + 1 < n && heap[child + 1] > heap[child]) child++;
        if (heap[child] <= key) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = key;
}

static void make_heap(uint64_t *heap, uint32_t n)
{
    for (uint32_t i = n / 2; i-- > 0;) sift_down(heap, n, i, heap[i]);
}

uint64_t whit_candidates_max(const whit_candidates *candidates)
{
    if (candidates->n_sorted) return candidates->keys[candidates->size - 1];
    uint64_t max = 0;
    for (uint32_t i = 0; i < candidates->n_heap; i++)
        if (candidates->keys[i] > max) max = candidates->keys[i];
    return max;
}

uint64_t whit_candidates_at(whit_candidates *candidates, uint32_t i)
{
    uint64_t *keys = candidates->keys;
    if (candidates->n_sorted <= i && !candidates->is_heap) {
        make_heap(keys, candidates->n_heap);
        candidates->is_heap = true;
    }
    while (candidates->n_sorted <= i) {
        uint64_t greatest = keys[0], last = keys[--candidates->n_heap];
        if (candidates->n_heap) sift_down(keys, candidates->n_heap, 0, last);
        keys[candidates->size - ++candidates->n_sorted] = greatest;
    }
    return keys[candidates->size - 1 - i];
}

/* Moves the k greatest of n keys to the front. Every other key is compared once with the least key of a heap of the k
 * greatest keys so far; complementing keys turns a heap with the greatest key first into one with the least key
 * first. */
static void select_greatest(uint64_t *keys, uint32_t n, uint32_t k)
{
    for (uint32_t i = 0; i < k; i++) keys[i] = ~keys[i];
    make_heap(keys, k);
    for (uint32_t i = k; i < n; i++)
        if (keys[i] > ~keys[0]) sift_down(keys, k, 0, ~keys[i]);
    for (uint32_t i = 0; i < k; i++) keys[i] = ~keys[i];
}

void whit_candidates_keep(whit_candidates *candidates, uint32_t n)
{
    if (n >= whit_candidates_count(candidates)) return;
    if (n <= candidates->n_sorted) {
        candidates->n_heap = 0;
        candidates->n_sorted = n;
        return;
    }
    uint32_t rest = n - candidates->n_sorted;
    select_greatest(candidates->keys, candidates->n_heap, rest);
    candidates->n_heap = rest;
    candidates->is_heap = false;
}

void whit_candidates_keep_from(whit_candidates *candidates, double min_logit)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < candidates->n_heap; i++)
        if (whit_key_logit(candidates->keys[i]) >= min_logit) candidates->keys[kept++] = candidates->keys[i];
    if (kept < candidates->n_heap) candidates->is_heap = false;
    candidates->n_heap = kept;
    const uint64_t *end = candidates->keys + candidates->size;
    while (candidates->n_sorted && whit_key_logit(end[-(ptrdiff_t)candidates->n_sorted]) < min_logit)
        candidates->n_sorted--;
}

void whit_candidates_drop_greatest(whit_candidates *candidates, uint32_t n)
{
    if (n == 0) return;
    whit_candidates_at(candidates, n - 1);
    candidates->size -= n;
    candidates->n_sorted -= n;
}

static double sum_of_lanes(double lanes[LANES])
{
    for (uint32_t half = LANES / 2; half > 0; half /= 2)
        for (uint32_t lane = 0; lane < half; lane++) lanes[lane] += lanes[lane + half];
    return lanes[0];
}

static double sum_in_lanes(const double *terms, uint32_t n)
{
    double lanes[LANES] = {0};
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (uint32_t lane = 0; lane < LANES; lane++) lanes[lane] += terms[i + lane];
    for (; i < n; i++) lanes[i % LANES] += terms[i];
    return sum_of_lanes(lanes);
}

/* Computes whit_candidates_sum for at most FEW candidates: terms of absent ids are zeros, which change no lane. */
static double sum_few(const whit_candidates *candidates, double (*term)(double logit, const void *context),
                      const void *context)
{
    uint64_t by_id[FEW];
    uint32_t n = 0;
    for (uint32_t i = 0; i < candidates->size; i++) {
        if (i >= candidates->n_heap && i < candidates->size - candidates->n_sorted) continue;
        uint32_t at = n++;
        for (; at > 0 && whit_key_id(by_id[at - 1]) > whit_key_id(candidates->keys[i]); at--) by_id[at] = by_id[at - 1];
        by_id[at] = candidates->keys[i];
    }
    double lanes[LANES] = {0};
    for (uint32_t i = 0; i < n; i++)
        lanes[whit_key_id(by_id[i]) % LANES] += term((double)whit_key_logit(by_id[i]), context);
    return sum_of_lanes(lanes);
}

double whit_candidates_sum(whit_candidates *candidates, double (*term)(double logit, const void *context),
                           const void *context)
{
    if (whit_candidates_count(candidates) <= FEW) return sum_few(candidates, term, context);
    const uint64_t *keys = candidates->keys, *sorted = keys + candidates->size - candidates->n_sorted;
    double *terms = candidates->terms;
    uint32_t n_heap = candidates->n_heap, n_sorted = candidates->n_sorted;
    for (uint32_t i = 0; i < n_heap; i++) terms[whit_key_id(keys[i])] = term((double)whit_key_logit(keys[i]), context);
    for (uint32_t i = 0; i < n_sorted; i++)
        terms[whit_key_id(sorted[i])] = term((double)whit_key_logit(sorted[i]), context);
    double sum = sum_in_lanes(terms, candidates->n_vocab);
    for (uint32_t i = 0; i < n_heap; i++) terms[whit_key_id(keys[i])] = 0.0;
    for (uint32_t i = 0; i < n_sorted; i++) terms[whit_key_id(sorted[i])] = 0.0;
    return sum;
}
