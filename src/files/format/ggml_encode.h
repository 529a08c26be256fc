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

/* n values as F32, F16 or BF16. False where one is not exactly of that type (any NaN is). */
bool whit_ggml_encode_floats(whit_ggml_kind kind, uint64_t n, const float *values, uint8_t *out);

#endif
