/* SPDX-License-Identifier: MIT
 * Declares the kernels: one table of functions for a session, chosen once by ISA level.
 *
 * Every kernel computes the same bits as the generic kernel of the operation, whatever its ISA, tile or number of
 * tokens (docs/dev/numerics.md defines the operations and their order). Kernels allocate no memory, have no state and
 * may run in any thread inside the environment of base/fpenv.h. Pointers need only the alignment of their element type
 * unless a comment demands more. Nothing is read or written outside the stated shapes: "(n, stride)" means n rows that
 * are `stride` elements apart.
 *
 * kernels.inc lists every kernel once; the declarations here, the table, the tests and the command `whit kernels` are
 * generated from its rows. */
#ifndef WHIT_KERNELS_KERNELS_H
#define WHIT_KERNELS_KERNELS_H

#include "base/cpu.h"
#include "kernels/acts.h"
#include "kernels/codec.h"
#include "kernels/corrections.h"
#include "kernels/kv_block.h"

/* ---- activations ---------------------------------------------------------------------------- */

/* Quantises tokens [token_begin, token_end) of x (n_tokens, x_stride) to the form acts->spec: i8 per token, per group
 * or with a fixed scale, or q2. Writes codes, scales, sums and zero padding to the arrays of `acts`. */
typedef void whit_quantise_fn(const float *x, size_t x_stride, const whit_acts *acts, uint32_t token_begin,
                              uint32_t token_end);

/* ---- matrix products ------------------------------------------------------------------------ */

/* Computes y[t][row] = sum over k of x[t][k] * w[row][k] for the rows of tiles [tile_begin, tile_end) that exist; y
 * (n_tokens, y_stride). `scratch` has scratch_bytes and is 64-byte aligned. */
typedef void whit_matmul_fn(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end, float *y,
                            size_t y_stride, void *scratch);

/* Computes out[i] = f(gate[i]) * up[i] for n elements; out may be gate or up. */
typedef void whit_gate_fn(const float *gate, const float *up, uint32_t n, float *out);
/* Computes y = f(x gateᵀ, x wᵀ) with a whit_gate_fn f, from two matrices of the same codec and shape, of which both or
 * neither have offsets. The two products are not written to memory. */
typedef void whit_matmul_gated_fn(const whit_tensor *gate, const whit_tensor *w, whit_gate_fn *f, const whit_acts *x,
                                  uint32_t tile_begin, uint32_t tile_end, float *y, size_t y_stride, void *scratch);

typedef struct whit_matmul_kernel {
    const char *name;  /* name, formed as docs/dev/kernels.md describes */
    whit_isa isa;      /* lowest ISA level on which the kernel may run */
    uint32_t features; /* WHIT_CPU_ bits that the kernel needs in addition to the level */
    /* range of the number of tokens for which the kernel is selected; it is correct for any number */
    uint32_t min_tokens, max_tokens;
    bool (*accepts)(const whit_tensor_type *type, const whit_acts_spec *spec);
    /* Returns the number of bytes of scratch that each thread needs; NULL: the kernel needs no scratch. */
    size_t (*scratch_bytes)(const whit_tensor_type *type, const whit_acts_spec *spec, uint32_t n_tokens);
    /* Returns how many of n_tokens tokens one call should process; NULL: all of them. */
    uint32_t (*slice_tokens)(const whit_tensor_type *type, uint32_t n_tokens);
    /* Computes tables from x into the scratch, before the first run that uses them; NULL: the kernel needs no
     * tables. */
    void (*prepare)(const whit_acts *x, void *scratch);
    whit_matmul_fn *run;
    /* Variants of `run` with the same scratch; NULL: the kernel has no such variant. */
    whit_matmul_fn *run_added; /* adds to y instead of overwriting it */
    whit_matmul_gated_fn *run_gated;
} whit_matmul_kernel;

/* ---- vectors -------------------------------------------------------------------------------- */

/* Computes out = weight * (x * (1 / sqrt(mean(x^2) + eps))) for n elements; weight NULL means all ones; out may be
 * x. */
typedef void whit_rms_norm_fn(const float *x, const float *weight, uint32_t n, float eps, float *out);
/* Computes out = weight * ((x - mean(x)) * (1 / sqrt(variance(x) + eps))) + bias for n elements; out may be x. */
typedef void whit_layer_norm_fn(const float *x, const float *weight, const float *bias, uint32_t n, float eps,
                                float *out);
/* Functions f of whit_activate_fn, which computes out[i] = f(x[i]) for n elements; out may be x. */
typedef enum whit_activation {
    WHIT_ACTIVATE_GELU, /* x * Phi(x), with the normal distribution Phi from the error function */
    WHIT_ACTIVATE_TANH,
    WHIT_ACTIVATE_RELU,
    WHIT_ACTIVATE_GELU_TANH, /* the tanh approximation of GELU */
} whit_activation;
#define WHIT_ACTIVATIONS 4
typedef void whit_activate_fn(const float *x, uint32_t n, whit_activation kind, float *out);
/* Rotates the first 2 * n_pairs elements of each head of x (n_heads, head_dim) into out, and copies the other elements;
 * out may be x. Pair i is (i, i + n_pairs) for rope_half, and (2 i, 2 i + 1) for rope_pairs. `table` has n_pairs
 * cosines, then n_pairs sines. */
typedef void whit_rope_fn(const float *x, uint32_t n_heads, uint32_t head_dim, uint32_t n_pairs, const float *table,
                          float *out);
/* Computes x[i] += y[i] for n elements. */
typedef void whit_add_fn(float *x, const float *y, uint32_t n);
/* Computes x[i] = fma(factor, y[i], x[i]) for n elements. */
typedef void whit_weighted_add_fn(float *x, const float *y, float factor, uint32_t n);
/* Computes x[i] *= factor for n elements, except for softcap and fix_scale (whit_kernels). */
typedef void whit_scale_fn(float *x, float factor, uint32_t n);

/* Describes rows that are computed, normalised and quantised in one call, between two matrix products. Row t is x = a
 * (GIVEN), a + b (SUM), silu(a) * b (SILU) or max(a, 0)^2 * b (RELU2); then acts = quantise(rms_norm(x)), as the
 * kernels above define them. All rows have acts->n_cols elements. */
typedef enum whit_row_source {
    WHIT_ROW_GIVEN, /* x = a; the members b and x must also point to a */
    WHIT_ROW_SUM,
    WHIT_ROW_SILU,
    WHIT_ROW_RELU2
} whit_row_source;
typedef struct whit_norm_rows {
    whit_row_source source;
    const float *a, *b; /* (n_tokens, a_stride), (n_tokens, b_stride) */
    size_t a_stride, b_stride;
    float *x; /* (n_tokens, x_stride), may be a; with x_stride 0 one row of scratch, so that x is not kept */
    size_t x_stride;
    const float *weight; /* weight of the norm; NULL: all ones */
    float eps;
    float *normed; /* scratch of n_cols elements; may be x if x_stride is 0 */
} whit_norm_rows;
typedef void whit_norm_acts_fn(const whit_norm_rows *rows, const whit_acts *acts, uint32_t token_begin,
                               uint32_t token_end);

/* Returns the index of the largest of n > 0 elements, the lowest index if several are equal. If an element is not
 * finite, the result is some index below n. */
typedef uint32_t whit_argmax_fn(const float *x, uint32_t n);
/* Returns false if one of the n elements is NaN or infinite. */
typedef bool whit_all_finite_fn(const float *x, uint32_t n);

/* ---- attention, one kernel per type of cache ------------------------------------------------ */

/* Writes keys and values (n, stride) of one KV head into `block`, for n consecutive positions that begin at `slot`
 * (position mod 64); slot + n <= 64. kv_append_packed first rotates the values (kernels/hadamard.h). */
typedef void whit_kv_append_fn(void *block, uint32_t slot, uint32_t n, uint32_t head_dim, const float *keys,
                               const float *values, size_t stride);
/* Converts queries (n, q_stride) to the form that attention reads: out (n, whit_kv_query_bytes). */
typedef void whit_kv_query_fn(const float *q, size_t q_stride, uint32_t n, uint32_t head_dim, uint8_t *out);
/* Computes attention of n queries over one group of blocks, each query over its span, and writes partials (n,
 * whit_kv_partial_elems). Scores are multiplied by `scale`. `queries` is the output of whit_kv_query_fn. Blocks are
 * 64-byte aligned; blocks outside all spans are not read. `next` is the group of the next call, which is prefetched;
 * NULL if unknown. If `into` (n partials) is not NULL, the results are merged into it, and `partials` is scratch for
 * min(n, WHIT_KV_PASS_QUERIES) partials. */
typedef void whit_kv_attend_fn(whit_kv_group *group, const whit_kv_group *next, const uint8_t *queries,
                               const whit_kv_span *spans, uint32_t n, uint32_t head_dim, float scale, float *partials,
                               float *into);
#define WHIT_KV_PASS_QUERIES 64
/* Closes a block of a packed type: converts a full open block to the closed form at `closed` (whit_kv_block_bytes);
 * both are 64-byte aligned. If `sinks` is not NULL, it also writes the block's first WHIT_KV_SINKS positions there
 * (whit_kv_sinks_bytes) and excludes them from the bounds of the channels. */
typedef void whit_kv_pack_fn(const void *open, uint32_t head_dim, const whit_kv_packing *how, void *closed,
                             void *sinks);
/* Merges n partials `from` of a later group into the n partials `into` of earlier groups. A partial with sum 0 covers
 * no position. */
typedef void whit_kv_merge_fn(float *into, const float *from, uint32_t n, uint32_t head_dim);
/* Computes the result of attention from a partial: out[d] = partial[d] / sum, for head_dim elements. kv_finish_packed
 * then rotates the result back. */
typedef void whit_kv_finish_fn(const float *partial, uint32_t head_dim, float *out);

/* ---- the screened head ---------------------------------------------------------------------- */

/* Computes screened logits (n_tokens, stride) for the rows of tiles [tile_begin, tile_end) of an i8s tensor and int8
 * activations x: only high nibbles are read, and every low nibble counts as 7.5. */
typedef void whit_screen_fn(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end,
                            float *logits, size_t stride);
/* Computes the exact logits of one token for n rows, with the same bits as the matrix product. */
typedef void whit_rescore_fn(const whit_tensor *w, const whit_acts *x, uint32_t token, const uint32_t *rows, uint32_t n,
                             float *logits);

/* Writes to `rows` the rows of the n_best largest of n screened logits, in no particular order; n_best is 1 to n and at
 * most WHIT_SCREEN_MAX_BEST. */
#define WHIT_SCREEN_MAX_BEST 1024
typedef void whit_best_rows_fn(const float *logits, uint32_t n, uint32_t n_best, uint32_t *rows);
/* Writes to rows (n_rows), in ascending order, the rows whose screened logit plus bound * |scale of the row| is at
 * least `threshold` or NaN; returns their number. */
typedef uint32_t whit_survive_fn(const whit_tensor *w, const float *logits, float bound, float threshold,
                                 uint32_t *rows);

/* ---- recurrent layers ----------------------------------------------------------------------- */

/* Computes one token of a causal convolution of each channel: out[c] = f(sum over j of weight[j * weight_stride + c] *
 * rows[j][c]) for c < n, where f is SiLU or the identity. rows[j] points to the input of one of the last n_taps tokens,
 * oldest first. The first product is rounded; the others are added by fma in the order of j. */
#define WHIT_CONV_TAPS_MAX 8
#define WHIT_DELTA_DIM_MAX 512 /* largest dimension of a head's keys and values */
typedef void whit_causal_conv_fn(const float *const *rows, const float *weight, size_t weight_stride, uint32_t n_taps,
                                 bool is_silu, uint32_t n, float *out);

/* Update of a value head's state by one token: state = decay * state + the outer product of key and change. */
typedef struct whit_delta_update {
    const float *key; /* (key_dim) */
    float *change;    /* (value_dim) */
    float decay;
} whit_delta_update;
/* Applies n_updates updates in order to the state `from` and writes the result to `to`; both are (key_dim, value_dim),
 * row-major. Each update sets state[i][j] to fma(key[i], change[j], decay * state[i][j]). `from` NULL means zeros; `to`
 * may be `from`. */
typedef void whit_delta_apply_fn(const whit_delta_update *updates, uint32_t n_updates, const float *from, float *to,
                                 uint32_t key_dim, uint32_t value_dim);
/* Computes one token of the gated delta rule: writes change = beta * (value - (decay * state)^T key) to update->change,
 * applies the update to `state` as whit_delta_apply_fn does, and computes out (value_dim) = state^T query. Sums are
 * over the key's elements in ascending order, with fma. */
typedef void whit_delta_step_fn(float *state, const float *query, const float *value, float beta,
                                const whit_delta_update *update, uint32_t key_dim, uint32_t value_dim, float *out);

/* ---- adapters ------------------------------------------------------------------------------- */

/* Adds a low-rank product to finished outputs: y[t][row] += (scale of the row) * sum over j of code[row][j] *
 * low[t][j], for the rows of tiles [tile_begin, tile_end) that exist. b is i8 with an f32 scale per row and at most
 * WHIT_CHUNK_COLS columns; low (n_tokens, low_stride), y (n_tokens, y_stride). */
typedef void whit_low_rank_fn(const whit_tensor *b, const float *low, size_t low_stride, uint32_t n_tokens,
                              uint32_t tile_begin, uint32_t tile_end, float *y, size_t y_stride);

/* ---- corrections ----------------------------------------------------------------------------- */

/* Activations for products with outliers: 16-bit integers with one scale per token. */
typedef struct whit_outlier_acts {
    uint32_t n_tokens;
    size_t stride;  /* distance between tokens in elements: a multiple of 16, greater than the number of columns */
    int16_t *codes; /* (n_tokens, stride), zeros after the columns */
    float *scales;  /* (n_tokens) scale of each token */
} whit_outlier_acts;

/* Computes codes and scales for the tokens of x, which may have any whit_acts_kind. */
typedef void whit_outlier_codes_fn(const whit_acts *x, const whit_outlier_acts *out);

/* Adds the products of a tensor's outliers to finished outputs y (n_tokens, y_stride): y[t][row] += sum over the row's
 * outliers of outlier * x[t][column], for the rows of tiles [tile_begin, tile_end) that exist. */
typedef void whit_outliers_fn(const whit_tensor *w, const whit_outlier_acts *x, uint32_t tile_begin, uint32_t tile_end,
                              float *y, size_t y_stride);

/* Applies the Hadamard transform to each block of a row, or its inverse, as whit_hadamard_row does
 * (kernels/hadamard.h). */
typedef void whit_hadamard_fn(const float *x, const float *signs, uint32_t n, uint32_t block, bool is_back, float *out);

/* ---- probes: the speed of this machine, for the bench --------------------------------------- */

/* Reads memory once, as fast as possible; returns the sum of its 64-bit words. size_bytes is a multiple of 64, and
 * `memory` is 64-byte aligned. */
typedef uint64_t whit_probe_read_fn(const void *memory, size_t size_bytes);

/* Multiplies 32 rows by 32 tokens of 256 columns, n_rounds times, with the tile size and the loads of the level's
 * matrix kernels. w (64 quads of columns, 2 tiles, 16 rows, 4 columns) has codes from 0 to 3; x is (32, 256); both are
 * 64-byte aligned. Returns the sum of all products modulo 2^32. */
typedef uint32_t whit_probe_int8_fn(const uint8_t *w, const int8_t *x, uint32_t n_rounds);
#define WHIT_PROBE_COLS         256
#define WHIT_PROBE_BYTES        (32 * WHIT_PROBE_COLS) /* size of w, and size of x */
#define WHIT_PROBE_MACS_A_ROUND (32 * 32 * WHIT_PROBE_COLS)

/* ---- the table of kernels ------------------------------------------------------------------- */

typedef struct whit_kernels {
    whit_isa isa;         /* level in use: the machine's level, or a lower cap */
    uint32_t features;    /* WHIT_CPU_ bits of the processor, which the cap does not change; a kernel that needs them
                           * also needs its level (whit_kernel_runs) */
    uint32_t screen_rows; /* largest number of tokens for which screening an output head is faster than the full
                           * product */
    uint32_t kv_queries;  /* preferred number of queries per call of kv_attend, which share one read of a block */
    bool kv_converts_f16; /* for many queries kv_attend_f16 converts blocks to integers if it gets
                           * whit_kv_group.converted (else it is slower) */
    whit_quantise_fn *quantise;
    whit_rms_norm_fn *rms_norm;
    whit_layer_norm_fn *layer_norm;
    whit_activate_fn *activate;
    whit_rope_fn *rope_half;   /* NeoX style: a pair has one element from each half of the rotated part of a head */
    whit_rope_fn *rope_pairs;  /* a pair has two neighbouring elements */
    whit_gate_fn *silu_mul;    /* f(x) = x / (1 + exp(-x)) */
    whit_gate_fn *relu2_mul;   /* f(x) = max(x, 0)^2 */
    whit_gate_fn *gelu_mul;    /* f(x) is the tanh approximation of GELU */
    whit_gate_fn *sigmoid_mul; /* f(x) = 1 / (1 + exp(-x)) */
    whit_gate_fn *product;     /* f(x) = x */
    whit_gate_fn *swish1_mul;  /* out = gate / (1 + exp(-1.702 gate)) * (up + 1) */
    whit_add_fn *add;
    whit_scale_fn *scale;
    whit_weighted_add_fn *weighted_add;
    whit_scale_fn *softcap;   /* x = factor * tanh(x / factor) */
    whit_scale_fn *fix_scale; /* x = factor * (x / factor rounded to an integer in -128..127); NaN stays NaN, zeros
                               * are +0 */
    whit_hadamard_fn *hadamard_row;
    whit_norm_acts_fn *norm_acts;
    whit_argmax_fn *argmax;
    whit_all_finite_fn *all_finite;
    whit_kv_append_fn *kv_append_f32, *kv_append_f16, *kv_append_i8, *kv_append_packed;
    whit_kv_query_fn *kv_query_f32, *kv_query_f16, *kv_query_i8;
    whit_kv_attend_fn *kv_attend_f32, *kv_attend_f16, *kv_attend_i8, *kv_attend_k4v2, *kv_attend_k2v2,
        *kv_attend_bitmap;
    whit_kv_pack_fn *kv_pack_k4v2, *kv_pack_k2v2, *kv_pack_bitmap;
    whit_kv_merge_fn *kv_merge;
    whit_kv_finish_fn *kv_finish, *kv_finish_packed;
    whit_screen_fn *screen;
    whit_rescore_fn *rescore;
    whit_best_rows_fn *best_rows;
    whit_survive_fn *survive;
    whit_causal_conv_fn *causal_conv;
    whit_delta_apply_fn *delta_apply;
    whit_delta_step_fn *delta_step;
    whit_low_rank_fn *low_rank;
    whit_outlier_codes_fn *outlier_codes;
    whit_outliers_fn *outliers;
    whit_probe_read_fn *probe_read;
    whit_probe_int8_fn *probe_int8;
} whit_kernels;

/* Fills the table for this machine with the strongest kernels up to the level `cap` (a name as in the environment
 * variable WHIT_CPU; NULL or "": no cap). Returns WHIT_ERROR_ARGUMENT if `cap` is not the name of a level. */
whit_status whit_kernels_select(const whit_cpu *cpu, const char *cap, whit_kernels *kernels, whit_error *error);

/* Returns the matrix kernel for a tensor, its activations and a number of tokens, at least 1. The generic kernels
 * accept every type with WHIT_LAYOUT_TILE16, float codecs only with f32 activations; in other cases the result may be
 * NULL. */
const whit_matmul_kernel *whit_matmul_find(const whit_kernels *kernels, const whit_tensor_type *type,
                                           const whit_acts_spec *spec, uint32_t n_tokens);

/* One row of kernels.inc other than a matrix product. */
typedef struct whit_kernel_row {
    const char *op; /* name of the operation, such as "rms_norm" */
    whit_isa isa;
    uint32_t features;
    size_t table_offset; /* offset of the kernel's pointer in whit_kernels */
    void (*function)(void);
} whit_kernel_row;

/* Return all rows that are compiled in, weak levels first; *n is their number. */
const whit_kernel_row *whit_kernel_rows(size_t *n);
const whit_matmul_kernel *const *whit_matmul_kernels(size_t *n);
bool whit_kernel_runs(const whit_kernels *kernels, whit_isa isa, uint32_t features);

/* Prepares `scratch` for a kernel and x; call it before the first run on x with this scratch. */
static inline void whit_matmul_prepare(const whit_matmul_kernel *kernel, const whit_acts *x, void *scratch)
{
    if (kernel->prepare) kernel->prepare(x, scratch);
}

/* Declares whit_<op>_<isa> for every kernel of kernels.inc, and whit_matmul_<name> for every matrix kernel. */
/* clang-format off */
#define WHIT_KERNEL(type, op, isa, level, features) whit_##type##_fn whit_##op##_##isa;
#define WHIT_MATMUL(name) extern const whit_matmul_kernel whit_matmul_##name;
#include "kernels/kernels.inc"
#undef WHIT_KERNEL
#undef WHIT_MATMUL
/* clang-format on */

/* Return the kernel of an operation for a type of cache. Packed types append to open blocks and use the query format of
 * f16. */
static inline whit_kv_append_fn *whit_kv_append(const whit_kernels *k, whit_kv_type kv)
{
    if (kv == WHIT_KV_F32) return k->kv_append_f32;
    if (kv == WHIT_KV_F16) return k->kv_append_f16;
    if (kv == WHIT_KV_I8) return k->kv_append_i8;
    return k->kv_append_packed;
}
static inline whit_kv_query_fn *whit_kv_query(const whit_kernels *k, whit_kv_type kv)
{
    if (kv == WHIT_KV_F32) return k->kv_query_f32;
    if (kv == WHIT_KV_I8) return k->kv_query_i8;
    return k->kv_query_f16;
}
static inline whit_kv_attend_fn *whit_kv_attend(const whit_kernels *k, whit_kv_type kv)
{
    if (kv == WHIT_KV_F32) return k->kv_attend_f32;
    if (kv == WHIT_KV_F16) return k->kv_attend_f16;
    if (kv == WHIT_KV_I8) return k->kv_attend_i8;
    if (kv == WHIT_KV_K4V2) return k->kv_attend_k4v2;
    if (kv == WHIT_KV_K2V2) return k->kv_attend_k2v2;
    return k->kv_attend_bitmap;
}
/* Returns the kernel that closes blocks of a packed type; NULL for other types. */
static inline whit_kv_pack_fn *whit_kv_pack(const whit_kernels *k, whit_kv_type kv)
{
    if (kv == WHIT_KV_K4V2) return k->kv_pack_k4v2;
    if (kv == WHIT_KV_K2V2) return k->kv_pack_k2v2;
    if (kv == WHIT_KV_BITMAP) return k->kv_pack_bitmap;
    return NULL;
}
static inline whit_kv_finish_fn *whit_kv_finish(const whit_kernels *k, whit_kv_type kv)
{
    return whit_kv_is_packed(kv) ? k->kv_finish_packed : k->kv_finish;
}

/* ---- built on kernels, the same for every ISA ------------------------------------------------ */

/* Computes the frequencies of RoPE: frequencies[i] = theta^(-i / n_pairs) / factors[i] (factors NULL: all 1). */
void whit_rope_frequencies(double theta, uint32_t n_pairs, const float *factors, double *frequencies);
/* Computes table (2, n_pairs): the cosines of position * frequency, then the sines, computed in f64 and rounded to
 * f32. */
void whit_rope_table(const double *frequencies, uint32_t n_pairs, uint32_t position, float *table);
/* Computes table (2 * n_pairs, 64) for whit_kv_packing: the cosines of j * frequency for j = 0 to 63, then the
 * sines. */
void whit_kv_offset_table(const double *frequencies, uint32_t n_pairs, float *table);

/* Rule by which a router selects experts and weights from logits. */
typedef struct whit_router {
    uint32_t n_experts, n_used;
    bool is_sigmoid;     /* scores are 1 / (1 + exp(-logit)); otherwise the softmax of all logits */
    bool is_normalised;  /* the chosen scores are divided by (their sum + added) */
    float added, factor; /* `added` is a summand of that divisor; `factor` multiplies all weights */
    /* (n_experts) each, or NULL: `choice` is added to the scores only for choosing; `scales` multiplies the experts'
     * weights */
    const float *choice, *scales;
} whit_router;
/* Chooses the n_used experts with the largest scores (plus `choice`) and writes experts (n_used), in descending order,
 * the lower index first if equal, and their weights (n_used). The softmax is summed in ascending order of index, the
 * divisor in the order of `experts`. For any logits, NaN included, the experts are distinct and below n_experts. scores
 * (n_experts) is scratch. */
void whit_route_token(const whit_router *router, const float *logits, float *scores, uint32_t *experts, float *weights);

/* Returns a bound for one token's screened logits: bound * |scale of a row| is eight standard errors of the row's
 * screened logit, if low nibbles are uniform in 0..15 (variance 21.25). */
float whit_screen_bound(const whit_acts *x, uint32_t token);
/* Makes the n_best largest of one token's logits exact; n_best above n_rows or WHIT_SCREEN_MAX_BEST counts as that
 * limit. `logits` (n_rows) are screened on entry. Computes the exact logits of the n_best rows with the largest
 * screened logits, then of every row that may exceed the least of these. Writes the rows with exact logits to `rows`
 * (n_rows) and returns their number. The other logits stay screened, below the n_best-th exact one. */
uint32_t whit_screen_finish(const whit_kernels *kernels, const whit_tensor *w, const whit_acts *x, uint32_t token,
                            uint32_t n_best, float *logits, uint32_t *rows);

#endif
