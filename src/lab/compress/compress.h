/* SPDX-License-Identifier: MIT
 * Compresses a model without training: rounds the matrices of its layers to signs, trits, four levels or types of GGUF
 * files, so that the model's outputs on a calibration text change little (docs/use/compression.md).
 *
 * The source is read layer by layer. Finished matrices are kept in their codecs, in memory or in unnamed files
 * (spool.h), until the file is written. */
#ifndef WHIT_COMPRESS_COMPRESS_H
#define WHIT_COMPRESS_COMPRESS_H

#include "base/ranks.h"
#include "base/sketch.h"
#include "format/imatrix.h"
#include "model/source.h"

typedef enum whit_compress_method {
    WHIT_COMPRESS_RTN,  /* rounds to the nearest levels, which are fitted to the weights alone */
    WHIT_COMPRESS_GPTQ, /* error feedback under the Hessian */
    WHIT_COMPRESS_FULL, /* error feedback under the Hessian, and all stages */
} whit_compress_method;

/* Stages of the full method, which `without` can switch off. */
typedef enum whit_compress_stage {
    WHIT_STAGE_QEP = 1 << 0,      /* the target compensates the errors of the inputs */
    WHIT_STAGE_RESIDUAL = 1 << 1, /* with QEP: the target also compensates the error of the residual stream */
    WHIT_STAGE_ORDER = 1 << 2,    /* groups are rounded in the order of the energy of their inputs */
    WHIT_STAGE_DESCENT = 1 << 3,  /* codes are improved one at a time, and scales under the Hessian */
    /* Corrections, which are added to the codes if the codec's budget of bits allows or the options give their sizes;
     * not for types of GGUF files, and not for experts: */
    WHIT_STAGE_OUTLIERS = 1 << 4, /* corrections of single weights */
    WHIT_STAGE_PLANE = 1 << 5,    /* for b1: a second sign plane for the columns with the largest errors */
    WHIT_STAGE_LOW_RANK = 1 << 6, /* a pair of int8 factors, for matrices that are large enough */
    WHIT_STAGE_ANNEAL = 1 << 8,   /* with descent: before it, codes are drawn at a falling temperature */
    /* the values of attention are rotated within their heads if that lowers the layer's error by at least 2 % */
    WHIT_STAGE_ROTATION = 1 << 7,
} whit_compress_stage;

/* Returns the stage with this name, such as WHIT_STAGE_QEP for "qep"; 0 for an unknown name. */
unsigned whit_compress_stage_named(const char *name);

/* Returns whether `name` is a type of GGUF files that the option `codec` may name (upper and lower case are equal):
 * q8_0 q4_0 q4_k q5_k q6_k iq4_nl iq4_xs q3_k q2_k iq2_s iq2_xs iq2_xxs q2_0 tq2_0 tq1_0 q1_0. A file with such a codec
 * has no corrections, and its embedding and head are q8_0 if their rows divide into blocks of 32. */
bool whit_compress_knows_form(const char *name);

/* A report on one matrix. Its pointers are valid only during the call. */
typedef struct whit_compress_report {
    const char *name; /* name of the matrix */
    const whit_tensor_type *type;
    uint32_t layer, n_layers;
    /* relative squared error of the outputs on the calibration text, before descent, and after descent and corrections;
     * if matrices are rounded without a text, both are the error of the weights (weighted.h) */
    double error_gptq, error;
    uint32_t sweeps;
    uint64_t n_outliers;
    uint32_t n_experts, n_unseen; /* number of experts whose matrices the tensor contains, and of those experts that
                                   * received no token */
    bool rotated;                 /* only for v and o: the variant with rotated weights was kept */
    uint64_t bytes;               /* size of the tensor including its corrections; 0: the size that its type implies */
    uint64_t elapsed_ns;          /* time since the beginning of the run */
} whit_compress_report;

typedef struct whit_compress_options {
    /* "b1", "t", "q2" (l2; q2 with u8_scales), "q2-planes" (q2), or a type of GGUF files
     * (whit_compress_knows_form) */
    const char *codec;
    /* a matrix gets the type that it has in this source, if it has the same shape there and levels.h supports the type,
     * otherwise that of `codec`; as for types of GGUF files, there are no corrections; NULL: not used */
    const whit_source *like;
    /* Budget of bits per weight (budget.h). It replaces the options for codecs, groups and sizes of corrections; 0: no
     * budget. */
    double bits;
    /* texts such as "down=t": another of these codecs, or i8 or f16, for the matrices with this name */
    const char *const *mixed;
    size_t n_mixed;
    whit_compress_method method;
    unsigned without;            /* bits of whit_compress_stage that are not used */
    float outlier_percent;       /* outliers in percent of the weights, at most 0.3; 0: as many as the codec's budget of
                                  * bits allows */
    float plane_percent;         /* columns of the sign plane in percent of the columns of a b1 matrix, at most 50; 0:
                                  * as the budget allows */
    uint32_t rank;               /* rank of the low-rank pair, at most WHIT_LOW_RANK_MAX; 0: as the budget allows */
    uint32_t group;              /* columns per scale; 0: 128 */
    bool u8_scales;              /* scales are a byte per group and an f16 factor per row, instead of f16 */
    const whit_imatrix *imatrix; /* diagonal Hessians, used instead of a text and of `method` (weighted.h); NULL: not
                                  * used */
    const char *embedding;       /* type of the embedding and the head: i8 (NULL), i4 or f16; ignored if
                                  * whit_compress_knows_form(codec), and with `like` */
    const int32_t *ids;          /* calibration text; not used by WHIT_COMPRESS_RTN or with `imatrix` */
    size_t n_ids, max_tokens;
    uint32_t n_tokens; /* tokens per window; 0: the context length, but at most 512 */
    int32_t bos;       /* id that replaces the first token of every window; -1: no replacement */
    uint32_t n_threads;
    const char *work;          /* path of the work file; NULL: `path` followed by ".work" */
    bool keep_work;            /* the work file is kept after success, because the caller still needs it and removes
                                * it */
    bool resume;               /* resume an interrupted run from its work file */
    const char *command;       /* command line, for the file's metadata */
    const whit_sketch *sketch; /* sketch of the calibration text, for the file's metadata; NULL: not written */
    /* Processes that share the calibration text; rank 0 writes the files. NULL: only this process, which adds the sums
     * in another order than several ranks. */
    const whit_ranks *ranks;
    _Atomic uint64_t *multiply_adds; /* counter that dense products add to; NULL: not counted */
    whit_progress_fn *progress;
    void (*report)(void *user, const whit_compress_report *report);
    /* receives the text about a budget's choice: a summary, then one line per matrix; NULL: not called */
    void (*chosen)(void *user, const char *text);
    void *user;
} whit_compress_options;

/* Compresses `source` and writes the result to `path`, which is replaced only when the result is complete. In a run
 * with a calibration text, the work file contains the finished layers until then, so that an interrupted run can be
 * resumed with the same options and `resume`. The resumed run writes the same bytes as an uninterrupted one. */
whit_status whit_compress(const whit_source *source, const whit_compress_options *options, const char *path,
                          const whit_allocator *allocator, whit_error *error);

#endif
