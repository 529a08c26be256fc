/* SPDX-License-Identifier: MIT
 * Declares decoders of single blocks of GGUF weight types, one function per type, for format/ggml_decode.c. */
#ifndef WHIT_FORMAT_GGML_BLOCKS_H
#define WHIT_FORMAT_GGML_BLOCKS_H

#include <stdint.h>

/* Decodes one block. Writes its codes in row order and, if the kind has them in its blocks, one scale and one offset
 * per group: value = scale * code + offset. Blocks of any content can be decoded. */
typedef void whit_ggml_block_fn(const uint8_t *block, int8_t *codes, float *scales, float *offsets);

/* These functions are defined in format/ggml_decode_grid.c. */
whit_ggml_block_fn whit_ggml_block_iq1_s, whit_ggml_block_iq1_m, whit_ggml_block_iq2_xxs, whit_ggml_block_iq2_xs,
    whit_ggml_block_iq2_s, whit_ggml_block_iq3_xxs, whit_ggml_block_iq3_s, whit_ggml_block_iq4_xs,
    whit_ggml_block_mxfp4, whit_ggml_block_nvfp4;

#endif
