/* SPDX-License-Identifier: MIT
 * Prefetches as volatile assembly, which keeps its place among other volatile statements: compilers would move
 * prefetches together, and back-to-back prefetches cost a tenth of the memory bandwidth. */
#ifndef WHIT_KERNELS_X86_PREFETCH_H
#define WHIT_KERNELS_X86_PREFETCH_H

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
#endif
