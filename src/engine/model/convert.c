/* SPDX-License-Identifier: MIT */
#include "model/convert.h"

#include "base/half.h"
#include "base/items.h"
#include "base/threads.h"
#include "model/draft_block.h"
#include "model/families.h"
#include "model/rope_scaling.h"
#include "quant/requantise.h"

#include <math.h>
#include <stdio.h>

/* Number of bytes of codes (one byte each) or floats that are packed at a time. Writes of this length are long enough
 * that threads rarely wait for each other. */
#define CHUNK_BYTES ((size_t)4 << 20)
/* Mapped pages of the source count as this process's memory until they are dropped, which happens after this many
 * weights. */
#define DROP_ELEMS ((uint64_t)64 << 20)

static const char *or_null(const char *text)
{
    return text && *text ? text : NULL;
}

whit_status whit_convert_options_check(const whit_convert_options *options, whit_error *error)
{
    uint8_t codec;
    const char *ternary = or_null(options->ternary), *embd = or_null(options->embd), *head = or_null(options->head);
    if (ternary && strcmp(ternary, "t2") != 0 && strcmp(ternary, "t5") != 0 && strcmp(ternary, "q2") != 0)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "ternary codec '%s' is unknown: choose t2, t5 or q2", ternary);
    if (embd && (!whit_codec_parse(embd, &codec) || codec > WHIT_CODEC_I4))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "embedding codec '%s' is unknown: choose one of f32 f16 bf16 i8 i4", embd);
    if (head && (!whit_codec_parse(head, &codec) || (codec > WHIT_CODEC_I4 && codec != WHIT_CODEC_I8S)))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "head codec '%s' is unknown: choose one of f32 f16 bf16 i8 i4 i8s",
                         head);
    return WHIT_OK;
}

/* ---- order of tensors ----------------------------------------------------------------------- */

struct job {
    const whit_source *source;
    const whit_convert_options *options;
    whit_ndf_writer *writer;
    whit_pool *pool;
    uint32_t *order; /* indices of source tensors, in the order in which a pass reads them */
    uint32_t n;
    whit_tensor_type *types;      /* type in the output file, by index in `order` */
    whit_convert_change *changes; /* change of the tensor, by index in `order`; all zero if it does not change */
    uint32_t *declared;
    uint64_t done_elems, all_elems;
    whit_error *error;
};

static void order_tensor(struct job *job, int32_t index)
{
    if (index < 0) return;
    for (uint32_t i = 0; i < job->n; i++)
        if (job->order[i] == (uint32_t)index) return;
    job->order[job->n++] = (uint32_t)index;
}

static void take_tensor(void *context, int32_t index)
{
    order_tensor(context, index);
}

static whit_status take_divisors(void *context, const char *name, uint32_t n, whit_error *error)
{
    struct job *job = context;
    const whit_source_tensor *divisors = whit_source_find(job->source, name);
    (void)n;
    (void)error;
    if (divisors) order_tensor(job, (int32_t)(divisors - job->source->tensors));
    return WHIT_OK;
}

/* Finds the order in which the graph reads the tensors: stored in this order, a pass reads the file sequentially. */
static whit_status find_order(struct job *job)
{
    const whit_source *source = job->source;
    whit_graph graph;
    whit_graph_begin(&graph, source->allocator, whit_source_resolver(source), job->error);
    whit_status status = whit_family_build(&source->config, &graph);
    for (uint32_t i = 0; status == WHIT_OK && i < graph.n_nodes; i++) {
        order_tensor(job, graph.nodes[i].weight);
        order_tensor(job, graph.nodes[i].bias);
    }
    const whit_resolver resolver = whit_source_resolver(source);
    if (status == WHIT_OK)
        status = whit_draft_block_visit(&source->config, &resolver, take_tensor, job, source->allocator, job->error);
    if (status == WHIT_OK) status = whit_rope_visit(&source->config, take_divisors, job, job->error);
    whit_graph_free(&graph);
    return status;
}

/* ---- buffers of rows ------------------------------------------------------------------------ */

struct rows_buffer {
    whit_rows rows;
    size_t elem_bytes, n_fields, n_fields_u8; /* number of elements of one row: bytes of codes or floats, f32 fields, u8
                                               * fields */
};

static whit_rows row_at(const struct rows_buffer *buffer, uint32_t i)
{
    whit_rows row = {.elems = (uint8_t *)buffer->rows.elems + i * buffer->elem_bytes};
    if (buffer->rows.fields) row.fields = buffer->rows.fields + i * buffer->n_fields;
    if (buffer->rows.fields_u8) row.fields_u8 = buffer->rows.fields_u8 + i * buffer->n_fields_u8;
    return row;
}

/* Allocates buffers for n rows of a type; free_rows frees them. */
static bool make_rows(const whit_allocator *a, const whit_tensor_type *type, uint32_t n, struct rows_buffer *buffer)
{
    whit_geometry g = whit_codec_geometry(type);
    const whit_codec_info *codec = whit_codec_find(type->codec);
    bool u8 = g.row_bytes > 0;
    *buffer = (struct rows_buffer){.elem_bytes = (size_t)type->n_cols * (codec->is_float ? codec->elem_bytes : 1)};
    /* row_fields is at least 1, because readers may also return the single scale that the type already has. */
    if (!codec->is_float) buffer->n_fields = g.row_fields;
    buffer->n_fields_u8 = g.row_bytes;
    buffer->rows.elems = whit_zalloc_array(a, n, buffer->elem_bytes);
    if (buffer->n_fields) buffer->rows.fields = whit_zalloc_array(a, n, buffer->n_fields * sizeof(float));
    if (u8) buffer->rows.fields_u8 = whit_zalloc_array(a, n, buffer->n_fields_u8);
    return buffer->rows.elems && (!buffer->n_fields || buffer->rows.fields) && (!u8 || buffer->rows.fields_u8);
}

static void free_rows(const whit_allocator *a, uint32_t n, struct rows_buffer *buffer)
{
    whit_free(a, buffer->rows.elems, n * buffer->elem_bytes);
    whit_free(a, buffer->rows.fields, n * buffer->n_fields * sizeof(float));
    whit_free(a, buffer->rows.fields_u8, n * buffer->n_fields_u8);
}

/* ---- types in the output file --------------------------------------------------------------- */

static bool is_ternary(uint8_t codec)
{
    return codec == WHIT_CODEC_T5 || codec == WHIT_CODEC_T2;
}

/* Sets *out to the q2 type that stores ternary codes as two planes of signs with a = b = half the scale: +1 is (1, 1),
 * -1 is (0, 0), 0 is (1, 0). Returns false if some codes or scales cannot be represented. */
static bool planes_type(const whit_source_tensor *tensor, const whit_allocator *a, whit_tensor_type *out)
{
    whit_tensor_type type = tensor->type;
    struct rows_buffer row;
    if (!is_ternary(type.codec) || type.has_offset) return false;
    type.codec = WHIT_CODEC_Q2;
    if (type.scale_kind == WHIT_SCALE_TENSOR) {
        type.scale *= 0.5f;
        type.scale_b = type.scale;
    }
    if (whit_tensor_type_check(&type, NULL) != WHIT_OK) return false;
    /* t2 may contain the code 2, and half of an f16 scale may underflow, so all rows are checked. */
    bool fits = make_rows(a, &tensor->type, 1, &row);
    /* number of scales per row */
    uint32_t n_scales = type.scale_type == WHIT_SCALE_U8 ? 1 : whit_codec_geometry(&type).n_groups;
    for (uint32_t r = 0; fits && r < type.n_rows; r++) {
        const int8_t *codes = row.rows.elems;
        fits = tensor->read_row(tensor, r, &row.rows, NULL) == WHIT_OK;
        for (uint32_t k = 0; fits && k < type.n_cols; k++) fits = codes[k] <= 1;
        for (uint32_t k = 0; fits && type.scale_kind != WHIT_SCALE_TENSOR && k < n_scales; k++) {
            float half = row.rows.fields[k] * 0.5f;
            fits = type.scale_type == WHIT_SCALE_F32 || whit_f32_from_f16(whit_f16_from_f32(half)) == half;
        }
    }
    free_rows(a, 1, &row);
    if (tensor->drop) tensor->drop(tensor);
    if (fits) *out = type;
    return fits;
}

static whit_tensor_type target_type(const struct job *job, const whit_source_tensor *tensor)
{
    whit_tensor_type type = tensor->type;
    const whit_config *config = &job->source->config;
    bool head = strcmp(tensor->name, config->tied_head ? "embed" : "head") == 0,
         embd = strcmp(tensor->name, "embed") == 0;
    const char *lossy = NULL;
    uint8_t codec;
    if (embd) lossy = or_null(job->options->embd);
    if (head && or_null(job->options->head)) lossy = job->options->head;
    if (lossy && whit_codec_parse(lossy, &codec)) return whit_requantise_type(codec, type.n_rows, type.n_cols);
    const char *ternary = or_null(job->options->ternary);
    if (ternary && strcmp(ternary, "q2") == 0 && planes_type(tensor, job->source->allocator, &type)) return type;
    if (type.codec == WHIT_CODEC_T5) {
        bool t2 = or_null(job->options->ternary) && strcmp(job->options->ternary, "t2") == 0;
        if (t2 || whit_tensor_type_check(&type, NULL) != WHIT_OK) type.codec = WHIT_CODEC_T2;
    } else if (type.codec == WHIT_CODEC_T2 && or_null(job->options->ternary) &&
               strcmp(job->options->ternary, "t5") == 0) {
        return type; /* keep t2, because t5 cannot store codes of 2 */
    }
    return type;
}

/* ---- converting one tensor ------------------------------------------------------------------- */

/* A tensor is converted in chunks of rows. In each round the threads share a loop over items: the slices of one chunk,
 * which are read and packed, and the digest and the writing of the previous chunk. The written bytes do not depend on
 * how the items are shared. */
enum { ITEM_DIGEST, ITEM_WRITE, ITEM_SLICES, MAX_SLICES = 32 };

struct chunk {
    /* the chunk as a tensor of its own, which is valid because a tile depends only on its own rows */
    whit_tensor tensor;
    uint32_t begin, n; /* rows [begin, begin + n) of the tensor; n 0: empty chunk */
    uint8_t *part[WHIT_PART_COUNT];
    uint8_t *canonical;
};

/* Holds the buffers of a worker that decodes row by row, for conversions that change codes or values. */
struct lossy_scratch {
    struct rows_buffer row;
    float *values;
};

struct tensor_job {
    struct job *job;
    const whit_source_tensor *from;
    whit_tensor_type to;
    uint32_t declared;
    bool lossy;
    bool planes;           /* ternary codes are converted to two planes of signs */
    bool rows_are_content; /* the target stores floats: rows are read directly into the chunk's canonical form */
    uint32_t chunk_rows, slice_rows;
    uint64_t part_bytes[WHIT_PART_COUNT]; /* allocated bytes of a chunk's parts */
    size_t canonical_row_bytes;
    struct rows_buffer rows; /* (chunk_rows) rows of the target type; if rows_are_content, without buffers for
                              * elements */
    struct chunk chunks[2], *now, *before;
    struct lossy_scratch *scratch; /* (workers) scratch of each worker; NULL unless `lossy` or `planes` */
    whit_hash digest;
    whit_buf later[WHIT_PART_COUNT]; /* buffers of the parts that follow the codes in the file */
};

static void free_tensor_job(const whit_allocator *a, struct tensor_job *t)
{
    uint32_t n_workers = whit_pool_size(t->job->pool);
    free_rows(a, t->chunk_rows, &t->rows);
    for (uint32_t w = 0; t->scratch && w < n_workers; w++) {
        free_rows(a, 1, &t->scratch[w].row);
        whit_free(a, t->scratch[w].values, t->to.n_cols * sizeof(float));
    }
    whit_free(a, t->scratch, n_workers * sizeof *t->scratch);
    for (int c = 0; c < 2; c++) {
        for (int p = 0; p < WHIT_PART_COUNT; p++) whit_free(a, t->chunks[c].part[p], t->part_bytes[p]);
        whit_free(a, t->chunks[c].canonical, t->canonical_row_bytes * t->chunk_rows);
    }
    for (int p = 0; p < WHIT_PART_COUNT; p++) whit_buf_free(&t->later[p]);
    whit_free(a, t, sizeof *t);
}

static bool chunk_type(const whit_tensor_type *to, uint32_t n, whit_tensor *chunk)
{
    chunk->type = *to;
    chunk->type.n_rows = n;
    for (int p = 0; p < WHIT_PART_COUNT; p++)
        if (!whit_codec_part_bytes(&chunk->type, (whit_part)p, &chunk->part_bytes[p])) return false;
    return true;
}

static bool make_buffers(const whit_allocator *a, struct tensor_job *t)
{
    whit_tensor largest = {0};
    uint32_t n_workers = whit_pool_size(t->job->pool);
    bool ok = chunk_type(&t->to, t->chunk_rows, &largest);
    memcpy(t->part_bytes, largest.part_bytes, sizeof t->part_bytes);
    for (int p = 0; p < WHIT_PART_COUNT; p++) t->later[p].allocator = a;
    if (t->rows_are_content)
        t->rows.elem_bytes = t->canonical_row_bytes;
    else
        ok = ok && make_rows(a, &t->to, t->chunk_rows, &t->rows);
    for (int c = 0; ok && c < 2; c++) {
        ok = (t->chunks[c].canonical = whit_alloc(a, t->canonical_row_bytes * t->chunk_rows)) != NULL;
        for (int p = 0; ok && p < WHIT_PART_COUNT; p++)
            if (t->part_bytes[p]) ok = (t->chunks[c].part[p] = whit_alloc(a, t->part_bytes[p])) != NULL;
    }
    if (!ok || !(t->lossy || t->planes)) return ok;
    t->scratch = whit_zalloc_array(a, n_workers, sizeof *t->scratch);
    for (uint32_t w = 0; t->scratch && ok && w < n_workers; w++) {
        ok = make_rows(a, &t->from->type, 1, &t->scratch[w].row);
        t->scratch[w].values = whit_alloc(a, t->to.n_cols * sizeof(float));
        ok = ok && t->scratch[w].values;
    }
    return ok && t->scratch;
}

static whit_status open_tensor_job(struct job *job, uint32_t i, struct tensor_job **out)
{
    const whit_allocator *a = job->source->allocator;
    struct tensor_job *t = whit_zalloc(a, sizeof *t);
    if (!t) return whit_fail_memory(job->error, "the conversion", sizeof *t);
    t->job = job;
    t->from = &job->source->tensors[job->order[i]];
    t->to = job->types[i];
    t->declared = job->declared[i];
    whit_tensor_type source_content = whit_codec_canonical_type(&t->from->type),
                     content = whit_codec_canonical_type(&t->to);
    t->planes = is_ternary(t->from->type.codec) && t->to.codec == WHIT_CODEC_Q2 && !job->changes[i].type.n_rows;
    t->lossy = !t->planes && memcmp(&source_content, &content, sizeof content) != 0;
    const whit_codec_info *codec = whit_codec_find(t->to.codec);
    t->rows_are_content = codec->is_float;
    const size_t row_bytes = (size_t)t->to.n_cols * (codec->is_float ? codec->elem_bytes : 1);
    t->chunk_rows = (uint32_t)(CHUNK_BYTES / row_bytes + 16) & ~15u;
    if (t->chunk_rows > t->to.n_rows) t->chunk_rows = t->to.n_rows;
    t->slice_rows = (t->chunk_rows / MAX_SLICES + 16) & ~15u;
    t->canonical_row_bytes = whit_codec_canonical_row_bytes(&t->to);
    whit_hash_begin(&t->digest, "whit.tensor");
    whit_hash_add(&t->digest, &content, sizeof content);
    *out = t;
    if (make_buffers(a, t)) return WHIT_OK;
    free_tensor_job(a, t);
    return whit_fail_memory(job->error, job->source->tensors[job->order[i]].name, CHUNK_BYTES);
}

/* Converts a row of ternary codes to codes of two sign planes. */
static void to_planes(const whit_tensor_type *to, const whit_rows *from, const whit_rows *row)
{
    static const int8_t planes[3] = {0, 1, 3}; /* codes for -1, 0 and 1 */
    const int8_t *codes = from->elems;
    int8_t *out = row->elems;
    for (uint32_t k = 0; k < to->n_cols; k++) out[k] = planes[codes[k] + 1];
    if (to->scale_kind == WHIT_SCALE_TENSOR) return;
    uint32_t n_groups = whit_codec_geometry(to).n_groups, n_scales = to->scale_type == WHIT_SCALE_U8 ? 1 : n_groups;
    for (uint32_t g = 0; g < n_scales; g++) row->fields[2 * g] = row->fields[2 * g + 1] = from->fields[g] * 0.5f;
    for (uint32_t g = 0; to->scale_type == WHIT_SCALE_U8 && g < n_groups; g++)
        row->fields_u8[2 * g] = row->fields_u8[2 * g + 1] = from->fields_u8[g];
}

/* Converts and packs rows [begin, begin + n) of the chunk. */
static whit_status convert_slice(struct tensor_job *t, uint32_t worker, uint32_t begin, uint32_t n, whit_error *error)
{
    struct chunk *chunk = t->now;
    struct rows_buffer buffer = t->rows;
    if (t->rows_are_content) buffer.rows.elems = chunk->canonical;
    for (uint32_t i = begin; i < begin + n; i++) {
        whit_rows row = row_at(&buffer, i);
        if (!t->lossy && !t->planes) {
            WHIT_TRY(t->from->read_row(t->from, chunk->begin + i, &row, error));
            continue;
        }
        struct lossy_scratch *scratch = &t->scratch[worker];
        WHIT_TRY(t->from->read_row(t->from, chunk->begin + i, &scratch->row.rows, error));
        if (t->planes) {
            to_planes(&t->to, &scratch->row.rows, &row);
            continue;
        }
        whit_requantise_values(&t->from->type, &scratch->row.rows, scratch->values);
        for (uint32_t k = 0; k < t->to.n_cols; k++)
            if (!isfinite(scratch->values[k]))
                return whit_fail(error, WHIT_ERROR_NUMERIC,
                                 "%s: tensor '%s': row %u, column %u is not a number; the source is damaged",
                                 t->job->source->path, t->from->name, chunk->begin + i, k);
        whit_requantise_row(&t->to, scratch->values, &row);
        if (!whit_requantise_is_finite(&t->to, &row))
            return whit_fail(
                error, WHIT_ERROR_NUMERIC,
                "%s: tensor '%s': row %u has weights too large for float16, at most 65504: choose another codec",
                t->job->source->path, t->from->name, chunk->begin + i);
    }
    whit_rows rows = row_at(&buffer, begin);
    WHIT_TRY(whit_codec_pack(&chunk->tensor.type, begin, n, &rows, chunk->part, error));
    if (t->rows_are_content) return WHIT_OK;
    whit_codec_canonical_content(&t->to, n, &rows, chunk->canonical + t->canonical_row_bytes * begin);
    return WHIT_OK;
}

static whit_status write_chunk(struct tensor_job *t, whit_error *error)
{
    const struct chunk *chunk = t->before;
    WHIT_TRY(whit_ndf_writer_add(t->job->writer, t->declared, WHIT_PART_CODES, chunk->part[WHIT_PART_CODES],
                                 chunk->tensor.part_bytes[WHIT_PART_CODES], error));
    for (int p = 1; p < WHIT_PART_COUNT; p++)
        if (!whit_buf_append(&t->later[p], chunk->part[p], chunk->tensor.part_bytes[p]))
            return whit_fail_memory(error, t->from->name, chunk->tensor.part_bytes[p]);
    return WHIT_OK;
}

static whit_status do_item(void *context, uint32_t worker, uint32_t item, whit_error *error)
{
    struct tensor_job *t = context;
    if (item >= ITEM_SLICES) {
        uint32_t row = (item - ITEM_SLICES) * t->slice_rows, left = t->now->n - row;
        return convert_slice(t, worker, row, left < t->slice_rows ? left : t->slice_rows, error);
    }
    if (!t->before->n) return WHIT_OK;
    if (item == ITEM_WRITE) return write_chunk(t, error);
    whit_hash_add(&t->digest, t->before->canonical, t->canonical_row_bytes * t->before->n);
    return WHIT_OK;
}

/* Packs the chunk of rows from `begin` on (an empty chunk after the last row) while the previous chunk is hashed and
 * written. */
static whit_status do_round(struct tensor_job *t, uint32_t begin)
{
    uint32_t left = t->to.n_rows - begin;
    struct chunk *chunk = t->before;
    t->before = t->now;
    t->now = chunk;
    chunk->begin = begin;
    chunk->n = left < t->chunk_rows ? left : t->chunk_rows;
    if (chunk->n && !chunk_type(&t->to, chunk->n, &chunk->tensor))
        return whit_fail(t->job->error, WHIT_ERROR_LIMIT, "tensor '%s' is too large: its rows exceed the address space",
                         t->from->name);
    for (int p = 0; p < WHIT_PART_COUNT; p++) chunk->tensor.part[p] = chunk->part[p];
    uint32_t n_items = ITEM_SLICES + (chunk->n + t->slice_rows - 1) / t->slice_rows;
    return whit_pool_try(t->job->pool, do_item, t, n_items, 1, t->job->error);
}

static whit_status add_finished(struct job *job, uint32_t i)
{
    const whit_tensor *tensor = job->changes[i].finished;
    whit_ndf_writer_set_digest(job->writer, job->declared[i], job->changes[i].digest);
    for (int p = 0; p < WHIT_PART_COUNT; p++)
        if (tensor->part_bytes[p])
            WHIT_TRY(whit_ndf_writer_add(job->writer, job->declared[i], (whit_part)p, tensor->part[p],
                                         tensor->part_bytes[p], job->error));
    job->done_elems += (uint64_t)tensor->type.n_rows * tensor->type.n_cols;
    return WHIT_OK;
}

static whit_status convert_tensor(struct job *job, uint32_t i)
{
    struct tensor_job *t = NULL;
    if (job->changes[i].finished) return add_finished(job, i);
    WHIT_TRY(open_tensor_job(job, i, &t));
    whit_status status = WHIT_OK;
    uint64_t undropped_elems = 0;
    t->now = &t->chunks[0];
    t->before = &t->chunks[1];
    for (uint32_t begin = 0; status == WHIT_OK; begin += t->chunk_rows) {
        bool last = begin >= t->to.n_rows;
        status = do_round(t, last ? t->to.n_rows : begin);
        if (last || status != WHIT_OK) break;
        uint64_t n_elems = (uint64_t)t->now->n * t->to.n_cols;
        job->done_elems += n_elems;
        undropped_elems += n_elems;
        if (undropped_elems >= DROP_ELEMS && t->from->drop) {
            t->from->drop(t->from);
            undropped_elems = 0;
        }
        if (job->options->progress &&
            !job->options->progress(job->options->user, "converting", (double)job->done_elems / (double)job->all_elems))
            status = whit_fail(job->error, WHIT_ERROR_CANCELLED, "%s: conversion cancelled", job->source->path);
    }
    for (int p = 1; status == WHIT_OK && p < WHIT_PART_COUNT; p++)
        if (t->later[p].size_bytes)
            status = whit_ndf_writer_add(job->writer, t->declared, (whit_part)p, t->later[p].data,
                                         t->later[p].size_bytes, job->error);
    uint8_t hash[WHIT_HASH_BYTES];
    whit_hash_end(&t->digest, hash);
    if (status == WHIT_OK) whit_ndf_writer_set_digest(job->writer, t->declared, hash);
    if (t->from->drop) t->from->drop(t->from);
    free_tensor_job(job->source->allocator, t);
    return status;
}

/* ---- converting the model ------------------------------------------------------------------- */

static whit_status declare_all(struct job *job)
{
    for (uint32_t i = 0; i < job->n; i++) {
        const whit_source_tensor *from = &job->source->tensors[job->order[i]];
        job->types[i] = target_type(job, from);
        if (job->options->change && job->options->change(job->options->user, from, &job->changes[i]))
            job->types[i] = job->changes[i].type;
        whit_error inner;
        if (whit_tensor_type_check(&job->types[i], &inner) != WHIT_OK)
            return whit_fail(job->error, WHIT_ERROR_UNSUPPORTED, "%s: tensor '%s': %s", job->source->path, from->name,
                             inner.message);
        uint64_t bytes[WHIT_PART_COUNT] = {0}, total = 0;
        for (int p = 0; p < WHIT_PART_COUNT; p++) {
            if (!whit_codec_part_bytes(&job->types[i], (whit_part)p, &bytes[p]))
                return whit_fail(job->error, WHIT_ERROR_LIMIT,
                                 "%s: tensor '%s' is too large: its parts exceed 2^64 bytes", job->source->path,
                                 from->name);
            if (job->changes[i].finished) bytes[p] = job->changes[i].finished->part_bytes[p];
            total += bytes[p];
        }
        WHIT_TRY(
            whit_ndf_writer_declare(job->writer, from->name, &job->types[i], bytes, &job->declared[i], job->error));
        job->all_elems += (uint64_t)job->types[i].n_rows * job->types[i].n_cols;
        if (job->options->report) {
            whit_convert_tensor_report report = {i, job->n, from->name, &from->type, &job->types[i], total};
            job->options->report(job->options->user, &report);
        }
    }
    return WHIT_OK;
}

static void write_tables(const struct job *job)
{
    const whit_source *source = job->source;
    whit_config_save(&source->config, whit_ndf_writer_config(job->writer));
    whit_table_builder *meta = whit_ndf_writer_meta(job->writer);
    whit_table_set_string(meta, "whit.version", whit_version());
    whit_table_set_string(meta, "whit.convert_version", WHIT_CONVERT_VERSION);
    whit_table_set_string(meta, "whit.source", source->path);
    if (job->options->command) whit_table_set_string(meta, "whit.command", job->options->command);
    if (source->notes.size_bytes)
        whit_table_set_string_n(meta, "whit.notes", whit_chars(&source->notes), source->notes.size_bytes);
    if (source->tokenizer.size_bytes)
        whit_ndf_writer_set_tokenizer(job->writer, source->tokenizer.data, source->tokenizer.size_bytes);
}

static whit_status write_templates(const struct job *job)
{
    whit_buf bytes = {.allocator = job->source->allocator};
    whit_table table;
    whit_status status = whit_table_build(&job->source->templates, &bytes, job->error);
    if (status == WHIT_OK)
        status = whit_table_open(bytes.data, bytes.size_bytes, job->source->path, &table, job->error);
    for (uint32_t i = 0; status == WHIT_OK && i < whit_table_count(&table); i++) {
        whit_value text;
        const char *name = whit_table_at(&table, i, &text);
        whit_table_set_value(whit_ndf_writer_templates(job->writer), name, &text);
    }
    whit_buf_free(&bytes);
    return status;
}

whit_status whit_convert(const whit_source *source, const whit_convert_options *options, whit_ndf_writer *writer,
                         whit_error *error)
{
    WHIT_TRY(whit_convert_options_check(options, error));
    const whit_allocator *a = source->allocator;
    struct job job = {.source = source, .options = options, .writer = writer, .error = error};
    size_t n = source->n_tensors;
    job.order = whit_zalloc_array(a, n, sizeof *job.order);
    job.declared = whit_zalloc_array(a, n, sizeof *job.declared);
    job.types = whit_zalloc_array(a, n, sizeof *job.types);
    job.changes = whit_zalloc_array(a, n, sizeof *job.changes);
    whit_status status = WHIT_OK;
    if (!job.order || !job.declared || !job.types || !job.changes)
        status = whit_fail_memory(error, "the conversion", n * sizeof *job.types);
    if (status == WHIT_OK) status = find_order(&job);
    if (status == WHIT_OK) {
        write_tables(&job);
        status = write_templates(&job);
        if (status == WHIT_OK && source->write_metadata) status = source->write_metadata(source, writer, error);
    }
    if (status == WHIT_OK) status = declare_all(&job);
    if (status == WHIT_OK) status = whit_ndf_writer_begin(writer, error);
    if (status == WHIT_OK) status = whit_pool_open(options->n_threads, a, &job.pool, error);
    for (uint32_t i = 0; status == WHIT_OK && i < job.n; i++) status = convert_tensor(&job, i);
    if (status == WHIT_OK) status = whit_ndf_writer_commit(writer, NULL, error);
    whit_pool_close(job.pool);
    whit_free(a, job.order, n * sizeof *job.order);
    whit_free(a, job.declared, n * sizeof *job.declared);
    whit_free(a, job.types, n * sizeof *job.types);
    whit_free(a, job.changes, n * sizeof *job.changes);
    return status;
}
