/* SPDX-License-Identifier: MIT
 * The order of rerank scores (whit_rerank). */
#ifndef WHIT_RUNTIME_RANK_H
#define WHIT_RUNTIME_RANK_H

#include <stddef.h>

typedef struct whit_ranked {
    float score;
    size_t index; /* number of the text, from 0 */
} whit_ranked;

/* Writes the n scores to `ranked`, the highest first; equal ones stay in the order of their texts. */
void whit_rank(const float *scores, size_t n, whit_ranked *ranked);

#endif
