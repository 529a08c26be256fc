/* SPDX-License-Identifier: MIT
 * Compresses a model: the matrices of a model's layers are rounded to signs, trits or four levels, without training, so
 * that the model's outputs over a calibration text change little (docs/use/compression.md).
 *
 * The source is read layer by layer; the finished matrices wait in their codecs until the file is written. */
#ifndef WHIT_COMPRESS_COMPRESS_H
#define WHIT_COMPRESS_COMPRESS_H

#include "base/ranks.h"
#include "base/sketch.h"
#include "format/imatrix.h"
#include "model/source.h"

typedef enum whit_compress_method {
    WHIT_COMPRESS_RTN,  /* nearest levels, fitted to the weights alone */
    WHIT_COMPRESS_GPTQ, /* error feedback under the Hessian */
    WHIT_COMPRESS_FULL, /* error feedback under the Hessian, with every stage */
} whit_compress_method;

/* Lists the stages of the full method, which `without` leaves out. */
typedef enum whit_compress_stage {
    WHIT_STAGE_QEP = 1 << 0,      /* targets corrected for the inputs' errors */
    WHIT_STAGE_RESIDUAL = 1 << 1, /* targets also corrected for the residual stream's errors */
    WHIT_STAGE_ORDER = 1 << 2,    /* orders groups by the energy of their inputs */
    WHIT_STAGE_DESCENT = 1 << 3,  /* single codes, and scales under the Hessian */
    /* Corrections added to the codes, if the codec's budget has space: */
    WHIT_STAGE_OUTLIERS = 1 << 4, /* single weights */
    WHIT_STAGE_PLANE = 1 << 5,    /* a second sign plane on the columns that need it */
    WHIT_STAGE_LOW_RANK = 1 << 6, /* a pair of int8 factors, of matrices that are large enough */
    WHIT_STAGE_ANNEAL = 1 << 8,   /* with descent: codes drawn at a falling temperature first */
    WHIT_STAGE_ROTATION = 1 << 7, /* values of attention rotated within their heads, if the layer loses less */
} whit_compress_stage;

/* Converts "qep" to WHIT_STAGE_QEP; returns 0 for an unknown name. */
unsigned whit_compress_stage_named(const char *name);

/* Returns whether a type of GGUF files can be the codec: q8_0 q4_0 iq4_nl iq4_xs q3_k q2_k q2_0 tq2_0 tq1_0 q1_0. Such
 * a file has no corrections, and its embedding and head are q8_0. */
bool whit_compress_knows_form(const char *name);

typedef struct whit_compress_report {
    const char *name; /* name of the matrix */
    const whit_tensor_type *type;
    uint32_t layer, n_layers;
    double error_gptq, error; /* relative error of the outputs on the calibration text, before and after descent */
    uint32_t sweeps;
    uint64_t n_outliers;
    uint32_t n_experts, n_unseen; /* number of experts with these matrices, and how many of them received no token */
    bool rotated;                 /* only for v and o: the rotated variant was kept */
    uint64_t bytes;               /* size of the tensor with its corrections; 0: the size that its type implies */
    uint64_t elapsed_ns;          /* time since the run began */
} whit_compress_report;

typedef struct whit_compress_options {
    /* The codec is "b1", "t", "q2" (l2), "q2-planes" (q2), or a type of GGUF files (whit_compress_knows_form). */
    const char *codec;
    const whit_source *like; /* matrices get their types from this source; NULL: not given */
    /* Sets a budget of bits per weight (budget.h), which chooses codecs, groups and sizes of corrections in place of
     * the options for them; 0: no budget. */
    double bits;
    const char *const *mixed; /* "down=t": another codec, or i8 or f16, for the matrices of that name */
    size_t n_mixed;
    whit_compress_method method;
    unsigned without;            /* stages */
    float outlier_percent;       /* percent of the weights, at most 0.3; 0: as many as the codec's budget allows */
    float plane_percent;         /* percent of the columns of a b1 matrix, at most 50; 0: by the budget */
    uint32_t rank;               /* rank of the low-rank pair, at most WHIT_LOW_RANK_MAX; 0: by the budget */
    uint32_t group;              /* columns per scale; 0: 128 */
    bool u8_scales;              /* a byte per group times an f16 per row, rather than f16 */
    const whit_imatrix *imatrix; /* diagonal Hessians in place of a text; NULL: not given */
    const char *embedding;       /* i8 (NULL), i4 or f16: embedding and head */
    const int32_t *ids;          /* the calibration text; not for RTN */
    size_t n_ids, max_tokens;
    uint32_t n_tokens; /* tokens per window; 0: the context length, at most 512 */
    int32_t bos;       /* first token of every window; -1: no such token */
    uint64_t seed;
    uint32_t n_threads;
    const char *work;          /* path of the work file; NULL: PATH.work */
    bool keep_work;            /* the caller removes the work file, because more work follows */
    bool resume;               /* resume an interrupted run from its work file */
    const char *command;       /* provenance */
    const whit_sketch *sketch; /* sketch of the calibration text, for the file's metadata; NULL: not written */
    /* These processes share the calibration text; rank 0 writes files. NULL means this process alone, which sums in
     * another order. */
    const whit_ranks *ranks;
    _Atomic uint64_t *multiply_adds; /* counter that dense products add to; NULL: not counted */
    whit_progress_fn *progress;
    void (*report)(void *user, const whit_compress_report *report);
    void (*chosen)(void *user, const char *text); /* receives a budget's choice, a line per matrix; NULL: not called */
    void *user;
} whit_compress_options;

/* Compresses `source` to `path`, which is replaced only once the result is complete. Until then finished layers are
 * kept in the work file, so that an interrupted run can be resumed with the same options and `resume` and gives the
 * same bytes. */
whit_status whit_compress(const whit_source *source, const whit_compress_options *options, const char *path,
                          const whit_allocator *allocator, whit_error *error);

#endif
