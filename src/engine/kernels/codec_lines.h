/* SPDX-License-Identifier: MIT
 * Converts lines of a tile to codes, as docs/dev/kernels.md draws them.
 *
 * A line has 64 bytes; byte 4r + c belongs to row r of the tile (its dword). Codes of whole lines are stored column by
 * column: codes[16 k + r]. */
#ifndef WHIT_KERNELS_CODEC_LINES_H
#define WHIT_KERNELS_CODEC_LINES_H

#include "kernels/codec.h"

/* Unpacks the codes of one period of lines (codec_table.h). q2 has two lines, the plane of s first; codecs with top
 * bits have lines of low bits, then lines of top bits; for i8s the codes are the high nibbles, 0 to 15. Codecs with a
 * codebook are not supported. */
void whit_line_unpack(whit_codec codec, const uint8_t *line, int8_t *codes);
/* Unpacks one row's dword of a line to the codes of the line's columns; for b1 and q2 to bits 0 or 1, for i8s to high
 * nibbles. Codecs with a codebook or with top bits, whose periods have several lines, are not supported. */
void whit_dword_unpack(whit_codec codec, const uint8_t *dword, int8_t *codes);
/* Unpacks one row of a period of a codec with top bits, whose dwords are WHIT_LINE_BYTES apart, to 32 codes. */
void whit_dwords_unpack(whit_codec codec, const uint8_t *dword, int8_t *codes);

/* Unpack and pack 32 columns of one row of a codec with a codebook. `period` is the row's dword in the first of two
 * lines: byte w is the low eight bits of the index of columns [8 w, 8 w + 8), and bit 4 i + w of the second line's
 * dword is the sign of column 8 w + i. `high` is the row's dword in the first of the superblock's lines of high index
 * bits, where bit 4 unit + w belongs to the same eight columns; unit is the number of the 32 columns in the superblock.
 * Packing only sets bits in `high`, so these lines must be zero before. */
void whit_grid_unpack(whit_codec codec, const uint8_t *period, const uint8_t *high, unsigned unit, int8_t codes[32]);
void whit_grid_pack(whit_codec codec, uint8_t *period, uint8_t *high, unsigned unit, const int8_t codes[32]);
/* Returns the index of the codebook's entry with the magnitudes of eight codes; -1 if not found. */
int whit_grid_find(whit_codec codec, const int8_t codes[8]);
/* Writes the canonical bytes of n columns, a multiple of 8: for every eight columns the u16 index, then u8 signs (bit i
 * is 1 if weight i is negative). */
void whit_grid_canonical(whit_codec codec, const int8_t *codes, uint32_t n, uint8_t *out);
/* Returns the byte offset in a tile of a row's dword in the first line of high index bits of the superblock with column
 * k. */
uint64_t whit_grid_offset(const whit_tensor_type *type, const whit_geometry *g, uint32_t k, uint32_t row);

/* Returns the byte offset in a tile of the period that begins with column k, a multiple of the period (t5 in
 * superblocks: whit_superblock_offsets). */
uint64_t whit_line_offset(const whit_tensor_type *type, const whit_geometry *g, uint32_t k);
/* Returns the byte offset in a tile of field number `field` (u8, f16 or f32) of a row's group. */
uint64_t whit_field_offset(const whit_tensor_type *type, const whit_geometry *geometry, uint32_t group, uint32_t field,
                           uint32_t row);
/* Returns the byte offset in a tile of a row's dword in the first line of scales of the superblock with column k. This
 * dword contains the row's f16 factors; byte i of the row's scales is 1 + i / 4 lines and i % 4 bytes after it. */
uint64_t whit_super_offset(const whit_tensor_type *type, const whit_geometry *g, uint32_t k, uint32_t row);
/* Returns the byte offset, in the part WHIT_PART_LOW of i8s, of the four bytes for columns [8 j, 8 j + 8) of a row. */
uint64_t whit_low_offset(const whit_tensor_type *type, uint32_t row, uint32_t j);

/* Computes byte offsets in a tile of t5 in superblocks. Half number `half` of the row has columns [128 half, 128 half +
 * 128): 120 columns in six t5 lines at *lines, and 8 columns in two of the four t2 fields of the line at *rest, the
 * first two fields if `half` is even. */
void whit_superblock_offsets(const whit_tensor_type *type, const whit_geometry *g, uint32_t half, uint64_t *lines,
                             uint64_t *rest);

#endif
