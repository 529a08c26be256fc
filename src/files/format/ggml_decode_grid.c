/* SPDX-License-Identifier: MIT
 * Decodes blocks of the IQ types and of the four-bit floats to codes and scales.
 *
 * An IQ block has indices into a codebook (kernels/grids.h), signs, a small scale s per group, and an f16 factor d for
 * the whole block. The products of d with 2 s + 1 and with powers of two are exact in float32, so that scale * code is
 * rounded only once. IQ1 adds or subtracts 1/8 in all codes of a group, and codes are therefore in eighths. A comment
 * at a function lists the block's fields in order, with their sizes in bytes in brackets. The layouts and their letters
 * are ggml's. */
#include "format/ggml_blocks.h"

#include "base/fp8.h"
#include "base/mem.h"
#include "kernels/grids.h"

static float half_field(const uint8_t *p)
{
    return whit_f32_from_f16(whit_load_u16(p));
}

/* Returns d * (2 s + 1) / 8; for IQ2 this equals d * (0.5 + s) / 4. */
static float odd_scale(float d, unsigned s)
{
    return d * (float)(2 * s + 1) * 0.125f;
}

/* Decodes an entry of an IQ2 codebook to eight codes: two bits select each magnitude, and a set bit of `signs` negates
 * it. */
static void put_iq2(unsigned entry, unsigned signs, int8_t *codes)
{
    static const int8_t levels[4] = WHIT_GRID_LEVELS_IQ2;
    for (int j = 0; j < 8; j++) {
        int8_t level = levels[entry >> 2 * j & 3];
        codes[j] = (int8_t)(signs >> j & 1 ? -level : level);
    }
}

/* A block consists of d[2], then for each 32 weights a word of four 8-bit indices and a word of four 7-bit sign indices
 * with the 4-bit scale in its top bits. */
void whit_ggml_block_iq2_xxs(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    float d = half_field(b);
    (void)offsets;
    for (int part = 0; part < 8; part++) {
        const uint8_t *index = b + 2 + 8 * part;
        uint32_t word = whit_load_u32(index + 4);
        scales[part] = odd_scale(d, word >> 28);
        for (int l = 0; l < 4; l++, codes += 8)
            put_iq2(whit_grid_iq2_xxs[index[l]], whit_grid_signs(word >> 7 * l & 127), codes);
    }
}

/* A block consists of d[2], qs[64] (32 words of a nine-bit index and a seven-bit sign index), scales[8] (a nibble per
 * 16 weights). */
void whit_ggml_block_iq2_xs(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    float d = half_field(b);
    (void)offsets;
    for (int group = 0; group < 16; group++) scales[group] = odd_scale(d, b[66 + group / 2] >> 4 * (group & 1) & 15);
    for (int l = 0; l < 32; l++) {
        unsigned q = whit_load_u16(b + 2 + 2 * l);
        put_iq2(whit_grid_iq2_xs[q & 511], whit_grid_signs(q >> 9), codes + 8 * l);
    }
}

/* A block consists of d[2], qs[32], signs[32], qh[8] (two high bits of each index), scales[8] (a nibble per 16
 * weights). */
void whit_ggml_block_iq2_s(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    float d = half_field(b);
    (void)offsets;
    for (int group = 0; group < 16; group++) scales[group] = odd_scale(d, b[74 + group / 2] >> 4 * (group & 1) & 15);
    for (int l = 0; l < 32; l++) {
        unsigned index = b[2 + l] | (b[66 + l / 4] >> 2 * (l % 4) & 3u) << 8;
        put_iq2(whit_grid_iq2_s[index], b[34 + l], codes + 8 * l);
    }
}

/* A block consists of d[2], qs[64] (an index per four weights), and a word per 32 weights with four sign indices and
 * the scale, as in IQ2_XXS. */
void whit_ggml_block_iq3_xxs(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    static const int8_t levels[8] = WHIT_GRID_LEVELS_IQ3_XXS;
    float d = half_field(b);
    (void)offsets;
    for (int part = 0; part < 8; part++) {
        uint32_t word = whit_load_u32(b + 66 + 4 * part);
        scales[part] = 2 * odd_scale(d, word >> 28);
        for (int j = 0; j < 32; j++) {
            unsigned entry = whit_grid_iq3_xxs[b[2 + 8 * part + j / 4]];
            unsigned signs = whit_grid_signs(word >> 7 * (j / 8) & 127);
            int8_t level = levels[entry >> 3 * (j % 4) & 7];
            *codes++ = (int8_t)(signs >> j % 8 & 1 ? -level : level);
        }
    }
}

/* A block consists of d[2], qs[64], qh[8] (the ninth bit of each index), signs[32], scales[4] (a nibble per 32
 * weights). */
void whit_ggml_block_iq3_s(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    float d = half_field(b);
    (void)offsets;
    for (int part = 0; part < 8; part++) {
        scales[part] = 8 * odd_scale(d, b[106 + part / 2] >> 4 * (part & 1) & 15);
        for (int j = 0; j < 32; j++) {
            unsigned index = b[2 + 8 * part + j / 4] | (b[66 + part] >> j / 4 & 1u) << 8;
            int level = 2 * (whit_grid_iq3_s[index] >> 3 * (j % 4) & 7) + 1;
            *codes++ = (int8_t)(b[74 + 4 * part + j / 8] >> j % 8 & 1 ? -level : level);
        }
    }
}

/* Decodes an entry of the IQ1 codebook to eight codes in eighths: 8 g + 1, or 8 g - 1 if `minus`, for each digit g of
 * -1, 0, 1. */
static void put_iq1(unsigned entry, bool minus, int8_t *codes)
{
    for (int j = 0; j < 8; j++) codes[j] = (int8_t)(8 * ((int)(entry >> 2 * j & 3) - 1) + (minus ? -1 : 1));
}

/* A block consists of d[2], qs[32] and qh[16]. qh has a word per 32 weights: three high bits of each of four indices,
 * the scale, and the sign of the added eighth. */
void whit_ggml_block_iq1_s(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    float d = half_field(b);
    (void)offsets;
    for (int part = 0; part < 8; part++) {
        unsigned high = whit_load_u16(b + 34 + 2 * part);
        scales[part] = odd_scale(d, high >> 12 & 7);
        for (int l = 0; l < 4; l++, codes += 8)
            put_iq1(whit_grid_iq1_s[b[2 + 4 * part + l] | (high >> 3 * l & 7) << 8], high >> 15, codes);
    }
}

/* A block consists of qs[32], qh[16] (per eight weights three high bits of the index and the sign of the added eighth)
 * and scales[8]. The last are four words, each with four scales of three bits; their top nibbles form the f16 d. */
void whit_ggml_block_iq1_m(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    uint16_t words[4], half = 0;
    (void)offsets;
    for (int w = 0; w < 4; w++) {
        words[w] = whit_load_u16(b + 48 + 2 * w);
        half = (uint16_t)(half | words[w] >> 12 << 4 * w);
    }
    float d = whit_f32_from_f16(half);
    for (int group = 0; group < 16; group++) scales[group] = odd_scale(d, words[group / 4] >> 3 * (group % 4) & 7);
    for (int l = 0; l < 32; l++) {
        unsigned high = b[32 + l / 2] >> 4 * (l & 1) & 15u;
        put_iq1(whit_grid_iq1_s[b[l] | (high & 7) << 8], high >> 3, codes + 8 * l);
    }
}

/* Decodes 2 n codes from n bytes. The low nibbles are the first n codes, the high nibbles the next n; levels[nibble] is
 * the code. */
static void put_nibbles(const uint8_t *qs, int n, const int8_t levels[16], int8_t *codes)
{
    for (int j = 0; j < n; j++) {
        codes[j] = levels[qs[j] & 15];
        codes[j + n] = levels[qs[j] >> 4];
    }
}

/* A block consists of d[2], scales_h[2] (two high bits of each scale), scales_l[4] (four low bits of each scale),
 * qs[128]. The scales are stored with 32 added. */
void whit_ggml_block_iq4_xs(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    static const int8_t levels[16] = WHIT_GRID_LEVELS_NL;
    float d = half_field(b);
    unsigned high = whit_load_u16(b + 2);
    (void)offsets;
    for (int part = 0; part < 8; part++) {
        int s = (b[4 + part / 2] >> 4 * (part & 1) & 15) | (int)(high >> 2 * part & 3) << 4;
        scales[part] = d * (float)(s - 32);
        put_nibbles(b + 8 + 16 * part, 16, levels, codes + 32 * part);
    }
}

static const int8_t e2m1[16] = WHIT_GRID_LEVELS_E2M1; /* twice the values of the format, to have integers */

/* A block consists of e[1] and qs[16]. A value is 2^(e - 127) times half its code; e = 255 means NaN (OCP Microscaling
 * formats). */
void whit_ggml_block_mxfp4(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    (void)offsets;
    scales[0] = whit_f32_from_e8m0(b[0]) * 0.5f;
    put_nibbles(b + 1, 16, e2m1, codes);
}

/* A block consists of s[4] and qs[32]: four groups of 16 weights. A scale s is an unsigned float of four exponent and
 * three mantissa bits; a value is s times half its code. */
void whit_ggml_block_nvfp4(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    (void)offsets;
    for (int part = 0; part < 4; part++) {
        scales[part] = whit_f32_from_ue4m3(b[part]) * 0.5f;
        put_nibbles(b + 4 + 8 * part, 8, e2m1, codes + 16 * part);
    }
}
