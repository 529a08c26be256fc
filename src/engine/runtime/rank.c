/* SPDX-License-Identifier: MIT */
#include "whit.h"

#include <stdlib.h>

static int compare_ranked(const void *a, const void *b)
{
    const whit_ranked *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

void whit_rank(const float *scores, size_t n, whit_ranked *ranked)
{
    for (size_t i = 0; i < n; i++) ranked[i] = (whit_ranked){scores[i], i};
    if (n) qsort(ranked, n, sizeof *ranked, compare_ranked);
}
