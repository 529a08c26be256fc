/* SPDX-License-Identifier: MIT
 * Hypervectors: thousands of random signs that stand for things (Kanerva, 2009; Gayler's multiply, add, permute). Bit 1
 * is +1, bit 0 is -1; all hypervectors have the same number of words.
 *
 * Binding is the product, XNOR of bits, which is its own inverse. Bundling is the majority. */
#ifndef WHIT_MEMORY_HYPER_H
#define WHIT_MEMORY_HYPER_H

#include "base/mem.h"
#include "kernels/quat/quat.h"

/* Makes the hypervector of a number: the same everywhere, nearly orthogonal to those of other numbers. */
void whit_hyper_random(uint64_t seed, uint64_t *out, uint32_t n_words);
/* Computes out = a * b, which also undoes a binding. out may be a or b. */
void whit_hyper_bind(uint64_t *out, const uint64_t *a, const uint64_t *b, uint32_t n_words);
/* Turns the lanes by 64 k: word i comes from word i - k. out is not a. */
void whit_hyper_permute(uint64_t *out, const uint64_t *a, uint32_t k, uint32_t n_words);

/* A bundle holds counts of ones, lane by lane, in bit planes, for up to 2^16 - 1 vectors. */
#define WHIT_HYPER_PLANES 16
typedef struct whit_hyper_bundle {
    uint64_t *planes; /* (WHIT_HYPER_PLANES, n_words) */
    uint32_t n_words, n_added;
    const whit_allocator *allocator;
} whit_hyper_bundle;
whit_status whit_hyper_bundle_open(uint32_t n_words, const whit_allocator *allocator, whit_hyper_bundle *bundle,
                                   whit_error *error);
void whit_hyper_bundle_close(whit_hyper_bundle *bundle);
void whit_hyper_bundle_clear(whit_hyper_bundle *bundle);
/* Adds to the bundle; returns false if it is full. */
bool whit_hyper_bundle_add(whit_hyper_bundle *bundle, const uint64_t *a);
/* Computes the majority; lanes with a tie get the bit of `ties`. */
void whit_hyper_bundle_majority(const whit_hyper_bundle *bundle, const uint64_t *ties, uint64_t *out);

#endif
