/* SPDX-License-Identifier: MIT
 * Lines asked for at the place where it is written: compilers would put requests side by side, and
 * those that follow each other at once cost a tenth of the rate from memory. Volatile statements
 * keep their order among each other. */
#ifndef WHIT_KERNELS_X86_ASK_H
#define WHIT_KERNELS_X86_ASK_H

/* From memory, into the second cache. */
static inline void ask_far(const void *line)
{
    __asm__ volatile("prefetcht1 %0" : : "m"(*(const char *)line));
}
/* From the second cache, into the first. */
static inline void ask_near(const void *line)
{
    __asm__ volatile("prefetcht0 %0" : : "m"(*(const char *)line));
}
#endif
