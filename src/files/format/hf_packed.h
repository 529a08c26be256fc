/* SPDX-License-Identifier: MIT
 * Reads quantised matrices of Hugging Face folders, which consist of integers packed into words or of eight-bit floats:
 * finds their tensors and decodes single rows.
 *
 *   form        tensors of module M                                   value of row o, column i, group g
 *   compressed  weight_packed I32 (out, in bits / 32), weight_shape,  (q - 2^(bits - 1)) scale; with zero points
 *               weight_scale (out, groups), weight_zero_point I32     (q - zero) scale
 *               (out bits / 32, groups); or weight I8 (out, in)       q scale
 *   gemma       weight or embedding_quantized U8 (out, in bits / 8),  (q - 2^(bits - 1)) scale
 *               or I8 (out, in); weight_scale or embedding_scale      q scale
 *               (out, groups)
 *   gptq        qweight I32 (in bits / 32, out), scales (groups,      (q - zero - 1) scale; format "gptq_v2"
 *               out), qzeros I32 (groups, out bits / 32), g_idx       (q - zero) scale
 *   awq         qweight I32 (in, out / 8), qzeros I32 (groups,        (q - zero) scale; eight columns of a word
 *               out / 8), scales (groups, out)                        are in the order 0 2 4 6 1 3 5 7
 *   mlx         weight U32 (out, in bits / 32), scales, biases        q scale + bias
 *               (out, groups)
 *   fp8         weight F8_E4M3 (out, in), weight_scale_inv            value scale, a scale per block of rows and
 *               (row blocks, column blocks) or weight_scale           columns, per row, or one for all
 *
 * q is the stored code. Words are little-endian, with the first code in the lowest bits. Modules of "compressed" and
 * "gemma" may have tensors of one number with the fixed scales of int8 inputs and outputs: input_scale and
 * output_scale, or input_activation_scale and output_activation_scale. If such a scale is 0 or absent, the inputs or
 * outputs are floats. All pointers point into an open set of safetensors. Nothing is changed, so any thread may call
 * these functions. The sources are the formats' published descriptions (compressed-tensors, AutoGPTQ, AutoAWQ, MLX,
 * DeepSeek-V3, transformers' "gemma"). */
#ifndef WHIT_FORMAT_HF_PACKED_H
#define WHIT_FORMAT_HF_PACKED_H

#include "format/safetensors.h"
#include "kernels/codec.h"

typedef enum whit_hf_form {
    WHIT_HF_PLAIN, /* the tensors are not packed */
    WHIT_HF_COMPRESSED,
    WHIT_HF_GEMMA,
    WHIT_HF_GPTQ,
    WHIT_HF_GPTQ_V2,
    WHIT_HF_AWQ,
    WHIT_HF_MLX,
    WHIT_HF_FP8,
} whit_hf_form;

typedef struct whit_hf_packed {
    whit_hf_form form;
    uint32_t bits; /* 2, 4 or 8 */
    uint64_t n_rows, n_cols;
    uint64_t group_cols, group_rows;               /* number of columns and of rows that share a scale */
    const whit_safetensor *codes, *scales, *zeros; /* zeros: zero points, or biases of MLX; may be NULL */
    bool exact;                                    /* `type` represents every value exactly */
    whit_tensor_type type;                         /* type that whit_hf_packed_row converts to */
} whit_hf_packed;

/* The role of a tensor in a module. The ending of its name determines it. */
typedef enum whit_hf_role { WHIT_HF_OTHER, WHIT_HF_CODES, WHIT_HF_BESIDE } whit_hf_role;
/* Finds the role of a tensor. CODES: the module's weight (see whit_hf_is_packed). BESIDE: a tensor that is read
 * together with the weight, or that has no influence on results. For both, the first *module_bytes of `name` are the
 * module's name. OTHER: any other tensor. */
whit_hf_role whit_hf_packed_role(whit_hf_form form, const char *name, size_t *module_bytes);

/* Returns whether a tensor of role CODES is packed. It is a plain tensor if its module was excluded from
 * quantisation. */
bool whit_hf_is_packed(whit_hf_form form, const whit_safetensor *tensor);

/* Finds the tensors of `module` and checks their types, shapes and sizes. bits: number of bits of a code, for forms
 * whose tensors do not determine it (MLX, gemma). packed->type is t2, i4 or i8 for codes of 2, 4 or 8 bits, with scales
 * (and offsets) per group or row; it is i8 for codes of any size if the offsets of t2 or i4 would be rounded. For fp8
 * it is f16, or bf16 if f16's range is too small. packed->exact is false if the offsets of i8 are rounded, or a scale
 * of fp8 is not a power of two or is below 2^-15. packed->type also includes the fixed scales of inputs and outputs, if
 * there are any. */
whit_status whit_hf_packed_open(const whit_safetensors *weights, whit_hf_form form, const char *module, uint32_t bits,
                                whit_hf_packed *packed, whit_error *error);
/* Returns whether two matrices have the same type, codes, scales and zero points. */
bool whit_hf_packed_equal(const whit_hf_packed *a, const whit_hf_packed *b);
/* Reads a module's fixed scales of its input (scales[0]) and output (scales[1]); 0 if absent. */
whit_status whit_hf_fixed_scales(const whit_safetensors *weights, whit_hf_form form, const char *module,
                                 float scales[2], whit_error *error);
/* Decodes row `row` into the form that packed->type has. */
void whit_hf_packed_row(const whit_hf_packed *packed, uint64_t row, const whit_rows *rows);

#endif
