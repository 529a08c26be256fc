/* SPDX-License-Identifier: MIT */
#include "model/convert.h"

#include "model/requantise.h"

#include <stdio.h>

/* Rows are packed some at a time: enough for long writes, little enough to stay in cache. */
#define CHUNK_BYTES ((size_t)4 << 20)

static const char *or_null(const char *text)
{
    return text && *text ? text : NULL;
}

whit_status whit_convert_options_check(const whit_convert_options *options, whit_error *error)
{
    uint8_t codec;
    const char *ternary = or_null(options->ternary), *embd = or_null(options->embd), *head = or_null(options->head);
    if (ternary && strcmp(ternary, "t2") != 0 && strcmp(ternary, "t5") != 0)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "ternary codec '%s' is not t2 or t5", ternary);
    if (embd && (!whit_codec_parse(embd, &codec) || codec > WHIT_CODEC_I4))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "embedding codec '%s' is none of f32 f16 bf16 i8 i4", embd);
    if (head && (!whit_codec_parse(head, &codec) || (codec > WHIT_CODEC_I4 && codec != WHIT_CODEC_I8S)))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "head codec '%s' is none of f32 f16 bf16 i8 i4 i8s", head);
    return WHIT_OK;
}

/* ---- what goes where ------------------------------------------------------------------------ */

struct job {
    const whit_source *source;
    const whit_convert_options *options;
    whit_ndf_writer *writer;
    uint32_t *order; /* source tensors in the order in which a pass reads them */
    uint32_t n;
    whit_tensor_type *types; /* of each, in the file */
    uint32_t *declared;
    uint64_t done_elems, all_elems;
    whit_error *error;
};

static int32_t find_tensor(void *context, const char *name)
{
    const whit_source *source = context;
    const whit_source_tensor *tensor = whit_source_find(source, name);
    return tensor ? (int32_t)(tensor - source->tensors) : -1;
}

static const whit_tensor_type *tensor_type(void *context, int32_t index)
{
    return &((const whit_source *)context)->tensors[index].type;
}

static void take(struct job *job, int32_t index)
{
    if (index < 0) return;
    for (uint32_t i = 0; i < job->n; i++)
        if (job->order[i] == (uint32_t)index) return;
    job->order[job->n++] = (uint32_t)index;
}

/* The graph's own order, so that a pass over the model reads the file from front to back. */
static whit_status find_order(struct job *job)
{
    const whit_source *source = job->source;
    whit_graph graph;
    whit_graph_begin(&graph, source->allocator, (whit_resolver){(void *)source, find_tensor, tensor_type}, job->error);
    whit_status status = whit_family_build(&source->config, &graph);
    for (uint32_t i = 0; status == WHIT_OK && i < graph.n_nodes; i++) {
        take(job, graph.nodes[i].weight);
        take(job, graph.nodes[i].bias);
    }
    if (status == WHIT_OK && source->config.rope_factors) take(job, find_tensor((void *)source, "rope_factors"));
    whit_graph_free(&graph);
    return status;
}

static whit_tensor_type target_type(const struct job *job, const whit_source_tensor *tensor)
{
    whit_tensor_type type = tensor->type;
    const whit_config *config = &job->source->config;
    bool head = strcmp(tensor->name, config->tied_head ? "embed" : "head") == 0, embd = strcmp(tensor->name, "embed") == 0;
    const char *lossy = NULL;
    uint8_t codec;
    if (embd) lossy = or_null(job->options->embd);
    if (head && or_null(job->options->head)) lossy = job->options->head;
    if (lossy && whit_codec_parse(lossy, &codec)) return whit_requantise_type(codec, type.n_rows, type.n_cols);
    if (type.codec == WHIT_CODEC_T5) {
        bool t2 = or_null(job->options->ternary) && strcmp(job->options->ternary, "t2") == 0;
        if (t2 || whit_tensor_type_check(&type, NULL) != WHIT_OK) type.codec = WHIT_CODEC_T2;
    } else if (type.codec == WHIT_CODEC_T2 && or_null(job->options->ternary) && strcmp(job->options->ternary, "t5") == 0) {
        return type; /* codes up to 2 need t2 */
    }
    return type;
}

/* ---- one tensor ----------------------------------------------------------------------------- */

struct rows_buffer {
    whit_rows rows;
    size_t elem_bytes, field_elems; /* per row */
};

static struct rows_buffer row_at(const struct rows_buffer *buffer, uint32_t i)
{
    struct rows_buffer row = *buffer;
    row.rows.elems = (uint8_t *)buffer->rows.elems + i * buffer->elem_bytes;
    if (buffer->rows.fields) row.rows.fields = buffer->rows.fields + i * buffer->field_elems;
    return row;
}

/* Room for n rows of a type; freed by free_rows. */
static bool make_rows(const whit_allocator *a, const whit_tensor_type *type, uint32_t n, struct rows_buffer *buffer)
{
    whit_geometry g = whit_codec_geometry(type);
    const whit_codec_info *codec = whit_codec_find(type->codec);
    *buffer = (struct rows_buffer){.elem_bytes = (size_t)type->n_cols * (codec->is_float ? codec->elem_bytes : 1),
                                   .field_elems = (size_t)g.n_groups * g.n_fields};
    if (!codec->is_float && buffer->field_elems == 0) buffer->field_elems = 1;
    buffer->rows.elems = whit_zalloc_array(a, n, buffer->elem_bytes);
    buffer->rows.fields = codec->is_float ? NULL : whit_zalloc_array(a, n, buffer->field_elems * sizeof(float));
    return buffer->rows.elems && (codec->is_float || buffer->rows.fields);
}

static void free_rows(const whit_allocator *a, uint32_t n, struct rows_buffer *buffer)
{
    whit_free(a, buffer->rows.elems, n * buffer->elem_bytes);
    whit_free(a, buffer->rows.fields, n * buffer->field_elems * sizeof(float));
}

struct tensor_job {
    const whit_source_tensor *from;
    whit_tensor_type to;
    bool lossy;
    uint32_t chunk_rows;
    struct rows_buffer in, out; /* one row of the source where it is lossy; chunk_rows of the target */
    float *values;              /* one row */
    uint8_t *part[WHIT_PART_COUNT];
    uint64_t part_bytes[WHIT_PART_COUNT]; /* of a chunk */
    uint8_t *canonical;
    size_t canonical_bytes;
    whit_buf later[WHIT_PART_COUNT]; /* parts behind the codes wait here */
};

static void free_tensor_job(const whit_allocator *a, struct tensor_job *t)
{
    free_rows(a, 1, &t->in);
    free_rows(a, t->chunk_rows, &t->out);
    whit_free(a, t->values, t->to.n_cols * sizeof *t->values);
    for (int p = 0; p < WHIT_PART_COUNT; p++) {
        whit_free(a, t->part[p], t->part_bytes[p]);
        whit_buf_free(&t->later[p]);
    }
    whit_free(a, t->canonical, t->canonical_bytes);
}

static bool chunk_type(const whit_tensor_type *to, uint32_t n, whit_tensor_type *chunk, uint64_t bytes[WHIT_PART_COUNT])
{
    *chunk = *to; /* a tile depends on its own rows only, so a slice is packed as a tensor of its own */
    chunk->n_rows = n;
    for (int p = 0; p < WHIT_PART_COUNT; p++)
        if (!whit_codec_part_bytes(chunk, (whit_part)p, &bytes[p])) return false;
    return true;
}

static whit_status open_tensor_job(const struct job *job, const whit_source_tensor *from, const whit_tensor_type *to,
                                   struct tensor_job *t)
{
    const whit_allocator *a = job->source->allocator;
    *t = (struct tensor_job){.from = from, .to = *to};
    whit_tensor_type source_content = whit_codec_canonical_type(&from->type), content = whit_codec_canonical_type(to);
    t->lossy = memcmp(&source_content, &content, sizeof content) != 0;
    size_t row_bytes = (size_t)to->n_cols * 4;
    t->chunk_rows = (uint32_t)(CHUNK_BYTES / row_bytes + 16) & ~15u;
    if (t->chunk_rows > to->n_rows) t->chunk_rows = to->n_rows;
    whit_tensor_type chunk;
    bool ok = chunk_type(to, t->chunk_rows, &chunk, t->part_bytes);
    t->canonical_bytes = whit_codec_canonical_row_bytes(to) * t->chunk_rows;
    ok = ok && make_rows(a, &t->from->type, 1, &t->in) && make_rows(a, to, t->chunk_rows, &t->out);
    t->values = whit_alloc(a, to->n_cols * sizeof *t->values);
    t->canonical = whit_alloc(a, t->canonical_bytes);
    for (int p = 0; ok && p < WHIT_PART_COUNT; p++) {
        t->later[p].allocator = a;
        if (t->part_bytes[p]) ok = (t->part[p] = whit_alloc(a, t->part_bytes[p])) != NULL;
    }
    if (ok && t->values && t->canonical) return WHIT_OK;
    free_tensor_job(a, t);
    return whit_fail_memory(job->error, from->name, CHUNK_BYTES);
}

static whit_status read_chunk(const struct job *job, struct tensor_job *t, uint32_t begin, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct rows_buffer row = row_at(&t->out, i);
        if (!t->lossy) {
            WHIT_TRY(t->from->read_row(t->from, begin + i, &row.rows, job->error));
            continue;
        }
        WHIT_TRY(t->from->read_row(t->from, begin + i, &t->in.rows, job->error));
        whit_requantise_values(&t->from->type, &t->in.rows, t->values);
        whit_requantise_row(&t->to, t->values, &row.rows);
    }
    return WHIT_OK;
}

static whit_status convert_tensor(struct job *job, uint32_t i)
{
    const whit_source_tensor *from = &job->source->tensors[job->order[i]];
    struct tensor_job t;
    WHIT_TRY(open_tensor_job(job, from, &job->types[i], &t));
    whit_status status = WHIT_OK;
    whit_hash digest;
    whit_hash_begin(&digest, "whit.tensor");
    whit_tensor_type canonical = whit_codec_canonical_type(&t.to);
    whit_hash_add(&digest, &canonical, sizeof canonical);
    for (uint32_t begin = 0; status == WHIT_OK && begin < t.to.n_rows; begin += t.chunk_rows) {
        uint32_t n = t.to.n_rows - begin < t.chunk_rows ? t.to.n_rows - begin : t.chunk_rows;
        whit_tensor chunk = {0};
        if (!chunk_type(&t.to, n, &chunk.type, chunk.part_bytes)) status = WHIT_ERROR_LIMIT;
        for (int p = 0; p < WHIT_PART_COUNT; p++) chunk.part[p] = t.part_bytes[p] ? t.part[p] : NULL;
        if (status == WHIT_OK) status = read_chunk(job, &t, begin, n);
        if (status == WHIT_OK) status = whit_codec_pack(&chunk.type, 0, n, &t.out.rows, t.part, job->error);
        if (status != WHIT_OK) break;
        whit_codec_canonical_rows(&chunk, 0, n, t.canonical);
        whit_hash_add(&digest, t.canonical, whit_codec_canonical_row_bytes(&t.to) * n);
        status = whit_ndf_writer_add(job->writer, job->declared[i], WHIT_PART_CODES, t.part[WHIT_PART_CODES],
                                     chunk.part_bytes[WHIT_PART_CODES], job->error);
        for (int p = 1; status == WHIT_OK && p < WHIT_PART_COUNT; p++)
            if (!whit_buf_append(&t.later[p], t.part[p], chunk.part_bytes[p]))
                status = whit_fail_memory(job->error, from->name, chunk.part_bytes[p]);
        job->done_elems += (uint64_t)n * t.to.n_cols;
        if (status == WHIT_OK && job->options->progress &&
            !job->options->progress(job->options->user, "converting", (double)job->done_elems / (double)job->all_elems))
            status = whit_fail(job->error, WHIT_ERROR_CANCELLED, "%s: conversion cancelled", job->source->path);
    }
    for (int p = 1; status == WHIT_OK && p < WHIT_PART_COUNT; p++)
        if (t.later[p].size_bytes)
            status = whit_ndf_writer_add(job->writer, job->declared[i], (whit_part)p, t.later[p].data,
                                         t.later[p].size_bytes, job->error);
    uint8_t hash[WHIT_HASH_BYTES];
    whit_hash_end(&digest, hash);
    if (status == WHIT_OK) whit_ndf_writer_set_digest(job->writer, job->declared[i], hash);
    free_tensor_job(job->source->allocator, &t);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static whit_status declare_all(struct job *job)
{
    for (uint32_t i = 0; i < job->n; i++) {
        const whit_source_tensor *from = &job->source->tensors[job->order[i]];
        job->types[i] = target_type(job, from);
        whit_error inner;
        if (whit_tensor_type_check(&job->types[i], &inner) != WHIT_OK)
            return whit_fail(job->error, WHIT_ERROR_UNSUPPORTED, "%s: tensor '%s': %s", job->source->path, from->name,
                             inner.message);
        uint64_t bytes[WHIT_PART_COUNT] = {0}, total = 0;
        for (int p = 0; p < WHIT_PART_COUNT; p++) {
            if (!whit_codec_part_bytes(&job->types[i], (whit_part)p, &bytes[p]))
                return whit_fail(job->error, WHIT_ERROR_LIMIT, "%s: tensor '%s' is too large", job->source->path, from->name);
            total += bytes[p];
        }
        WHIT_TRY(whit_ndf_writer_declare(job->writer, from->name, &job->types[i], bytes, &job->declared[i], job->error));
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
        whit_table_set_string_n(meta, "whit.notes", (const char *)source->notes.data, source->notes.size_bytes);
    if (source->tokenizer.size_bytes)
        whit_ndf_writer_set_tokenizer(job->writer, source->tokenizer.data, source->tokenizer.size_bytes);
}

static whit_status write_templates(const struct job *job)
{
    whit_buf bytes = {.allocator = job->source->allocator};
    whit_table table;
    whit_status status = whit_table_build(&job->source->templates, &bytes, job->error);
    if (status == WHIT_OK) status = whit_table_open(bytes.data, bytes.size_bytes, job->source->path, &table, job->error);
    for (uint32_t i = 0; status == WHIT_OK && i < whit_table_count(&table); i++) {
        whit_value text;
        const char *name = whit_table_at(&table, i, &text);
        whit_table_set_value(whit_ndf_writer_templates(job->writer), name, &text);
    }
    whit_buf_free(&bytes);
    return status;
}

whit_status whit_convert(const whit_source *source, const whit_convert_options *options,
                         whit_ndf_writer *writer, whit_error *error)
{
    WHIT_TRY(whit_convert_options_check(options, error));
    const whit_allocator *a = source->allocator;
    struct job job = {.source = source, .options = options, .writer = writer, .error = error};
    size_t n = source->n_tensors;
    job.order = whit_zalloc_array(a, n, sizeof *job.order);
    job.declared = whit_zalloc_array(a, n, sizeof *job.declared);
    job.types = whit_zalloc_array(a, n, sizeof *job.types);
    whit_status status = WHIT_OK;
    if (!job.order || !job.declared || !job.types) status = whit_fail_memory(error, "the conversion", n * sizeof *job.types);
    if (status == WHIT_OK) status = find_order(&job);
    if (status == WHIT_OK) {
        write_tables(&job);
        status = write_templates(&job);
        if (status == WHIT_OK && source->write_metadata) status = source->write_metadata(source, writer, error);
    }
    if (status == WHIT_OK) status = declare_all(&job);
    if (status == WHIT_OK) status = whit_ndf_writer_begin(writer, error);
    for (uint32_t i = 0; status == WHIT_OK && i < job.n; i++) status = convert_tensor(&job, i);
    if (status == WHIT_OK) status = whit_ndf_writer_commit(writer, NULL, error);
    whit_free(a, job.order, n * sizeof *job.order);
    whit_free(a, job.declared, n * sizeof *job.declared);
    whit_free(a, job.types, n * sizeof *job.types);
    return status;
}
