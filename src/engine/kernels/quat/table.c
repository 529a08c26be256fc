/* SPDX-License-Identifier: MIT
 * Implements operations by a table of 65,536 entries, four lanes at a time. The benchmark measures them for
 * comparison; no other kernel uses them. */
#include "kernels/quat/quat.h"

/* Returns the element in lane k of a byte of four signs and four extras. */
static int at(unsigned byte, unsigned k)
{
    return (int)(3 * (byte >> k & 1) + (byte >> (k + 4) & 1)) - 2;
}

static unsigned lane(int value, unsigned k)
{
    unsigned sign = value > 0, extra = value == 2 || value == -1;
    return (sign | extra << 4) << k;
}

static int saturate(int value)
{
    if (value > 2) return 2;
    if (value < -2) return -2;
    if (value == 0) return 1;
    return value;
}

void whit_quat_table_add(uint8_t table[WHIT_QUAT_TABLE_BYTES])
{
    for (unsigned a = 0; a < 256; a++)
        for (unsigned b = 0; b < 256; b++) {
            unsigned byte = 0;
            for (unsigned k = 0; k < 4; k++) byte |= lane(saturate(at(a, k) + at(b, k)), k);
            table[a * 256 + b] = (uint8_t)byte;
        }
}

void whit_quat_table_run(const uint8_t *table, uint8_t *out, const uint8_t *a, const uint8_t *b, uint32_t n_bytes)
{
    for (uint32_t i = 0; i < n_bytes; i++) out[i] = table[(unsigned)a[i] << 8 | b[i]];
}

void whit_quat_table_pack(whit_quat_view a, uint32_t n_elems, uint8_t *out)
{
    for (uint32_t i = 0; i < n_elems; i += 4)
        out[i / 4] = (uint8_t)((a.sign[i / 64] >> i % 64 & 15) | (a.extra[i / 64] >> i % 64 & 15) << 4);
}
