/* SPDX-License-Identifier: MIT
 * Prefetches that stay where they are written: compilers would put them side by side, and those that
 * follow each other at once cost a tenth of the rate from memory. Volatile statements keep their
 * order among each other. */
#ifndef WHIT_KERNELS_X86_PREFETCH_H
#define WHIT_KERNELS_X86_PREFETCH_H

/* From memory into L2. */
static inline void prefetch_l2(const void *line)
{
    __asm__ volatile("prefetcht1 %0" : : "m"(*(const char *)line));
}
/* From L2 into L1. */
static inline void prefetch_l1(const void *line)
{
    __asm__ volatile("prefetcht0 %0" : : "m"(*(const char *)line));
}
#endif
