/* SPDX-License-Identifier: MIT
 * Provides the tile registers of AMX-INT8, or a model of them in plain C (WHIT_AMX_MODEL), so that the kernels' tests
 * run on machines without AMX. Tile numbers are constants. The model keeps its registers in a struct that the kernel
 * owns; the hardware's registers belong to the thread and are released by amx_end. AMX_STREAM loads with the hint not
 * to keep the lines in L1.
 * compile with: -mamx-tile -mamx-int8 */
#ifndef WHIT_KERNELS_X86_AMX_TILES_H
#define WHIT_KERNELS_X86_AMX_TILES_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

/* GCC's macros pass the stride as a long, which on Windows has 32 bits instead of the register's 64. */
#if defined(_tile_loadd_internal) && __SIZEOF_LONG__ < 8
#undef _tile_loadd_internal
#undef _tile_stream_loadd_internal
#undef _tile_stored_internal
#define _tile_loadd_internal(tile, from, stride)                                                                       \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"((const void *)(from)), "r"((int64_t)(stride)))
#define _tile_stream_loadd_internal(tile, from, stride)                                                                \
    __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm" #tile ::"r"((const void *)(from)), "r"((int64_t)(stride)))
#define _tile_stored_internal(tile, to, stride)                                                                        \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"((void *)(to)), "r"((int64_t)(stride)) : "memory")
#endif

enum { AMX_TILES = 8, AMX_ROWS = 16, AMX_ROW_BYTES = 64 };

/* Compiler barrier between stores and tile loads: GCC's tile loads do not declare that they read memory, so the
 * compiler could move earlier stores after them. */
static inline void amx_written(void)
{
    __asm__ volatile("" ::: "memory");
}

/* Operand of LDTILECFG. */
typedef struct amx_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} amx_config;

/* Returns a configuration in which tile i has rows[i] rows. Loads and stores do not access rows after these. */
static inline amx_config amx_config_of(const uint32_t rows[AMX_TILES])
{
    amx_config config = {.palette = 1};
    for (int i = 0; i < AMX_TILES; i++) {
        config.row_bytes[i] = AMX_ROW_BYTES;
        config.rows[i] = (uint8_t)rows[i];
    }
    return config;
}
static inline amx_config amx_whole_tiles(void)
{
    return amx_config_of((const uint32_t[AMX_TILES]){16, 16, 16, 16, 16, 16, 16, 16});
}

/* AMX_NAME and AMX_LEVEL give the name and the level of a kernel's descriptor; the model needs only AVX-512, for
 * unpacking. */
#if defined(WHIT_AMX_MODEL)
#define AMX_NAME(name) name##_model
#define AMX_LEVEL      WHIT_ISA_AVX512

typedef struct amx_state {
    uint8_t tile[AMX_TILES][AMX_ROWS][AMX_ROW_BYTES];
    uint8_t rows[AMX_TILES];
} amx_state;

static inline void amx_begin(amx_state *state, const amx_config *config)
{
    memset(state, 0, sizeof *state);
    memcpy(state->rows, config->rows, sizeof state->rows);
}
static inline void amx_end(amx_state *state)
{
    memset(state, 0, sizeof *state);
}
#define AMX_ZERO(state, t) memset((state)->tile[t], 0, sizeof(state)->tile[t])
static inline void amx_model_load(amx_state *state, int t, const void *from, size_t stride)
{
    memset(state->tile[t], 0, sizeof state->tile[t]);
    for (int r = 0; r < state->rows[t]; r++)
        memcpy(state->tile[t][r], (const uint8_t *)from + (size_t)r * stride, AMX_ROW_BYTES);
}
static inline void amx_model_store(const amx_state *state, int t, void *to, size_t stride)
{
    for (int r = 0; r < state->rows[t]; r++)
        memcpy((uint8_t *)to + (size_t)r * stride, state->tile[t][r], AMX_ROW_BYTES);
}
/* Computes c += a b, where c is (rows, 16) int32, a is (rows, 64) int8, and b is 16 quads of 64 uint8, or int8 if
 * is_signed. */
static inline void amx_model_multiply(amx_state *state, int c, int a, int b, int is_signed)
{
    for (int m = 0; m < state->rows[c]; m++) {
        int32_t sums[16];
        memcpy(sums, state->tile[c][m], sizeof sums);
        for (int k = 0; k < 4 * state->rows[b]; k++)
            for (int n = 0; n < 16; n++) {
                uint8_t byte = state->tile[b][k / 4][4 * n + k % 4];
                sums[n] += (int8_t)state->tile[a][m][k] * (is_signed ? (int8_t)byte : byte);
            }
        memcpy(state->tile[c][m], sums, sizeof sums);
    }
}
#define AMX_LOAD(state, t, from, stride)    amx_model_load(state, t, from, stride)
#define AMX_STREAM                          AMX_LOAD
#define AMX_STORE(state, t, to, stride)     amx_model_store(state, t, to, stride)
#define AMX_MULTIPLY(state, c, a, b)        amx_model_multiply(state, c, a, b, 0)
#define AMX_MULTIPLY_SIGNED(state, c, a, b) amx_model_multiply(state, c, a, b, 1)

#else
#define AMX_NAME(name)                      name
#define AMX_LEVEL                           WHIT_ISA_AMX

typedef struct amx_state {
    char none;
} amx_state;

static inline void amx_begin(amx_state *state, const amx_config *config)
{
    state->none = 0;
    /* makes the compiler store the whole struct: GCC assumes that LDTILECFG reads only its first eight bytes */
    __asm__ volatile("" : : "r"(config) : "memory");
    _tile_loadconfig(config);
}
static inline void amx_end(amx_state *state)
{
    (void)state;
    _tile_release();
}
#define AMX_ZERO(state, t)                  _tile_zero(t)
#define AMX_LOAD(state, t, from, stride)    _tile_loadd(t, from, (long)(stride))
#define AMX_STREAM(state, t, from, stride)  _tile_stream_loadd(t, from, (long)(stride))
#define AMX_STORE(state, t, to, stride)     _tile_stored(t, to, (long)(stride))
#define AMX_MULTIPLY(state, c, a, b)        _tile_dpbsud(c, a, b)
#define AMX_MULTIPLY_SIGNED(state, c, a, b) _tile_dpbssd(c, a, b)
#endif
#endif
