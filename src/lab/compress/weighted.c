/* SPDX-License-Identifier: MIT */
#include "compress/weighted.h"

#include "compress/codebook.h"
#include "compress/levels.h"
#include "compress/stream.h"
#include "model/import_gguf.h"

#include <math.h>
#include <stdio.h>

struct job {
    const whit_source *source;
    const whit_source_tensor *tensor;
    const whit_tensor_type *type;
    const float *weights; /* (n) weight of each column */
    whit_geometry g;
    uint32_t shared;    /* number of groups that share factors; 0: there are no factors */
    int8_t *codes;      /* (m, n) */
    float *fields;      /* (m, row_fields) */
    uint8_t *fields_u8; /* (m, row_bytes); NULL if scales are not bytes */
    float *scratch;     /* for each worker: a row, its scales and factors */
    size_t scratch_elems;
    double *sums;   /* (m, 2) weighted squared error, and weighted squares of the original */
    uint32_t first; /* first row of the piece that is being rounded */
};

#define PIECE_WEIGHTS (1u << 20) /* weights per worker in a piece, which takes a fraction of a second */

/* Fits the stored scales (n_groups, 2) of a row, and the factors (n_shares, 2) that its groups share. */
static void fit_row(const struct job *job, const float *w, float *scales, float *factors)
{
    const whit_tensor_type *type = job->type;
    uint32_t n_groups = job->g.n_groups, shared = job->shared;
    for (int pass = shared ? 0 : 1; pass < 2; pass++) {
        for (uint32_t group = 0; group < n_groups; group++) {
            size_t from = (size_t)group * job->g.group_cols, rest = type->n_cols - from;
            float *shared_factors = shared && pass ? factors + group / shared * 2 : NULL;
            whit_levels_fit(type, w + from, job->weights + from, rest < job->g.group_cols ? rest : job->g.group_cols,
                            shared_factors, scales + (size_t)2 * group);
        }
        for (uint32_t group = 0; !pass && group < n_groups; group += shared)
            whit_levels_factors(type, scales + (size_t)2 * group, n_groups - group < shared ? n_groups - group : shared,
                                factors + group / shared * 2);
    }
}

static void round_values(const struct job *job, uint32_t row, const float *w, float *scales)
{
    const whit_tensor_type *type = job->type;
    uint32_t n_fields = job->g.n_fields, n_groups = job->g.n_groups, shared = job->shared;
    float *factors = scales + (size_t)2 * n_groups, *fields = job->fields + (size_t)row * job->g.row_fields;
    const bool by_eights = whit_codec_find(type->codec)->grid != NULL;
    uint8_t eight[WHIT_CODEBOOK_COLS] = {0};
    fit_row(job, w, scales, factors);
    for (uint32_t group = 0; shared && group < n_groups; group += shared)
        for (uint32_t f = 0; f < n_fields; f++) fields[group / shared * n_fields + f] = factors[group / shared * 2 + f];
    for (uint32_t group = 0; group < n_groups; group++) {
        const float *stored = scales + (size_t)2 * group;
        size_t from = (size_t)group * job->g.group_cols;
        whit_levels levels = whit_levels_at(type, stored);
        if (job->fields_u8)
            whit_levels_write(type, stored, shared ? factors + group / shared * 2 : NULL,
                              job->fields_u8 + (size_t)row * job->g.row_bytes +
                                  (size_t)group * (job->g.row_bytes / n_groups));
        for (uint32_t f = 0; !job->fields_u8 && f < n_fields; f++) fields[group * n_fields + f] = stored[f];
        for (size_t j = from; j < type->n_cols && j < from + job->g.group_cols; j++) {
            size_t place = (j - from) % WHIT_CODEBOOK_COLS;
            if (by_eights && place == 0)
                whit_codebook_round((whit_codec)type->codec, &levels, w + j, job->weights + j, stored[0], eight);
            uint32_t level = by_eights ? eight[place] : whit_levels_nearest(&levels, w[j]);
            double miss = (double)(w[j] - levels.value[level]), weight = (double)job->weights[j];
            job->codes[(size_t)row * type->n_cols + j] = levels.code[level];
            job->sums[2 * (size_t)row] += weight * miss * miss;
            job->sums[2 * (size_t)row + 1] += weight * (double)w[j] * (double)w[j];
        }
    }
}

static whit_status round_row(void *context, uint32_t worker, uint32_t item, whit_error *error)
{
    const struct job *job = context;
    const uint32_t row = job->first + item;
    size_t n = job->type->n_cols;
    float *w = job->scratch + worker * job->scratch_elems;
    WHIT_TRY(whit_stream_read_row(job->tensor, row, w, job->source->allocator, error));
    for (size_t j = 0; j < n; j++)
        if (!isfinite(w[j]))
            return whit_fail(error, WHIT_ERROR_NUMERIC,
                             "%s: tensor '%s': row %u, column %zu is not a number; the source is damaged",
                             job->source->path, job->tensor->name, row, j);
    round_values(job, row, w, w + n);
    return WHIT_OK;
}

/* Rounds the rows in pieces and reports the progress after each, because a wide matrix takes seconds. */
static whit_status round_rows(struct job *job, const whit_within *within, whit_pool *pool, whit_error *error)
{
    const uint32_t n_rows = job->type->n_rows, piece = whit_pool_size(pool) * (PIECE_WEIGHTS / job->type->n_cols + 16);
    for (job->first = 0; job->first < n_rows; job->first += piece) {
        const uint32_t n = n_rows - job->first < piece ? n_rows - job->first : piece;
        WHIT_TRY(whit_pool_try(pool, round_row, job, n, 16, error));
        if (!whit_within_tell(within, (double)(job->first + n) / n_rows))
            return whit_fail(error, WHIT_ERROR_CANCELLED, "%s: rounding was cancelled", job->source->path);
    }
    return WHIT_OK;
}

whit_status whit_weighted_round(whit_finished *finished, const whit_source *source, const whit_source_tensor *tensor,
                                const whit_tensor_type *type, const float *weights, const whit_within *within,
                                whit_pool *pool, double *error_share, whit_error *error)
{
    const whit_allocator *a = source->allocator;
    struct job job = {
        .source = source, .tensor = tensor, .type = type, .weights = weights, .g = whit_codec_geometry(type)};
    job.shared = whit_levels_shared_groups(type);
    size_t m = type->n_rows, elems = m * type->n_cols, n_fields = m * job.g.row_fields, n_bytes = m * job.g.row_bytes,
           n_workers = whit_pool_size(pool);
    job.scratch_elems = type->n_cols + 4 * (size_t)job.g.n_groups;
    float *ones = weights ? NULL : whit_zalloc_array(a, type->n_cols, sizeof *ones);
    if (ones) job.weights = ones;
    for (size_t j = 0; ones && j < type->n_cols; j++) ones[j] = 1;
    job.codes = whit_zalloc_array(a, elems, 1);
    job.fields = whit_zalloc_array(a, n_fields, sizeof(float));
    if (n_bytes) job.fields_u8 = whit_zalloc_array(a, n_bytes, 1);
    job.scratch = whit_zalloc_array(a, n_workers * job.scratch_elems, sizeof(float));
    job.sums = whit_zalloc_array(a, 2 * m, sizeof(double));
    whit_status status = WHIT_OK;
    if (!job.codes || !job.fields || (n_bytes && !job.fields_u8) || !job.scratch || !job.sums || !job.weights)
        status = whit_fail_memory(error, tensor->name, elems);
    if (status == WHIT_OK) status = round_rows(&job, within, pool, error);
    if (status == WHIT_OK && tensor->drop) tensor->drop(tensor);
    double sums[2] = {0};
    for (size_t row = 0; status == WHIT_OK && row < m; row++)
        for (int i = 0; i < 2; i++) sums[i] += job.sums[2 * row + i];
    *error_share = sums[1] > 0 ? sums[0] / sums[1] : 0;
    if (status == WHIT_OK)
        status = whit_finished_make(finished, tensor->name, type,
                                    &(whit_rows){.elems = job.codes, .fields = job.fields, .fields_u8 = job.fields_u8},
                                    NULL, a, error);
    whit_free(a, job.codes, elems);
    whit_free(a, job.fields, n_fields * sizeof(float));
    whit_free(a, job.fields_u8, n_bytes);
    whit_free(a, job.scratch, n_workers * job.scratch_elems * sizeof(float));
    whit_free(a, job.sums, 2 * m * sizeof(double));
    whit_free(a, ones, type->n_cols * sizeof *ones);
    return status;
}

whit_status whit_weighted_means(const whit_imatrix *imatrix, const whit_source_tensor *tensor, float *means,
                                whit_error *error)
{
    char name[96];
    bool rotary;
    const whit_imatrix_entry *entry = NULL;
    if (whit_gguf_tensor_name(tensor->name, name, &rotary)) entry = whit_imatrix_find(imatrix, name);
    if (!entry)
        return whit_fail(
            error, WHIT_ERROR_FORMAT,
            "%s: has no entry for tensor '%s': it belongs to another model, or its text never reached this matrix",
            imatrix->path, tensor->name);
    return whit_imatrix_means(imatrix, entry, tensor->type.n_cols, means, error);
}

whit_status whit_weighted_check(const whit_imatrix *imatrix, const whit_source *source, whit_error *error)
{
    for (size_t i = 0; i < imatrix->n; i++) {
        const whit_imatrix_entry *entry = &imatrix->entries[i];
        char name[32];
        unsigned layer;
        snprintf(name, sizeof name, "%.*s", entry->name_bytes < 31 ? (int)entry->name_bytes : 31, entry->name);
        if (sscanf(name, "blk.%9u.", &layer) == 1 && layer >= source->config.n_layers)
            return whit_fail(error, WHIT_ERROR_FORMAT,
                             "%s: has layer %u, but the model has %u layers: it belongs to another model",
                             imatrix->path, layer, source->config.n_layers);
    }
    return WHIT_OK;
}
