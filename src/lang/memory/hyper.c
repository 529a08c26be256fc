/* SPDX-License-Identifier: MIT */
#include "memory/hyper.h"

#include <math.h>

#include "base/rng.h"

void whit_hyper_random(uint64_t seed, uint64_t *out, uint32_t n_words)
{
    whit_rng rng = {seed};
    for (uint32_t i = 0; i < n_words; i++) out[i] = whit_rng_next(&rng);
}

void whit_hyper_bind(uint64_t *out, const uint64_t *a, const uint64_t *b, uint32_t n_words)
{
    for (uint32_t i = 0; i < n_words; i++) out[i] = ~(a[i] ^ b[i]);
}

void whit_hyper_bind_ternary(whit_hyper_ternary out, whit_hyper_ternary a, whit_hyper_ternary b, uint32_t n_words)
{
    for (uint32_t i = 0; i < n_words; i++) {
        uint64_t present = a.present[i] & b.present[i];
        out.sign[i] = ~(a.sign[i] ^ b.sign[i]) & present;
        out.present[i] = present;
    }
}

void whit_hyper_permute(uint64_t *out, const uint64_t *a, uint32_t k, uint32_t n_words)
{
    k %= n_words;
    memcpy(out + k, a, (n_words - k) * sizeof *a);
    memcpy(out, a + n_words - k, k * sizeof *a);
}

double whit_hyper_cosine(const whit_quat_kernels *kernels, const uint64_t *a, const uint64_t *b, uint32_t n_words)
{
    return 1 - 2 * (double)kernels->distance(a, b, n_words) / (64.0 * n_words);
}

double whit_hyper_cosine_ternary(whit_hyper_ternary a, whit_hyper_ternary b, uint32_t n_words)
{
    int64_t product = 0, a_squares = 0, b_squares = 0;
    for (uint32_t i = 0; i < n_words; i++) {
        uint64_t both = a.present[i] & b.present[i];
        product += __builtin_popcountll(both) - 2 * __builtin_popcountll((a.sign[i] ^ b.sign[i]) & both);
        a_squares += __builtin_popcountll(a.present[i]);
        b_squares += __builtin_popcountll(b.present[i]);
    }
    return a_squares && b_squares ? (double)product / sqrt((double)a_squares * (double)b_squares) : 0;
}

whit_status whit_hyper_bundle_open(uint32_t n_words, const whit_allocator *allocator, whit_hyper_bundle *bundle,
                                   whit_error *error)
{
    *bundle = (whit_hyper_bundle){.n_words = n_words, .allocator = allocator};
    bundle->planes = whit_zalloc_array(allocator, (size_t)n_words * WHIT_HYPER_PLANES, sizeof *bundle->planes);
    if (!bundle->planes) return whit_fail_memory(error, "a bundle", (size_t)n_words * WHIT_HYPER_PLANES * 8);
    return WHIT_OK;
}

void whit_hyper_bundle_close(whit_hyper_bundle *bundle)
{
    whit_free(bundle->allocator, bundle->planes, (size_t)bundle->n_words * WHIT_HYPER_PLANES * sizeof *bundle->planes);
    bundle->planes = NULL;
}

void whit_hyper_bundle_clear(whit_hyper_bundle *bundle)
{
    memset(bundle->planes, 0, (size_t)bundle->n_words * WHIT_HYPER_PLANES * sizeof *bundle->planes);
    bundle->n_added = 0;
}

bool whit_hyper_bundle_add(whit_hyper_bundle *bundle, const uint64_t *a)
{
    if (bundle->n_added == (1u << WHIT_HYPER_PLANES) - 1) return false;
    bundle->n_added++;
    for (uint32_t i = 0; i < bundle->n_words; i++) {
        uint64_t carry = a[i];
        for (uint64_t *plane = bundle->planes + i; carry; plane += bundle->n_words) {
            uint64_t both = *plane & carry;
            *plane ^= carry;
            carry = both;
        }
    }
    return true;
}

/* Lanes with more than half ones, and with exactly half. */
static void compare(const whit_hyper_bundle *bundle, uint32_t i, uint64_t *more, uint64_t *equal)
{
    uint32_t half = bundle->n_added / 2;
    *more = 0;
    *equal = ~(uint64_t)0;
    for (unsigned bit = WHIT_HYPER_PLANES; bit-- > 0;) {
        uint64_t plane = bundle->planes[(size_t)bit * bundle->n_words + i], wanted = half >> bit & 1 ? ~(uint64_t)0 : 0;
        *more |= *equal & plane & ~wanted;
        *equal &= ~(plane ^ wanted);
    }
    if (bundle->n_added % 2) *equal = 0;
}

void whit_hyper_bundle_majority(const whit_hyper_bundle *bundle, const uint64_t *ties, uint64_t *out)
{
    for (uint32_t i = 0; i < bundle->n_words; i++) {
        uint64_t more, equal;
        compare(bundle, i, &more, &equal);
        out[i] = more | (equal & ties[i]);
    }
}

void whit_hyper_bundle_ternary(const whit_hyper_bundle *bundle, whit_hyper_ternary out)
{
    for (uint32_t i = 0; i < bundle->n_words; i++) {
        uint64_t equal;
        compare(bundle, i, &out.sign[i], &equal);
        out.present[i] = ~equal;
    }
}
