/* SPDX-License-Identifier: MIT
 * Prefetches by the compiler's builtin, for ISAs other than x86 (x86/prefetch.h). */
#ifndef WHIT_KERNELS_WIDE_PREFETCH_H
#define WHIT_KERNELS_WIDE_PREFETCH_H

#include "kernels/prefetch_distances.h"

/* Prefetches a cache line from memory into L2. */
static inline void prefetch_l2(const void *line)
{
    __builtin_prefetch(line, 0, 2);
}
/* Prefetches a cache line from L2 into L1. */
static inline void prefetch_l1(const void *line)
{
    __builtin_prefetch(line, 0, 3);
}
/* Has an effect on x86 only, where the compiler moves the prefetches of several lines together. */
#define PREFETCH_IN_PLACE() ((void)0)
/* Returns the distances for kernels that read one stream of weights for one token. */
static inline prefetch_distances prefetch_one_stream(void)
{
    return PREFETCH_USUAL;
}

#endif
