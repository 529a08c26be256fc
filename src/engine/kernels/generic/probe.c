/* SPDX-License-Identifier: MIT
 * Specifies the probes, which measure how fast the machine reads and multiplies. */
#include "kernels/kernels.h"

uint64_t whit_probe_read_generic(const void *memory, size_t size_bytes)
{
    const uint64_t *words = memory;
    uint64_t sums[8] = {0};
    for (size_t i = 0; i < size_bytes / sizeof *words; i += 8)
        for (int j = 0; j < 8; j++) sums[j] += words[i + j];
    uint64_t sum = 0;
    for (int j = 0; j < 8; j++) sum += sums[j];
    return sum;
}

uint32_t whit_probe_int8_generic(const uint8_t *w, const int8_t *x, uint32_t n_rounds)
{
    uint32_t sum = 0;
    for (uint32_t token = 0; token < 32; token++)
        for (uint32_t row = 0; row < 32; row++) {
            const uint8_t *lanes = w + row / 16 * 64 + row % 16 * 4;
            for (uint32_t k = 0; k < WHIT_PROBE_COLS; k++)
                sum += (uint32_t)(lanes[k / 4 * 128 + k % 4] * x[token * WHIT_PROBE_COLS + k]);
        }
    return n_rounds * sum;
}
