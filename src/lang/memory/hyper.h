/* SPDX-License-Identifier: MIT
 * Computes with hypervectors: vectors of thousands of random signs, each of which represents a thing (Kanerva, 2009;
 * Gayler's multiply, add, permute). A bit 1 is the sign +1, a bit 0 is -1. All hypervectors have the same number of
 * words.
 *
 * Binding multiplies the signs (XNOR of bits) and is its own inverse. Bundling takes the majority of the signs. */
#ifndef WHIT_MEMORY_HYPER_H
#define WHIT_MEMORY_HYPER_H

#include "base/mem.h"
#include "kernels/quat/quat.h"

/* Computes the hypervector of a seed: the same on every machine, and nearly orthogonal to those of other seeds. */
void whit_hyper_random(uint64_t seed, uint64_t *out, uint32_t n_words);
/* Computes out = a * b, sign by sign; binding a bound vector to b again undoes it. out may be a or b. */
void whit_hyper_bind(uint64_t *out, const uint64_t *a, const uint64_t *b, uint32_t n_words);
/* Rotates the signs by k words: word i of `out` is word (i - k) mod n_words of a. out must not be a. */
void whit_hyper_permute(uint64_t *out, const uint64_t *a, uint32_t k, uint32_t n_words);

/* A bundle counts, for each lane, the ones of the vectors added, in bit planes; at most 2^16 - 1 vectors can be
 * added. */
#define WHIT_HYPER_PLANES 16
typedef struct whit_hyper_bundle {
    uint64_t *planes; /* (WHIT_HYPER_PLANES, n_words) bit p of each lane's count is in plane p */
    uint32_t n_words, n_added;
    const whit_allocator *allocator;
} whit_hyper_bundle;
whit_status whit_hyper_bundle_open(uint32_t n_words, const whit_allocator *allocator, whit_hyper_bundle *bundle,
                                   whit_error *error);
void whit_hyper_bundle_close(whit_hyper_bundle *bundle);
void whit_hyper_bundle_clear(whit_hyper_bundle *bundle);
/* Adds a vector to the bundle; returns false if the bundle is full. */
bool whit_hyper_bundle_add(whit_hyper_bundle *bundle, const uint64_t *a);
/* Writes the majority of the added vectors; lanes with a tie get their bit from `ties`. */
void whit_hyper_bundle_majority(const whit_hyper_bundle *bundle, const uint64_t *ties, uint64_t *out);

#endif
