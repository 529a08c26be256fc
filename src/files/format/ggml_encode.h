/* SPDX-License-Identifier: MIT
 * Encodes rows to GGUF weight types, for export, only where the type holds the given values exactly.
 *
 * Codes are encoded to TQ1_0, TQ2_0, Q2_0, Q8_0, Q4_0 and Q1_0, floats to F32, F16 and BF16. A row that a type cannot
 * hold is reported, never rounded; encode a whole tensor to find out whether it fits. */
#ifndef WHIT_FORMAT_GGML_ENCODE_H
#define WHIT_FORMAT_GGML_ENCODE_H

#include "format/ggml_types.h"

/* Encodes one row of value = scale * code. codes (n_cols); scales, one per group_cols columns (the last group may be
 * short; group_cols = n_cols for one scale). `out` has whit_ggml_size(kind, n_cols, 1) bytes and is undefined on
 * failure. The result is false if the kind cannot hold the row: n_cols is not a multiple of its block, a code is out of
 * its range, a scale is not a float16, or scales differ within one of its groups. */
bool whit_ggml_encode_codes(whit_ggml_kind kind, uint64_t n_cols, const int8_t *codes, const float *scales,
                            uint64_t group_cols, uint8_t *out);

/* Finds the GGUF kind that stores the codes and scales of `type` unchanged (format/ggml_twin.c reads that kind as this
 * type); false if there is no such kind, for example for e4 scales with a factor. */
bool whit_ggml_native_kind(const whit_tensor_type *type, whit_ggml_kind *kind);
/* Encodes one row of a type that has such a native kind, as whit_ggml_row_twin gives the row: `out` has
 * whit_ggml_size(kind, n_cols, 1) bytes. The result is false if the kind cannot hold the row: x8 and x9 allow any
 * signs, but IQ2_XXS and IQ2_XS need an even number of negative ones in eight; i3 and n4 scales, and codes of i8 in
 * Q6_K, are limited to -32..31. */
bool whit_ggml_encode_native(whit_ggml_kind kind, uint64_t n_cols, const whit_rows *rows, uint8_t *out);

/* Encodes n values as F32, F16 or BF16. The result is false if a value is not exactly representable (any NaN is). */
bool whit_ggml_encode_floats(whit_ggml_kind kind, uint64_t n, const float *values, uint8_t *out);

#endif
