/* SPDX-License-Identifier: MIT
 * Merges adapters into a model. The model is read as a source (source.h), in which changed tensors have a reader that
 * adds the adapters. */
#include "model/merge.h"

#include "quant/requantise.h"

#include <math.h>

/* Describes what one adapter adds to a matrix. */
struct term {
    const whit_adapter_pair *pair;
    float *a; /* factor A (rank, n_cols), multiplied by the strength */
};

/* Describes a matrix that adapters change. */
struct merged {
    const whit_tensor *tensor;
    whit_tensor_type type; /* type of the matrix in the new file */
    struct term *terms;
    size_t n_terms;
    double *lost, *kept; /* (n_rows) per row: sum of squares of the rounding errors, sum of squares of the exact
                          * values */
    const whit_allocator *allocator;
};

struct job {
    const whit_weights *weights;
    const whit_merge_adapter *adapters;
    size_t n_adapters;
    const whit_merge_options *options;
    struct merged *merged; /* (n_tensors) changes by tensor; n_terms 0: the tensor does not change */
    whit_error *error;
};

/* ---- one row -------------------------------------------------------------------------------- */

/* Adds row `row` of the product B A to `values`, in double precision. */
static void add_term(const struct term *term, uint32_t row, uint32_t n, int8_t *codes, double *values)
{
    uint32_t rank = term->pair->b.type.n_cols;
    float scale;
    whit_codec_unpack(&term->pair->b, row, 1, &(whit_rows){.elems = codes, .fields = &scale});
    for (uint32_t j = 0; j < rank; j++) {
        double factor = (double)codes[j] * (double)scale;
        const float *a = term->a + (size_t)j * n;
        for (uint32_t k = 0; k < n; k++) values[k] += factor * (double)a[k];
    }
}

static whit_status read_row(const whit_source_tensor *source, uint32_t row, const whit_rows *rows, whit_error *error)
{
    const struct merged *m = source->context;
    uint32_t n = m->type.n_cols;
    size_t bytes = n * (sizeof(double) + sizeof(float)) + WHIT_ADAPTER_MAX_RANK;
    double *exact = whit_alloc(m->allocator, bytes);
    if (!exact) return whit_fail_memory(error, "a row of a matrix", bytes);
    float *values = (float *)(exact + n);
    int8_t *codes = (int8_t *)(values + n);
    int32_t id = (int32_t)row;
    whit_codec_get_rows(m->tensor, &id, 1, values, n);
    for (uint32_t k = 0; k < n; k++) exact[k] = (double)values[k];
    for (size_t i = 0; i < m->n_terms; i++) add_term(&m->terms[i], row, n, codes, exact);
    for (uint32_t k = 0; k < n; k++) values[k] = (float)exact[k];
    whit_requantise_row(&m->type, values, rows);
    whit_requantise_values(&m->type, rows, values);
    m->lost[row] = m->kept[row] = 0;
    for (uint32_t k = 0; k < n; k++) {
        double difference = (double)values[k] - exact[k];
        m->lost[row] += difference * difference;
        m->kept[row] += exact[k] * exact[k];
    }
    whit_free(m->allocator, exact, bytes);
    if (isfinite(m->lost[row])) return WHIT_OK;
    /* The sum, or its rounded form, is not finite: the largest f16, of a weight or of a scale, is 65,504. */
    return whit_fail(error, WHIT_ERROR_NUMERIC,
                     "tensor '%s': row %u: the sum is too large for %s; choose another codec, or a smaller strength",
                     source->name, row, whit_codec_find(m->type.codec)->name);
}

/* ---- choice of matrices and codecs ---------------------------------------------------------- */

/* Sets the type that a changed matrix gets in the new file. */
static whit_status choose_type(const struct job *job, const char *name, struct merged *m)
{
    const whit_tensor_type *type = &m->tensor->type;
    const whit_codec_info *codec = whit_codec_find(type->codec);
    uint8_t wanted = type->codec;
    if (job->options->codec) {
        if (!whit_codec_parse(job->options->codec, &wanted) || wanted > WHIT_CODEC_I4)
            return whit_fail(job->error, WHIT_ERROR_ARGUMENT, "codec '%s' is unknown: choose one of f32 f16 bf16 i8 i4",
                             job->options->codec);
    } else if (!codec->is_float && type->codec != WHIT_CODEC_I8) {
        return whit_fail(job->error, WHIT_ERROR_UNSUPPORTED,
                         "matrix '%s' is %s, which cannot store the sum; choose a codec for the changed matrices "
                         "(--codec i8, say), or "
                         "mount the adapter instead",
                         name, codec->name);
    }
    m->type = whit_requantise_type(wanted, type->n_rows, type->n_cols);
    if (!whit_codec_find(wanted)->is_float) m->type.act = type->act;
    if (m->type.act == WHIT_TENSOR_ACT_FIXED) {
        if (m->type.scale_kind != WHIT_SCALE_ROW)
            return whit_fail(job->error, WHIT_ERROR_UNSUPPORTED,
                             "matrix '%s' has fixed scales of its inputs and outputs, which %s cannot store; choose i8 "
                             "or a float codec",
                             name, whit_codec_find(wanted)->name);
        m->type.scale = type->scale;
        m->type.scale_b = type->scale_b;
    }
    return whit_tensor_type_check(&m->type, job->error);
}

/* Unpacks factor A as floats and multiplies it by the strength. */
static whit_status unpack_a(const struct job *job, const whit_merge_adapter *adapter, struct term *term)
{
    const whit_tensor_type *a = &term->pair->a.type;
    size_t n = (size_t)a->n_rows * a->n_cols;
    term->a = whit_zalloc_array(job->weights->allocator, n, sizeof *term->a);
    if (!term->a) return whit_fail_memory(job->error, "an adapter", n * sizeof *term->a);
    for (int32_t j = 0; j < (int32_t)a->n_rows; j++)
        whit_codec_get_rows(&term->pair->a, &j, 1, term->a + (size_t)j * a->n_cols, a->n_cols);
    for (size_t i = 0; i < n; i++) term->a[i] *= adapter->strength;
    return WHIT_OK;
}

static whit_status prepare_tensor(const struct job *job, uint32_t i)
{
    struct merged *m = &job->merged[i];
    const whit_allocator *a = job->weights->allocator;
    const char *name = whit_ndf_tensor_name(job->weights->file, i);
    m->tensor = &job->weights->tensors[i];
    m->allocator = a;
    size_t n = 0;
    for (size_t k = 0; k < job->n_adapters; k++)
        n += job->adapters[k].strength != 0 && job->adapters[k].weights->of_tensor[i] != NULL;
    if (!n) return WHIT_OK;
    WHIT_TRY(choose_type(job, name, m));
    uint32_t n_rows = m->type.n_rows;
    m->terms = whit_zalloc_array(a, n, sizeof *m->terms);
    m->lost = whit_zalloc_array(a, n_rows, sizeof *m->lost);
    m->kept = whit_zalloc_array(a, n_rows, sizeof *m->kept);
    m->n_terms = n;
    if (!m->terms || !m->lost || !m->kept) return whit_fail_memory(job->error, name, n_rows * sizeof *m->lost);
    for (size_t k = 0, at = 0; k < job->n_adapters; k++) {
        const whit_adapter_pair *pair = job->adapters[k].weights->of_tensor[i];
        if (job->adapters[k].strength == 0 || !pair) continue;
        m->terms[at].pair = pair;
        WHIT_TRY(unpack_a(job, &job->adapters[k], &m->terms[at++]));
    }
    return WHIT_OK;
}

static void free_merged(const struct job *job, struct merged *m)
{
    const whit_allocator *a = job->weights->allocator;
    for (size_t i = 0; m->terms && i < m->n_terms; i++)
        if (m->terms[i].a)
            whit_free(a, m->terms[i].a, (size_t)m->terms[i].pair->a.type.n_rows * m->type.n_cols * sizeof(float));
    whit_free(a, m->terms, m->n_terms * sizeof *m->terms);
    whit_free(a, m->lost, m->type.n_rows * sizeof *m->lost);
    whit_free(a, m->kept, m->type.n_rows * sizeof *m->kept);
}

/* ---- merging the model ---------------------------------------------------------------------- */

static void redirect(const struct job *job, whit_source *source)
{
    for (uint32_t i = 0; i < source->n_tensors; i++) {
        int64_t index = whit_ndf_find(job->weights->file, source->tensors[i].name);
        if (index < 0 || !job->merged[index].n_terms) continue;
        source->tensors[i].type = job->merged[index].type;
        source->tensors[i].read_row = read_row;
        source->tensors[i].drop = NULL;
        source->tensors[i].context = &job->merged[index];
    }
}

static void report_progress(const struct job *job)
{
    for (uint32_t i = 0; job->options->report && i < job->weights->n_tensors; i++) {
        const struct merged *m = &job->merged[i];
        double lost = 0, kept = 0;
        if (!m->n_terms) continue;
        for (uint32_t row = 0; row < m->type.n_rows; row++) lost += m->lost[row], kept += m->kept[row];
        job->options->report(job->options->user,
                             &(whit_merge_report){.name = whit_ndf_tensor_name(job->weights->file, i),
                                                  .from = &m->tensor->type,
                                                  .to = &m->type,
                                                  .error = kept > 0 ? sqrt(lost / kept) : 0});
    }
}

whit_status whit_merge(const whit_weights *weights, const char *path, const whit_merge_adapter *adapters,
                       size_t n_adapters, const whit_merge_options *options, whit_ndf_writer *writer, whit_error *error)
{
    struct job job = {
        .weights = weights, .adapters = adapters, .n_adapters = n_adapters, .options = options, .error = error};
    whit_source source = {0};
    size_t bytes = weights->n_tensors * sizeof *job.merged;
    job.merged = whit_zalloc(weights->allocator, bytes);
    if (!job.merged) return whit_fail_memory(error, "the merge", bytes);
    whit_status status = WHIT_OK;
    for (uint32_t i = 0; status == WHIT_OK && i < weights->n_tensors; i++) status = prepare_tensor(&job, i);
    if (status == WHIT_OK) status = whit_source_open(path, weights->allocator, &source, error);
    if (status == WHIT_OK) {
        whit_convert_options convert = {.command = options->command,
                                        .n_threads = options->n_threads,
                                        .progress = options->progress,
                                        .user = options->user};
        redirect(&job, &source);
        status = whit_convert(&source, &convert, writer, error);
        whit_source_close(&source);
    }
    if (status == WHIT_OK) report_progress(&job);
    for (uint32_t i = 0; i < weights->n_tensors; i++) free_merged(&job, &job.merged[i]);
    whit_free(weights->allocator, job.merged, bytes);
    return status;
}
