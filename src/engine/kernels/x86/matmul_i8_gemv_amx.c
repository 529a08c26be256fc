/* SPDX-License-Identifier: MIT
 * Computes GEMV and narrow GEMM of coded weights and int8 activations with AMX, for one scale per tensor or row.
 *
 *   microtile    MR = 16 rows x NR = 16 tokens; a multiplication costs the same for two tokens as
 *                for sixteen, and less than a line takes to arrive from memory
 *   KC           all of K: C stays in its registers for a whole row of tiles
 *   registers    8 of tiles: 0..3 C, which take turns to hide latency, 4, 5 A, 6, 7 B
 *   L1           sixteen lines as quads, unpacked while the sixteen before them are multiplied, in
 *                turns of some lines and one multiplication, on from one tile to the next
 *   L2           lines prefetched from memory, FAR_BYTES ahead, and the activations
 *
 * The layout of A and B is that of matmul_i8_block_amx.c. For two tokens of t2 and t5 matmul_i8_avx512.c is
 * faster, because it stores only outputs. */
#include "kernels/x86/amx_tiles.h"
#include "kernels/x86/unpack_avx512.h"

enum { C_TILES = 4, CHUNK_LINES = 16, MAX_TOKENS = 16, FAR_BYTES = 8192, NEAR_BYTES = 1024 };
/* A store of a tile register takes 0.3 us if the last store was 0.8 us ago, which is about the time in which a tile of
 * the matrix arrives from memory. A dummy store after this number of chunks keeps stores fast. */
enum { AWAKE_CHUNKS = 3 };
/* Bytes of a chunk's quads: at most five quads per line. */
enum { CHUNK_BYTES = 5 * CHUNK_LINES * WHIT_LINE_BYTES };

/* Unpacks n lines to quads. The barriers prevent the compiler from loading a line twice and from moving prefetches
 * together, which would delay all prefetched lines. */
INLINE void unpack_lines(const int codec, const t5_tables *t5, const uint8_t *line, uint32_t n, uint8_t *out)
{
    const int quads = quads_of_line(codec);
#pragma GCC unroll 4
    for (uint32_t l = 0; l < n; l++, line += WHIT_LINE_BYTES, out += quads * WHIT_LINE_BYTES) {
        __m512i codes = load_line(line);
        __asm__ volatile("" : "+v"(codes) : : "memory");
        _mm_prefetch((const char *)line + FAR_BYTES, _MM_HINT_T1);
        _mm_prefetch((const char *)line + NEAR_BYTES, _MM_HINT_T0);
        if (codec == WHIT_CODEC_T5)
            unpack_t5_by(t5, codes, out, WHIT_LINE_BYTES);
        else
            unpack_fields(whit_codec_bits((unsigned)codec), quads, codes, out, WHIT_LINE_BYTES);
        amx_written();
    }
}

/* Unpacks lines [first, first + n) of a tile, n <= CHUNK_LINES. */
INLINE void unpack_chunk(const int codec, const t5_tables *t5, const tiles *m, uint32_t tile, uint32_t first,
                         uint32_t n, uint8_t *out)
{
    if (codec == WHIT_CODEC_I8S)
        unpack_i8s(m, tile, first, out, WHIT_LINE_BYTES);
    else
        unpack_lines(codec, t5, m->codes + tile * m->tile_bytes + (size_t)first * WHIT_LINE_BYTES, n, out);
}

/* Adds the product of tile i of a chunk of quads and its 64 columns of activations to tile register c, if the chunk has
 * a tile i. */
#define STEP(i, c, a, b)                                                                                               \
    if (i < n_b) {                                                                                                     \
        AMX_LOAD(amx, b, quads + (i)*AMX_ROWS * AMX_ROW_BYTES, AMX_ROW_BYTES);                                         \
        AMX_LOAD(amx, a, q + (i)*AMX_ROW_BYTES, stride);                                                               \
        AMX_MULTIPLY(amx, c, a, b);                                                                                    \
    }

INLINE void multiply_chunk(amx_state *amx, const uint8_t *quads, const int8_t *q, size_t stride, uint32_t n_b)
{
    (void)amx;
    STEP(0, 0, 4, 6)
    STEP(1, 1, 5, 7)
    STEP(2, 2, 4, 6)
    STEP(3, 3, 5, 7)
    STEP(4, 0, 4, 6)
}

/* Does the same as STEP for a whole chunk, but before the multiplication unpacks a part of the next chunk, which begins
 * at `line` and is also whole. */
#define UNPACK_AND_STEP(i, c, a, b)                                                                                    \
    if (i < n_b) {                                                                                                     \
        const uint32_t begin = CHUNK_LINES * (i) / n_b, end = CHUNK_LINES * ((i) + 1) / n_b;                           \
        unpack_lines(codec, t5, line + begin * WHIT_LINE_BYTES, end - begin, next + begin * n_b * WHIT_LINE_BYTES);    \
        STEP(i, c, a, b)                                                                                               \
        amx_written();                                                                                                 \
    }

INLINE void unpack_and_multiply_chunk(const int codec, const t5_tables *t5, amx_state *amx, const uint8_t *line,
                                      uint8_t *next, const uint8_t *quads, const int8_t *q, size_t stride)
{
    const uint32_t n_b = (uint32_t)quads_of_line(codec);
    (void)amx;
    UNPACK_AND_STEP(0, 0, 4, 6)
    UNPACK_AND_STEP(1, 1, 5, 7)
    UNPACK_AND_STEP(2, 2, 4, 6)
    UNPACK_AND_STEP(3, 3, 5, 7)
    UNPACK_AND_STEP(4, 0, 4, 6)
}

INLINE void put_outputs(const int codec, amx_state *amx, const tiles *m, const whit_acts *x, uint32_t tile,
                        int32_t sums[C_TILES][MAX_TOKENS][16], float *y, size_t y_stride)
{
    (void)amx;
    AMX_STORE(amx, 0, sums[0][0], 64);
    AMX_STORE(amx, 1, sums[1][0], 64);
    AMX_STORE(amx, 2, sums[2][0], 64);
    AMX_STORE(amx, 3, sums[3][0], 64);
    const uint8_t *start = m->codes + tile * m->tile_bytes;
    __m512 scale = load_field(m, tile, start, 0, 0), offset = scale;
    if (m->has_offset) offset = load_field(m, tile, start, 0, 1);
    for (uint32_t t = 0; t < x->n_tokens; t++) {
        __m512i sum = _mm512_setzero_si512();
        for (int c = 0; c < C_TILES; c++) sum = _mm512_add_epi32(sum, _mm512_load_si512(sums[c][t]));
        __m512 scale_x = _mm512_set1_ps(x->scales[t]);
        __m512 out =
            _mm512_fmadd_ps(true_sum(codec, sum, x->sums[t]), _mm512_mul_ps(scale, scale_x), _mm512_setzero_ps());
        if (m->has_offset)
            out = _mm512_fmadd_ps(_mm512_mul_ps(offset, scale_x), _mm512_set1_ps((float)x->sums[t]), out);
        store_outputs(y + t * y_stride + (size_t)tile * WHIT_TILE_ROWS, rows_mask(m, tile), out);
    }
}

/* Multiplies tiles [tile_begin, tile_end) by at most MAX_TOKENS tokens. Unpacking is one chunk ahead of multiplying,
 * also from one tile to the next. */
INLINE void multiply(const int codec, amx_state *amx, const tiles *m, const whit_acts *x, uint32_t tile_begin,
                     uint32_t tile_end, float *y, size_t y_stride, uint8_t *quads)
{
    const t5_tables t5 = codec == WHIT_CODEC_T5 ? t5_load_tables() : (t5_tables){0};
    const uint32_t chunk_tiles = (uint32_t)quads_of_line(codec), chunk_cols = 64 * chunk_tiles;
    const uint32_t n_lines = lines_of(codec, x->n_cols), n_tiles = (x->n_cols + 63) / 64;
    const uint32_t n_chunks = (n_lines + CHUNK_LINES - 1) / CHUNK_LINES;
    _Alignas(64) int32_t sums[C_TILES][MAX_TOKENS][16];
    uint8_t *next = quads + CHUNK_BYTES;
    uint32_t to_wake = AWAKE_CHUNKS;
    if (tile_begin < tile_end) unpack_chunk(codec, &t5, m, tile_begin, 0, tiles_min(n_lines, CHUNK_LINES), quads);
    for (uint32_t tile = tile_begin; tile < tile_end; tile++) {
        AMX_ZERO(amx, 0);
        AMX_ZERO(amx, 1);
        AMX_ZERO(amx, 2);
        AMX_ZERO(amx, 3);
        for (uint32_t chunk = 0; chunk < n_chunks; chunk++) {
            const int8_t *q = x->i8 + (size_t)chunk * chunk_cols;
            uint32_t n_b = tiles_min(chunk_tiles, n_tiles - chunk * chunk_tiles);
            bool is_last = chunk + 1 == n_chunks;
            uint32_t next_tile = tile + is_last, first = is_last ? 0 : (chunk + 1) * CHUNK_LINES;
            uint32_t n = next_tile < tile_end ? tiles_min(n_lines - first, CHUNK_LINES) : 0;
            if (codec != WHIT_CODEC_I8S && n == CHUNK_LINES && n_b == chunk_tiles) {
                const uint8_t *line = m->codes + next_tile * m->tile_bytes + (size_t)first * WHIT_LINE_BYTES;
                unpack_and_multiply_chunk(codec, &t5, amx, line, next, quads, q, x->stride);
            } else {
                if (n) unpack_chunk(codec, &t5, m, next_tile, first, n, next);
                amx_written();
                multiply_chunk(amx, quads, q, x->stride, n_b);
            }
            uint8_t *done = quads;
            quads = next;
            next = done;
            if (--to_wake == 0) {
                AMX_STORE(amx, 4, sums[0][0], 64);
                to_wake = AWAKE_CHUNKS;
            }
        }
        put_outputs(codec, amx, m, x, tile, sums, y, y_stride);
    }
}

/* Multiplies tiles [tile_begin, tile_end) by any number of tokens, sixteen at a time. */
INLINE void run(const int codec, const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end,
                float *y, size_t y_stride, uint8_t *quads)
{
    tiles m = tiles_of(w);
    for (uint32_t t = 0; t < x->n_tokens; t += MAX_TOKENS) {
        whit_acts some = *x;
        some.n_tokens = tiles_min(x->n_tokens - t, MAX_TOKENS);
        some.i8 += (size_t)t * x->stride;
        some.scales += (size_t)t * x->n_steps;
        some.sums += (size_t)t * x->n_steps;
        const uint32_t n = some.n_tokens;
        const amx_config config = amx_config_of((const uint32_t[AMX_TILES]){n, n, n, n, n, n, AMX_ROWS, AMX_ROWS});
        amx_state amx;
        amx_begin(&amx, &config);
        multiply(codec, &amx, &m, &some, tile_begin, tile_end, y + t * y_stride, y_stride, quads);
        amx_end(&amx);
    }
    _mm_sfence();
}

static size_t scratch_bytes(const whit_tensor_type *type, const whit_acts_spec *spec, uint32_t n_tokens)
{
    (void)type, (void)spec, (void)n_tokens;
    return 2 * CHUNK_BYTES;
}

#define MATMUL(lower, upper, min)                                                                                      \
    static bool accepts_##lower(const whit_tensor_type *type, const whit_acts_spec *spec)                              \
    {                                                                                                                  \
        return type->codec == WHIT_CODEC_##upper && spec->kind == WHIT_ACTS_I8 && !spec->step;                         \
    }                                                                                                                  \
    MATMUL_RUN(lower, upper)                                                                                           \
    const whit_matmul_kernel AMX_NAME(whit_matmul_i8_##lower##_16x16_amx) = {                                          \
        .name = "matmul_i8_" #lower "_16x16_amx",                                                                      \
        .isa = AMX_LEVEL,                                                                                              \
        .min_tokens = min,                                                                                             \
        .max_tokens = MAX_TOKENS,                                                                                      \
        .accepts = accepts_##lower,                                                                                    \
        .scratch_bytes = scratch_bytes,                                                                                \
        .run = run_##lower,                                                                                            \
    };

MATMUL(t2, T2, 3)
MATMUL(t5, T5, 3)
MATMUL(i8, I8, 2)
MATMUL(i8s, I8S, 2)
