/* SPDX-License-Identifier: MIT
 * Encodes rows to GGUF weight types, for export, only if the type can represent the given values exactly.
 *
 * Plain codes become TQ1_0, TQ2_0, Q2_0, Q8_0, Q4_0 or Q1_0; whit's own types with a native kind become that kind;
 * floats become F32, F16 or BF16. A row that a type cannot represent is reported and never rounded. A caller finds out
 * whether a whole tensor fits by encoding all its rows. */
#ifndef WHIT_FORMAT_GGML_ENCODE_H
#define WHIT_FORMAT_GGML_ENCODE_H

#include "format/ggml_types.h"

/* Encodes one row of value = scale * code. codes (n_cols); scales: one per group_cols columns (the last group may be
 * shorter; group_cols = n_cols means one scale). `out` has whit_ggml_size(kind, n_cols, 1) bytes and is undefined on
 * failure. Returns false if the kind is not TQ1_0, TQ2_0, Q2_0, Q8_0, Q4_0 or Q1_0, or cannot represent the row: n_cols
 * is not a multiple of the kind's block, a code is out of range, a scale is not exact in float16, or scales differ
 * within one of the kind's groups. */
bool whit_ggml_encode_codes(whit_ggml_kind kind, uint64_t n_cols, const int8_t *codes, const float *scales,
                            uint64_t group_cols, uint8_t *out);

/* Finds the GGUF kind that stores the codes and scales of `type`, a type with a scale per group, unchanged. It is a
 * kind whose twin (format/ggml_twin.c) is this type; only i8 with k8 scales is no twin, and is stored as Q6_K. Returns
 * false if no kind does, for example for e4 scales with a factor. */
bool whit_ggml_native_kind(const whit_tensor_type *type, whit_ggml_kind *kind);
/* Encodes one row of a type for which whit_ggml_native_kind finds `kind`. `rows` is in the form of whit_ggml_row_twin;
 * `out` has whit_ggml_size(kind, n_cols, 1) bytes. Returns false if the kind cannot represent the row. For example, x8
 * and x9 allow any signs, but IQ2_XXS and IQ2_XS need an even number of negative signs in eight; the scales of i3 and
 * n4, and the codes of i8 in Q6_K, are limited to -32..31. */
bool whit_ggml_encode_native(whit_ggml_kind kind, uint64_t n_cols, const whit_rows *rows, uint8_t *out);

/* Encodes n values as F32, F16 or BF16. Returns false if a value is not exactly representable; a NaN always is. */
bool whit_ggml_encode_floats(whit_ggml_kind kind, uint64_t n, const float *values, uint8_t *out);

#endif
