/* SPDX-License-Identifier: MIT */
#ifndef WHIT_MODEL_FASTEST_TERNARY_H
#define WHIT_MODEL_FASTEST_TERNARY_H

#include "base/status.h"

/* Holds the speeds of multiplying by both layouts of ternary codes, in weights per second. */
typedef struct whit_ternary_speeds {
    double t2, t5;
} whit_ternary_speeds;

/* Measures, in about a fifth of a second, how fast this machine multiplies a ternary matrix by one token on all its
 * cores. The matrix is larger than any cache. Layout t5 reads a fifth fewer bytes, t2 is cheaper to decode. cpu_cap is
 * the cap of whit_kernels_select. The function allocates 210 MB while it runs. */
whit_status whit_ternary_measure(const char *cpu_cap, const whit_allocator *allocator, whit_ternary_speeds *speeds,
                                 whit_error *error);
/* Returns "t2" if it is faster, else "t5", which is smaller. */
const char *whit_ternary_faster(const whit_ternary_speeds *speeds);

#endif
