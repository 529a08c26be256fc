/* SPDX-License-Identifier: MIT
 * Compression: the matrices of a model's layers rounded to signs, trits or four levels, without training it,
 * so that its outputs over a calibration text change little (docs/compression.md).
 *
 * The source is read layer by layer; the finished matrices wait in their codecs until the file is written. */
#ifndef WHIT_COMPRESS_COMPRESS_H
#define WHIT_COMPRESS_COMPRESS_H

#include "format/imatrix.h"
#include "model/source.h"

typedef enum whit_compress_method {
    WHIT_COMPRESS_RTN,  /* nearest levels, fitted to the weights alone */
    WHIT_COMPRESS_GPTQ, /* error feedback under the Hessian */
    WHIT_COMPRESS_FULL, /* and every stage */
} whit_compress_method;

/* Stages of the full method, which `without` leaves out. */
typedef enum whit_compress_stage {
    WHIT_STAGE_QEP = 1 << 0,      /* targets corrected for the inputs' errors */
    WHIT_STAGE_RESIDUAL = 1 << 1, /* and for the residual stream's */
    WHIT_STAGE_ORDER = 1 << 2,    /* groups by their inputs' energy */
    WHIT_STAGE_DESCENT = 1 << 3,  /* single codes, and scales under the Hessian */
    /* Parts beside the codes, where the budget of the codec has room: */
    WHIT_STAGE_OUTLIERS = 1 << 4, /* single weights */
    WHIT_STAGE_PLANE = 1 << 5,    /* a second sign plane on the columns that need it */
    WHIT_STAGE_LOW_RANK = 1 << 6, /* a pair of int8 factors, of matrices that are large enough */
    WHIT_STAGE_ROTATION = 1 << 7, /* values of attention turned within their heads, where the layer loses less */
} whit_compress_stage;

/* "qep" to WHIT_STAGE_QEP; 0 for an unknown name. */
unsigned whit_compress_stage_named(const char *name);

typedef struct whit_compress_report {
    const char *name; /* of a matrix */
    const whit_tensor_type *type;
    uint32_t layer, n_layers;
    double error_gptq, error; /* of the outputs on the calibration text, relative: before and after descent */
    uint32_t sweeps;
    uint64_t n_outliers;
    bool rotated;        /* of v and o: their variant within a rotation was kept */
    uint64_t bytes;      /* of the tensor, corrections included; 0: those of its type */
    uint64_t elapsed_ns; /* of the whole run so far */
} whit_compress_report;

typedef struct whit_compress_options {
    const char *codec;        /* "b1", "t" or "q2" */
    const char *const *mixed; /* "down=t": another codec, or i8 or f16, for the matrices of that name */
    size_t n_mixed;
    whit_compress_method method;
    unsigned without;            /* stages */
    float outlier_percent;       /* of the weights, 0.3 at most; 0: what the codec's budget has room for */
    float plane_percent;         /* of the columns of b1, 50 at most; 0 again */
    uint32_t rank;               /* of the low-rank pair, WHIT_LOW_RANK_MAX at most; 0 again */
    uint32_t group;              /* columns per scale; 0: 128 */
    bool u8_scales;              /* a byte per group times an f16 per row, rather than f16 */
    const whit_imatrix *imatrix; /* in place of a text: diagonal Hessians; NULL: none */
    const char *embedding;       /* i8 (NULL), i4 or f16: embedding and head */
    const int32_t *ids;          /* the calibration text; not for RTN */
    size_t n_ids, max_tokens;
    uint32_t n_tokens; /* of a window; 0: the context, 512 at most */
    int32_t bos;       /* begins every window; -1: none does */
    uint64_t seed;
    uint32_t n_threads;
    const char *work;                /* the work file; NULL: PATH.work */
    bool keep_work;                  /* the caller removes it: there is more to do */
    bool resume;                     /* go on from the work file of a run that was cut */
    const char *command;             /* provenance */
    _Atomic uint64_t *multiply_adds; /* of the dense products is added to; NULL: not counted */
    whit_progress_fn *progress;
    void (*report)(void *user, const whit_compress_report *report);
    void *user;
} whit_compress_options;

/* Writes `path`, which is replaced when all is there. Finished layers lie in the work file until then, so that a run
 * that was cut, however it was, goes on with the same options and `resume` and ends in the same bytes. */
whit_status whit_compress(const whit_source *source, const whit_compress_options *options, const char *path,
                          const whit_allocator *allocator, whit_error *error);

#endif
