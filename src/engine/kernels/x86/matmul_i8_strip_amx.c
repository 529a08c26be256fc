/* SPDX-License-Identifier: MIT
 * Computes GEMM of coded weights and int8 activations for a few tokens, and the screen of a head, with AMX.
 *
 *   microtile    MR = 64 rows (four tiles) x NR = 16 tokens; of the screen also 32 rows x 32 tokens
 *   KC           a step; C is stored to memory at its end and added to the outputs during the next step
 *   registers, L1, L2: amx_strip.h
 *
 * For more than sixteen tokens matmul_i8_rows_amx.c is faster if a row has one scale; with scales per group
 * matmul_i8_block_amx.c is faster from somewhat more tokens on. */
#include "kernels/x86/amx_strip.h"

static size_t scratch_bytes(const whit_tensor_type *type, const whit_acts_spec *spec, uint32_t n_tokens)
{
    (void)type, (void)spec, (void)n_tokens;
    return STRIP_SCRATCH_BYTES;
}

static bool accepts_codes(const whit_tensor_type *type)
{
    return type->codec == WHIT_CODEC_T2 || type->codec == WHIT_CODEC_B1 || type->codec == WHIT_CODEC_I4 ||
        type->codec == WHIT_CODEC_L2;
}
static bool accepts_steps(const whit_tensor_type *type, const whit_acts_spec *spec)
{
    return accepts_codes(type) && spec->kind == WHIT_ACTS_I8 && spec->step % SLICE_COLS == 0 &&
        type->n_cols % SLICE_COLS == 0 && !whit_scale_in_superblocks(type->scale_type);
}

static void run_codes(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end, float *y,
                      size_t y_stride, void *scratch)
{
    switch (w->type.codec) {
    case WHIT_CODEC_T2: strip_run(WHIT_CODEC_T2, w, x, tile_begin, tile_end, y, y_stride, scratch); break;
    case WHIT_CODEC_B1: strip_run(WHIT_CODEC_B1, w, x, tile_begin, tile_end, y, y_stride, scratch); break;
    case WHIT_CODEC_I4: strip_run(WHIT_CODEC_I4, w, x, tile_begin, tile_end, y, y_stride, scratch); break;
    default: strip_run(WHIT_CODEC_L2, w, x, tile_begin, tile_end, y, y_stride, scratch); break;
    }
}

const whit_matmul_kernel AMX_NAME(whit_matmul_i8_codes_64x16_amx) = {
    .name = "matmul_i8_codes_64x16_amx",
    .isa = AMX_LEVEL,
    .min_tokens = 5,
    .max_tokens = AMX_ROWS,
    .accepts = accepts_steps,
    .scratch_bytes = scratch_bytes,
    .run = run_codes,
};

/* Smallest number of tokens for which screening with AMX is faster than with AVX-512. */
enum { SCREEN_TOKENS_MIN = 4 };

whit_screen_fn AMX_NAME(whit_screen_amx);
void AMX_NAME(whit_screen_amx)(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end,
                               float *logits, size_t stride)
{
    if (x->n_tokens < SCREEN_TOKENS_MIN || w->type.n_cols % SLICE_COLS || x->spec.step % SLICE_COLS) {
        whit_screen_avx512(w, x, tile_begin, tile_end, logits, stride);
        return;
    }
    _Alignas(64) uint8_t scratch[STRIP_SCRATCH_BYTES];
    strip_run(WHIT_CODEC_I8S, w, x, tile_begin, tile_end, logits, stride, scratch);
}
