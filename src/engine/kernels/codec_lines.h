/* SPDX-License-Identifier: MIT
 * One line of a tile, to and from codes: the drawings of docs/kernels.md as code.
 *
 * A line is 64 bytes; byte 4r + c belongs to row r. Codes are k-major, codes[16 k + r]. */
#ifndef WHIT_KERNELS_CODEC_LINES_H
#define WHIT_KERNELS_CODEC_LINES_H

#include "kernels/codec.h"

/* i8, i4, t2, t5, b1: the period of one line; q2: two lines, sign plane first; i8s: the plane of
 * high nibbles, as 0 to 15. */
void whit_line_unpack(whit_codec codec, const uint8_t *line, int8_t *codes);
void whit_line_pack(whit_codec codec, uint8_t *line, const int8_t *codes);
/* The same for one row: its dword of a line to the codes of the line's columns. Planes of b1 and q2
 * are bits. */
void whit_dword_unpack(whit_codec codec, const uint8_t *dword, int8_t *codes);

/* Where the period with column k begins inside a tile (k a multiple of the period; for t5 in
 * superblocks see below), in bytes. */
uint64_t whit_line_offset(const whit_tensor_type *type, const whit_geometry *g, uint32_t k);
/* Where field f of group g of row r lies inside a tile, in bytes; u8, f16 or f32. */
uint64_t whit_field_offset(const whit_tensor_type *type, const whit_geometry *geometry, uint32_t group, uint32_t field,
                           uint32_t row);
/* Where the four bytes of columns [8 j, 8 j + 8) of a row lie in the low part of i8s. */
uint64_t whit_low_offset(const whit_tensor_type *type, uint32_t row, uint32_t j);

/* t5 in superblocks: `half` h of superblock s is columns [256 s + 128 h, + 128): six t5 lines at
 * *lines and fields 2h, 2h + 1 of the t2 line at *rest, byte offsets inside the tile. */
void whit_superblock_offsets(const whit_tensor_type *type, const whit_geometry *g, uint32_t half, uint64_t *lines,
                             uint64_t *rest);

#endif
