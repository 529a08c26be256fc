/* SPDX-License-Identifier: MIT
 * One line of a tile to codes: the drawings of docs/dev/kernels.md as code.
 *
 * A line is 64 bytes; byte 4r + c belongs to row r. Codes are k-major, codes[16 k + r]. */
#ifndef WHIT_KERNELS_CODEC_LINES_H
#define WHIT_KERNELS_CODEC_LINES_H

#include "kernels/codec.h"

/* Codes of one period of lines: q2 has two, the sign plane first; codecs with top bits have lines of `bits` and then
 * lines of the bits above; i8s has the plane of high nibbles, as 0 to 15. Not for codebooks. */
void whit_line_unpack(whit_codec codec, const uint8_t *line, int8_t *codes);
/* The same for one row: its dword of a line to the codes of the line's columns. Planes of b1 and q2
 * are bits. Not for codebooks and codecs with top bits, whose periods have several lines. */
void whit_dword_unpack(whit_codec codec, const uint8_t *dword, int8_t *codes);
/* The dwords of one row of a period with top bits, a line apart, to 32 codes. */
void whit_dwords_unpack(whit_codec codec, const uint8_t *dword, int8_t *codes);

/* Codecs with a codebook, 32 columns of one row. `period` is the row's dword in the first of two lines: byte w is
 * the low index of eight columns, bit 4 i + w of the next line's dword the sign of weight i of them. `high` is the
 * row's dword in the first of the superblock's lines of high bits, where bit 4 unit + w belongs to the same eight.
 * Packing sets bits in cleared lines. */
void whit_grid_unpack(whit_codec codec, const uint8_t *period, const uint8_t *high, unsigned unit, int8_t codes[32]);
void whit_grid_pack(whit_codec codec, uint8_t *period, uint8_t *high, unsigned unit, const int8_t codes[32]);
/* Returns the codebook index of the magnitudes of eight codes; -1 if not found. */
int whit_grid_find(whit_codec codec, const int8_t codes[8]);
/* Canonical bytes of n columns, a multiple of 8: for every eight, u16 index, then u8 signs, bit i for weight i. */
void whit_grid_canonical(whit_codec codec, const int8_t *codes, uint32_t n, uint8_t *out);
/* Returns the offset of row r's dword in the first line of high bits, for column k, as whit_super_offset. */
uint64_t whit_grid_offset(const whit_tensor_type *type, const whit_geometry *g, uint32_t k, uint32_t row);

/* Returns the byte offset in a tile of the period that begins with column k (a multiple of the period; for t5 in
 * superblocks see below). */
uint64_t whit_line_offset(const whit_tensor_type *type, const whit_geometry *g, uint32_t k);
/* Returns the byte offset in a tile of a field (u8, f16 or f32) of a group of a row. */
uint64_t whit_field_offset(const whit_tensor_type *type, const whit_geometry *geometry, uint32_t group, uint32_t field,
                           uint32_t row);
/* Returns the byte offset of a row's dword, its f16 factors, in the first line of scales of the superblock with column
 * k. Byte i of the row's scales is 1 + i / 4 lines and i % 4 bytes after it. */
uint64_t whit_super_offset(const whit_tensor_type *type, const whit_geometry *g, uint32_t k, uint32_t row);
/* Returns the byte offset of columns [8 j, 8 j + 8) of a row, four bytes, in the low part of i8s. */
uint64_t whit_low_offset(const whit_tensor_type *type, uint32_t row, uint32_t j);

/* t5 in superblocks: `half` h of superblock s is columns [256 s + 128 h, + 128): six t5 lines at
 * *lines and fields 2h, 2h + 1 of the t2 line at *rest, byte offsets inside the tile. */
void whit_superblock_offsets(const whit_tensor_type *type, const whit_geometry *g, uint32_t half, uint64_t *lines,
                             uint64_t *rest);

#endif
