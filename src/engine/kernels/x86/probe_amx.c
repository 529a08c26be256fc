/* SPDX-License-Identifier: MIT
 * Probes the rate of AMX-INT8 in 2x2 tiles: four tile loads feed four products of 16 x 16 x 64.
 *
 *   tiles 0..3  sums: tokens 0..15 and 16..31 by rows 0..15 and 16..31, int32
 *   tiles 4, 5  x, 16 tokens of 64 bytes;  tiles 6, 7  w, 16 k-quads of 16 rows */
#include "kernels/kernels.h"
#include "kernels/x86/amx_tiles.h"

uint32_t whit_probe_int8_amx(const uint8_t *w, const int8_t *x, uint32_t n_rounds)
{
    const amx_config config = amx_whole_tiles();
    amx_state amx;
    amx_begin(&amx, &config);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (uint32_t round = 0; round < n_rounds; round++)
        for (uint32_t k = 0; k < WHIT_PROBE_COLS; k += 64) {
            _tile_loadd(4, x + k, WHIT_PROBE_COLS);
            _tile_loadd(6, w + k * 32, 128);
            _tile_loadd(5, x + 16 * WHIT_PROBE_COLS + k, WHIT_PROBE_COLS);
            _tile_loadd(7, w + k * 32 + 64, 128);
            _tile_dpbsud(0, 4, 6);
            _tile_dpbsud(1, 4, 7);
            _tile_dpbsud(2, 5, 6);
            _tile_dpbsud(3, 5, 7);
        }
    _Alignas(64) int32_t sums[4][256];
    _tile_stored(0, sums[0], 64);
    _tile_stored(1, sums[1], 64);
    _tile_stored(2, sums[2], 64);
    _tile_stored(3, sums[3], 64);
    amx_end(&amx);
    uint32_t sum = 0;
    for (int i = 0; i < 4 * 256; i++) sum += (uint32_t)sums[i / 256][i % 256];
    return sum;
}
