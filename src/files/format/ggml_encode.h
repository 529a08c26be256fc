/* SPDX-License-Identifier: MIT
 * Writing GGUF weight types, for export: only what holds the given values exactly.
 *
 * Codes are encoded to TQ1_0, TQ2_0, Q8_0 and Q1_0, floats to F32, F16 and BF16. A row that a type
 * cannot hold is reported, never rounded; whether a whole tensor fits is found by encoding it. */
#ifndef WHIT_FORMAT_GGML_ENCODE_H
#define WHIT_FORMAT_GGML_ENCODE_H

#include "format/ggml_types.h"

/* One row of value = scale * code. codes (n_cols); scales, one per group_cols columns (the last
 * group may be short; group_cols = n_cols for one scale). `out` has whit_ggml_size(kind, n_cols, 1)
 * bytes and is undefined on failure. False where the kind cannot hold the row: n_cols is no
 * multiple of its block, a code is out of its range, a scale is no float16, or scales differ within
 * one of its groups. */
bool whit_ggml_encode_codes(whit_ggml_kind kind, uint64_t n_cols, const int8_t *codes, const float *scales,
                            uint64_t group_cols, uint8_t *out);

/* The kind whose own codes and scales a type keeps (format/ggml_twin.c reads it as that type); false where there is
 * none, as of e4 scales with a factor. */
bool whit_ggml_native_kind(const whit_tensor_type *type, whit_ggml_kind *kind);
/* One row of such a type, as whit_ggml_row_twin gives it, as bytes of the kind: `out` has whit_ggml_size(kind,
 * n_cols, 1) bytes. False where the kind cannot hold it: x8 and x9 hold any signs, IQ2_XXS and IQ2_XS an even number
 * of them in eight; numbers of i3 and n4 scales are -32 to 31 there, codes of i8 in Q6_K too. */
bool whit_ggml_encode_native(whit_ggml_kind kind, uint64_t n_cols, const whit_rows *rows, uint8_t *out);

/* n values as F32, F16 or BF16. False where one is not exactly of that type (any NaN is). */
bool whit_ggml_encode_floats(whit_ggml_kind kind, uint64_t n, const float *values, uint8_t *out);

#endif
