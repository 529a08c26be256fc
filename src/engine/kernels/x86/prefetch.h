/* SPDX-License-Identifier: MIT
 * Prefetches as volatile assembly, which keeps its place among other volatile statements: compilers would move
 * prefetches together, and back-to-back prefetches cost a tenth of the memory bandwidth. */
#ifndef WHIT_KERNELS_X86_PREFETCH_H
#define WHIT_KERNELS_X86_PREFETCH_H

#include <stdbool.h>

#include "kernels/prefetch_distances.h"

/* Prefetches a cache line from memory into L2. */
static inline void prefetch_l2(const void *line)
{
    __asm__ volatile("prefetcht1 %0" : : "m"(*(const char *)line));
}
/* Prefetches a cache line from L2 into L1. */
static inline void prefetch_l1(const void *line)
{
    __asm__ volatile("prefetcht0 %0" : : "m"(*(const char *)line));
}
/* Keeps the compiler from moving the prefetches of several lines together, which would be slower. A macro, because GCC
 * 12 inlines and allocates registers otherwise with a function. */
#define PREFETCH_IN_PLACE() __asm__ volatile("" ::: "memory")
/* Returns the distances for kernels that read one stream of weights for one token. On Zen 4, which is AMD's family 19h
 * with AVX-512, two cores read 24 GB/s each if lines are prefetched 8 and 4 KB ahead, and 33 with 2 KB and 512 bytes.
 * Zen 5 was measured to need the longer distances; elsewhere nobody compared them. */
static inline prefetch_distances prefetch_one_stream(void)
{
    const bool is_zen4 = __builtin_cpu_is("amdfam19h") && __builtin_cpu_supports("avx512f");
    return is_zen4 ? (prefetch_distances){2048, 512} : PREFETCH_USUAL;
}
#endif
