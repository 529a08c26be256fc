/* SPDX-License-Identifier: MIT
 * Matrices of quaternary elements in files of their own, read in place (docs/use/arrays.md).
 *
 *     offset 0   "NDAM"
 *            4   u16 version: 2, rows packed; 5, every row padded to a multiple of 64 lanes
 *            6   u32 rows
 *           10   u32 columns
 *           14   f32 scale
 *           18   sign plane, then extra plane; little-endian, lane i of a plane is bit i mod 8 of
 *                byte i / 8; a packed plane has (rows * columns + 7) / 8 bytes
 *
 * Padding may hold anything. */
#ifndef WHIT_FORMAT_QUAT_FILE_H
#define WHIT_FORMAT_QUAT_FILE_H

#include "base/file.h"
#include "kernels/quat/quat.h"

#define WHIT_QUAT_FILE_HEADER_BYTES 18

typedef struct whit_quat_file {
    whit_map map;
    uint32_t n_rows, n_cols;
    float scale;
    bool padded;
    const uint8_t *sign, *extra; /* planes in the map */
    uint64_t plane_bytes, row_bits;
} whit_quat_file;

/* Maps and checks a file; sizes that do not match the header are WHIT_ERROR_FORMAT. */
whit_status whit_quat_file_open(const char *path, const whit_allocator *allocator, whit_quat_file *file,
                                whit_error *error);
/* The same for bytes in memory, which must outlive the file. */
whit_status whit_quat_file_open_memory(const void *data, size_t size_bytes, const char *name,
                                       const whit_allocator *allocator, whit_quat_file *file, whit_error *error);
void whit_quat_file_close(whit_quat_file *file);

/* Copies words [word_begin, word_begin + n_words) of a row into planes; lanes past the row's end are 0. */
void whit_quat_file_row(const whit_quat_file *file, uint32_t row, uint32_t word_begin, uint32_t n_words,
                        whit_quat_planes out);
/* y (n_rows) = scale * 2^x_scale * (matrix x), x of n_cols lanes. Nothing is allocated. */
void whit_quat_file_gemv(const whit_quat_file *file, const whit_quat_kernels *kernels, whit_quat_view x, int8_t x_scale,
                         float *y);

/* Writes a matrix atomically; rows of the planes begin every `row_words` words. */
whit_status whit_quat_file_write(const char *path, whit_quat_view matrix, uint32_t n_rows, uint32_t n_cols,
                                 uint32_t row_words, float scale, bool padded, whit_error *error);

#endif
