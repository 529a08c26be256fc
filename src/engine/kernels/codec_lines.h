/* SPDX-License-Identifier: MIT
 * Converts lines of a tile to codes: the code for the drawings of docs/dev/kernels.md.
 *
 * A line is 64 bytes; byte 4r + c belongs to row r. Codes are k-major, codes[16 k + r]. */
#ifndef WHIT_KERNELS_CODEC_LINES_H
#define WHIT_KERNELS_CODEC_LINES_H

#include "kernels/codec.h"

/* Unpacks the codes of one period of lines. q2 has two lines, the sign plane first; codecs with top bits have lines of
 * `bits` and then lines of the bits above; for i8s it is the plane of high nibbles, as 0 to 15. Codecs with a codebook
 * are not supported. */
void whit_line_unpack(whit_codec codec, const uint8_t *line, int8_t *codes);
/* Unpacks one row: its dword of a line to the codes of the line's columns. Planes of b1 and q2 are bits. Codecs with a
 * codebook or with top bits, whose periods have several lines, are not supported. */
void whit_dword_unpack(whit_codec codec, const uint8_t *dword, int8_t *codes);
/* Unpacks the dwords of one row of a period with top bits, which are a line apart, to 32 codes. */
void whit_dwords_unpack(whit_codec codec, const uint8_t *dword, int8_t *codes);

/* Convert 32 columns of one row of a codec with a codebook. `period` is the row's dword in the first of two lines: byte
 * w is the low index of eight columns, and bit 4 i + w of the next line's dword is the sign of weight i of these
 * columns. `high` is the row's dword in the first of the superblock's lines of high bits, where bit 4 unit + w belongs
 * to the same eight columns. Packing sets bits in cleared lines. */
void whit_grid_unpack(whit_codec codec, const uint8_t *period, const uint8_t *high, unsigned unit, int8_t codes[32]);
void whit_grid_pack(whit_codec codec, uint8_t *period, uint8_t *high, unsigned unit, const int8_t codes[32]);
/* Returns the codebook index of the magnitudes of eight codes; -1 if not found. */
int whit_grid_find(whit_codec codec, const int8_t codes[8]);
/* Writes the canonical bytes of n columns, a multiple of 8: for every eight, u16 index, then u8 signs, bit i for weight
 * i. */
void whit_grid_canonical(whit_codec codec, const int8_t *codes, uint32_t n, uint8_t *out);
/* Returns the offset of row r's dword in the first line of high bits of the superblock with column k, like
 * whit_super_offset. */
uint64_t whit_grid_offset(const whit_tensor_type *type, const whit_geometry *g, uint32_t k, uint32_t row);

/* Returns the byte offset in a tile of the period that begins with column k, a multiple of the period (t5 in
 * superblocks: whit_superblock_offsets). */
uint64_t whit_line_offset(const whit_tensor_type *type, const whit_geometry *g, uint32_t k);
/* Returns the byte offset in a tile of a field (u8, f16 or f32) of a row's group. */
uint64_t whit_field_offset(const whit_tensor_type *type, const whit_geometry *geometry, uint32_t group, uint32_t field,
                           uint32_t row);
/* Returns the byte offset of a row's dword in the first line of scales of the superblock with column k. The dword has
 * the row's f16 factors; byte i of its scales is 1 + i / 4 lines and i % 4 bytes after it. */
uint64_t whit_super_offset(const whit_tensor_type *type, const whit_geometry *g, uint32_t k, uint32_t row);
/* Returns the byte offset of columns [8 j, 8 j + 8) of a row, four bytes, in the low part of i8s. */
uint64_t whit_low_offset(const whit_tensor_type *type, uint32_t row, uint32_t j);

/* Computes byte offsets inside a tile of t5 in superblocks. Half h of superblock s has columns [256 s + 128 h, + 128):
 * six t5 lines at *lines, and fields 2h, 2h + 1 of the t2 line at *rest. */
void whit_superblock_offsets(const whit_tensor_type *type, const whit_geometry *g, uint32_t half, uint64_t *lines,
                             uint64_t *rest);

#endif
