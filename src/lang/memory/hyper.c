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

void whit_hyper_permute(uint64_t *out, const uint64_t *a, uint32_t k, uint32_t n_words)
{
    k %= n_words;
    memcpy(out + k, a, (n_words - k) * sizeof *a);
    memcpy(out, a + n_words - k, k * sizeof *a);
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

/* For word i, sets *more to the lanes that are 1 in more than half of the added vectors, and *equal to the lanes that
 * are 1 in exactly half. */
static void compare_lanes(const whit_hyper_bundle *bundle, uint32_t i, uint64_t *more, uint64_t *equal)
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
        compare_lanes(bundle, i, &more, &equal);
        out[i] = more | (equal & ties[i]);
    }
}
