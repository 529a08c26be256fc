/* SPDX-License-Identifier: MIT
 * Hypervectors: thousands of random signs that stand for things (Kanerva, 2009; Gayler's multiply,
 * add, permute). Bit 1 is +1, bit 0 is -1; all have the same number of words.
 *
 * Binding is the product, XNOR of bits, its own inverse. Bundling is the majority. A ternary
 * hypervector has a second bitmap of lanes that are not 0: a product with 0 is 0, which unbinding
 * cannot bring back, and a tie of a majority is 0. */
#ifndef WHIT_MEMORY_HYPER_H
#define WHIT_MEMORY_HYPER_H

#include "base/mem.h"
#include "kernels/quat/quat.h"

typedef struct whit_hyper_ternary {
    uint64_t *sign, *present; /* the sign of a lane that is 0 is 0 */
} whit_hyper_ternary;

/* The hypervector of a number: the same everywhere, nearly orthogonal to those of other numbers. */
void whit_hyper_random(uint64_t seed, uint64_t *out, uint32_t n_words);
/* out = a * b; unbinds too. out may be either. */
void whit_hyper_bind(uint64_t *out, const uint64_t *a, const uint64_t *b, uint32_t n_words);
void whit_hyper_bind_ternary(whit_hyper_ternary out, whit_hyper_ternary a, whit_hyper_ternary b, uint32_t n_words);
/* Turns the lanes by 64 k: word i comes from word i - k. out is not a. */
void whit_hyper_permute(uint64_t *out, const uint64_t *a, uint32_t k, uint32_t n_words);
/* Sum of the products of lanes over the root of those of the squares; 0 where one is all 0. */
double whit_hyper_cosine(const whit_quat_kernels *kernels, const uint64_t *a, const uint64_t *b, uint32_t n_words);
double whit_hyper_cosine_ternary(whit_hyper_ternary a, whit_hyper_ternary b, uint32_t n_words);

/* Counts of ones, lane by lane, in bit planes; up to 2^16 - 1 vectors. */
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
/* False where it is full. */
bool whit_hyper_bundle_add(whit_hyper_bundle *bundle, const uint64_t *a);
/* The majority; lanes that tie have the bit of `ties`. */
void whit_hyper_bundle_majority(const whit_hyper_bundle *bundle, const uint64_t *ties, uint64_t *out);
void whit_hyper_bundle_ternary(const whit_hyper_bundle *bundle, whit_hyper_ternary out); /* ties are 0 */

#endif
