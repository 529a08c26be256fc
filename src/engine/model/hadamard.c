/* SPDX-License-Identifier: MIT */
#include "model/hadamard.h"

#include <stddef.h>
#include <string.h>

/* Names of the matrices that can be rotated, in the order of their bits in files (docs/dev/format.md); new names may
 * only be added at the end. */
static const char *const names[] = {"embed",       "head",      "q",          "k",           "v",         "o",
                                    "attn_gate",   "mixed",     "z",          "beta",        "decay",     "delta_o",
                                    "gate",        "up",        "down",       "expert_gate", "expert_up", "expert_down",
                                    "shared_gate", "shared_up", "shared_down"};

uint32_t whit_hadamard_bit(const char *weight)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(weight, names[i]) == 0) return UINT32_C(1) << i;
    return 0;
}
