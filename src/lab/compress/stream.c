/* SPDX-License-Identifier: MIT */
#include "compress/stream.h"

#include "compress/spool.h"
#include "model/families.h"
#include "quant/requantise.h"

#include <math.h>
#include <stdio.h>

#define BATCH_ROWS 1024
#define HELD_EVERY 8

/* ---- reading the source ------------------------------------------------------------------------ */

/* A row of a tensor in the source's own type. */
struct row_buffer {
    whit_rows rows;
    size_t elems_bytes, n_fields, n_fields_u8;
};

static bool make_row(const whit_allocator *a, const whit_tensor_type *type, struct row_buffer *row)
{
    const whit_codec_info *codec = whit_codec_find(type->codec);
    whit_geometry g = whit_codec_geometry(type);
    row->elems_bytes = (size_t)type->n_cols * (codec->is_float ? codec->elem_bytes : 1);
    row->n_fields = g.row_fields;
    row->n_fields_u8 = g.row_bytes + 1;
    row->rows.elems = whit_zalloc(a, row->elems_bytes);
    row->rows.fields = whit_zalloc_array(a, row->n_fields, sizeof(float));
    row->rows.fields_u8 = whit_zalloc(a, row->n_fields_u8);
    return row->rows.elems && row->rows.fields && row->rows.fields_u8;
}

static void free_row(const whit_allocator *a, struct row_buffer *row)
{
    whit_free(a, row->rows.elems, row->elems_bytes);
    whit_free(a, row->rows.fields, row->n_fields * sizeof(float));
    whit_free(a, row->rows.fields_u8, row->n_fields_u8);
}

static const whit_source_tensor *tensor_of(const whit_stream *s, int32_t param)
{
    return whit_source_find(s->source, s->params[0].items[param].name);
}

whit_status whit_stream_read_row(const whit_source_tensor *tensor, uint32_t row, float *values, const whit_allocator *a,
                                 whit_error *error)
{
    struct row_buffer buffer = {0};
    whit_status status = WHIT_OK;
    if (!make_row(a, &tensor->type, &buffer)) status = whit_fail_memory(error, tensor->name, buffer.elems_bytes);
    if (status == WHIT_OK) status = tensor->read_row(tensor, row, &buffer.rows, error);
    if (status == WHIT_OK) whit_requantise_values(&tensor->type, &buffer.rows, values);
    free_row(a, &buffer);
    return status;
}

/* Reads a whole tensor as floats. */
static whit_status read_tensor(const whit_stream *s, int32_t param, float *to, whit_error *error)
{
    const whit_source_tensor *tensor = tensor_of(s, param);
    struct row_buffer row = {0};
    whit_status status = WHIT_OK;
    if (!make_row(s->allocator, &tensor->type, &row)) status = whit_fail_memory(error, tensor->name, row.elems_bytes);
    for (uint32_t r = 0; status == WHIT_OK && r < tensor->type.n_rows; r++) {
        float *values = to + (size_t)r * tensor->type.n_cols;
        status = tensor->read_row(tensor, r, &row.rows, error);
        if (status == WHIT_OK) whit_requantise_values(&tensor->type, &row.rows, values);
        for (uint32_t k = 0; status == WHIT_OK && k < tensor->type.n_cols; k++)
            if (!isfinite(values[k]))
                status = whit_fail(error, WHIT_ERROR_NUMERIC,
                                   "%s: tensor '%s': row %u, column %u is not a number; the source is damaged",
                                   s->source->path, tensor->name, r, k);
    }
    if (tensor->drop) tensor->drop(tensor);
    free_row(s->allocator, &row);
    return status;
}

/* ---- opening ----------------------------------------------------------------------------------- */

static whit_status add_params(whit_stream *s, whit_error *error)
{
    for (int side = 0; side < WHIT_STREAM_SIDES; side++) {
        whit_params_begin(&s->params[side], s->allocator);
        for (uint32_t i = 0; i < s->source->n_tensors; i++) {
            const whit_source_tensor *tensor = &s->source->tensors[i];
            if (tensor->type.act == WHIT_TENSOR_ACT_FIXED)
                return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                                 "%s: tensor '%s' has fixed scales of its inputs and outputs, which compression does "
                                 "not support: start from the original",
                                 s->source->path, tensor->name);
            whit_tensor_type type = {
                .layout = tensor->type.layout, .n_rows = tensor->type.n_rows, .n_cols = tensor->type.n_cols};
            WHIT_TRY(whit_params_add(&s->params[side], tensor->name, &type, false, error));
            s->params[side].items[i].rounds_input = tensor->type.act == WHIT_TENSOR_ACT_TOKEN;
        }
    }
    return WHIT_OK;
}

static void cut_windows(whit_stream *s, const int32_t *ids, size_t n_windows, size_t n_all, int32_t bos)
{
    for (size_t w = 0; w < n_windows; w++) {
        int32_t *to = s->ids + w * s->n_tokens;
        memcpy(to, ids + w * n_all / n_windows * s->n_tokens, s->n_tokens * sizeof *to);
        if (bos >= 0) to[0] = bos;
    }
}

/* Loads the divisors of a RoPE table, which the tapes read in addition to the layer's tensors. */
static whit_status load_divisors(whit_stream *s, uint32_t i, whit_error *error)
{
    const whit_rope rope = whit_config_rope(&s->source->config, i);
    const char *name = whit_rope_divisors(&rope, s->n_tokens);
    int32_t param = name ? whit_params_find(&s->params[0], name) : -1;
    if (param < 0) return WHIT_OK;
    s->n_divisors[i] = s->params[0].items[param].n;
    s->divisors[i] = whit_zalloc_array(s->allocator, s->n_divisors[i], sizeof(float));
    if (!s->divisors[i]) return whit_fail_memory(error, "the list of RoPE factors", s->n_divisors[i] * sizeof(float));
    for (int side = 0; side < WHIT_STREAM_SIDES; side++) s->params[side].items[param].value = s->divisors[i];
    return read_tensor(s, param, s->divisors[i], error);
}

struct embed_job {
    const whit_stream *s;
    const whit_source_tensor *table;
    const whit_tensor_type *stored;
    bool rounds; /* the finished file has another type, or other groups, so that values must be rounded */
};

static whit_status embed_batch(void *context, uint32_t worker, uint32_t batch, whit_error *error)
{
    (void)worker;
    const struct embed_job *job = context;
    const whit_stream *s = job->s;
    struct row_buffer from = {0}, stored = {0};
    whit_status status = WHIT_OK;
    if (!make_row(s->allocator, &job->table->type, &from) || !make_row(s->allocator, job->stored, &stored))
        status = whit_fail_memory(error, "the embedding", from.elems_bytes);
    for (size_t r = (size_t)batch * s->n_rows; status == WHIT_OK && r < (size_t)(batch + 1) * s->n_rows; r++) {
        float *x = s->x[WHIT_STREAM_ORIGINAL] + r * s->n_embd, *rounded = s->x[WHIT_STREAM_COMPRESSED] + r * s->n_embd;
        status = job->table->read_row(job->table, (uint32_t)s->ids[r], &from.rows, error);
        if (status != WHIT_OK) break;
        whit_requantise_values(&job->table->type, &from.rows, x);
        memcpy(rounded, x, s->n_embd * sizeof *x);
        for (uint32_t k = 0; status == WHIT_OK && k < s->n_embd; k++)
            if (!isfinite(x[k]))
                status = whit_fail(error, WHIT_ERROR_NUMERIC,
                                   "%s: tensor '%s': row %d, column %u is not a number; the source is damaged",
                                   s->source->path, job->table->name, s->ids[r], k);
        if (!job->rounds) continue;
        whit_requantise_row(job->stored, x, &stored.rows);
        whit_requantise_values(job->stored, &stored.rows, rounded);
    }
    free_row(s->allocator, &from);
    free_row(s->allocator, &stored);
    return status;
}

static whit_status embed(whit_stream *s, const whit_tensor_type *stored, whit_error *error)
{
    struct embed_job job = {.s = s, .table = whit_source_find(s->source, "embed"), .stored = stored};
    whit_tensor_type from = whit_codec_canonical_type(&job.table->type), to = whit_codec_canonical_type(stored);
    job.rounds = memcmp(&from, &to, sizeof from) != 0;
    whit_status status = whit_pool_try(s->pool, embed_batch, &job, s->n_batches, 1, error);
    if (job.table->drop) job.table->drop(job.table);
    return status;
}

/* Finds the nodes of a layer, which are consecutive. The embedding, and the nodes after the selection of rows, belong
 * to no layer. */
static whit_status cut_block(whit_stream *s, uint32_t layer, whit_error *error)
{
    uint32_t first = 0, last;
    while (first < s->graph.n_nodes &&
           (s->graph.nodes[first].op == WHIT_OP_EMBED || s->graph.nodes[first].layer != layer))
        first++;
    for (last = first; last < s->graph.n_nodes && s->graph.nodes[last].layer == layer; last++)
        if (s->graph.nodes[last].op == WHIT_OP_SELECT) break;
    s->block = s->graph;
    s->block.nodes = s->graph.nodes + first;
    s->block.n_nodes = last - first;
    s->input = s->output = 0;
    bool one = last > first;
    for (uint32_t i = first; i < last; i++)
        for (int j = 0; j < 3; j++) {
            whit_ref input = s->graph.nodes[i].input[j];
            bool inside = false;
            for (uint32_t k = first; k < i; k++) inside |= s->graph.nodes[k].output == input;
            if (!input || inside) continue;
            one = one && (!s->input || s->input == input);
            s->input = input;
        }
    if (!one || s->graph.values[s->input - 1].width != s->n_embd)
        return whit_fail(
            error, WHIT_ERROR_UNSUPPORTED,
            "%s: layer %u is no block that reads one residual stream and adds to it, which compression needs",
            s->source->path, layer);
    s->output = s->block.output = s->graph.nodes[last - 1].output;
    return WHIT_OK;
}

/* Checks that the current block, which is layer 0, takes its input from the tensor "embed": embed_batch uses the rows
 * of this tensor. The tensor's shape was checked with the graph. */
static whit_status check_embedding(const whit_stream *s, whit_error *error)
{
    for (uint32_t i = 0; i < s->graph.n_nodes; i++) {
        const whit_node *node = &s->graph.nodes[i];
        if (node->op != WHIT_OP_EMBED || node->output != s->input) continue;
        if (strcmp(s->params[0].items[node->weight].name, "embed") == 0) return WHIT_OK;
    }
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                     "%s: the layers do not begin with the table 'embed', which compression needs", s->source->path);
}

static size_t block_elems(const whit_stream *s)
{
    size_t n = 0;
    for (uint32_t i = 0; i < s->block.n_nodes; i++) {
        const whit_node *node = &s->block.nodes[i];
        if (node->weight >= 0) n += whit_round_up(s->params[0].items[node->weight].n, 16);
        if (node->bias >= 0) n += whit_round_up(s->params[0].items[node->bias].n, 16);
    }
    return n;
}

static bool make_activations(whit_stream *s, size_t n_rows)
{
    for (int side = 0; side < WHIT_STREAM_SIDES; side++) {
        s->x[side] = whit_spool_map(s->spool, n_rows * s->n_embd * sizeof(float));
        s->is_spooled[side] = s->x[side] != NULL;
        if (!s->x[side]) s->x[side] = whit_zalloc_array(s->allocator, n_rows, s->n_embd * sizeof(float));
        if (!s->x[side]) return false;
    }
    return true;
}

static whit_status open_parts(whit_stream *s, const int32_t *ids, size_t n_ids, size_t max_tokens, int32_t bos,
                              const whit_tensor_type *embed_type, whit_error *error)
{
    const whit_allocator *a = s->allocator;
    size_t n_all = n_ids / s->n_tokens, n_windows = n_all;
    if (n_windows > max_tokens / s->n_tokens) n_windows = max_tokens / s->n_tokens;
    if (n_all && !n_windows)
        return whit_fail(
            error, WHIT_ERROR_ARGUMENT,
            "%zu tokens of calibration text are less than a window of %u; give more text or a smaller window",
            max_tokens, s->n_tokens);
    if (!n_windows)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "the calibration text has %zu tokens, a window needs %u; give more text or a smaller window",
                         n_ids, s->n_tokens);
    s->n_sequences = s->n_tokens < BATCH_ROWS ? BATCH_ROWS / s->n_tokens : 1;
    if (s->n_sequences > n_windows) s->n_sequences = (uint32_t)n_windows;
    s->n_rows = s->n_sequences * s->n_tokens;
    s->n_batches = (uint32_t)(n_windows / s->n_sequences);
    n_windows = (size_t)s->n_batches * s->n_sequences;
    size_t n = (size_t)s->n_batches * s->n_rows;
    s->ids = whit_zalloc_array(a, n, sizeof *s->ids);
    if (!s->ids || !make_activations(s, n))
        return whit_fail_memory(error, "the activations of a layer", n * s->n_embd * sizeof(float));
    cut_windows(s, ids, n_windows, n_all, bos);
    WHIT_TRY(add_params(s, error));
    for (uint32_t i = 0; i < whit_config_n_ropes(&s->source->config); i++) WHIT_TRY(load_divisors(s, i, error));
    whit_graph_begin(&s->graph, a, whit_params_resolver(&s->params[0]), error);
    WHIT_TRY(whit_family_build(&s->source->config, &s->graph));
    for (uint32_t layer = 0; layer < s->source->config.n_layers; layer++) {
        WHIT_TRY(cut_block(s, layer, error));
        if (layer == 0) WHIT_TRY(check_embedding(s, error));
        size_t elems = block_elems(s);
        if (elems > s->weight_elems) s->weight_elems = elems;
    }
    for (int side = 0; side < WHIT_STREAM_SIDES; side++) {
        s->weights[side] = whit_zalloc_array(a, s->weight_elems, sizeof(float));
        if (!s->weights[side]) return whit_fail_memory(error, "a layer", s->weight_elems * sizeof(float));
    }
    return embed(s, embed_type, error);
}

whit_status whit_stream_open(whit_stream *s, const whit_source *source, const int32_t *ids, size_t n_ids,
                             uint32_t n_tokens, size_t max_tokens, int32_t bos, const whit_tensor_type *embed_type,
                             const char *spool, whit_pool *pool, const whit_allocator *allocator, whit_error *error)
{
    *s = (whit_stream){.source = source,
                       .pool = pool,
                       .spool = spool,
                       .allocator = allocator,
                       .n_tokens = n_tokens,
                       .n_embd = source->config.n_embd};
    whit_status status = open_parts(s, ids, n_ids, max_tokens, bos, embed_type, error);
    if (status != WHIT_OK) whit_stream_close(s);
    return status;
}

void whit_stream_rest(whit_stream *s)
{
    for (int side = 0; s->awake && side < WHIT_STREAM_SIDES; side++) whit_tape_close(&s->tape[side]);
    s->awake = false;
}

void whit_stream_close(whit_stream *s)
{
    if (!s->source) return;
    const whit_allocator *a = s->allocator;
    size_t n = (size_t)s->n_batches * s->n_rows;
    whit_stream_rest(s);
    whit_graph_free(&s->graph);
    for (int side = 0; side < WHIT_STREAM_SIDES; side++) {
        whit_params_free(&s->params[side]);
        whit_free(a, s->weights[side], s->weight_elems * sizeof(float));
        if (s->is_spooled[side])
            whit_spool_unmap(s->x[side], n * s->n_embd * sizeof(float));
        else
            whit_free(a, s->x[side], n * s->n_embd * sizeof(float));
    }
    for (uint32_t i = 0; i < WHIT_ROPES_MAX; i++) whit_free(a, s->divisors[i], s->n_divisors[i] * sizeof(float));
    whit_free(a, s->ids, n * sizeof *s->ids);
    whit_free(a, s->head, s->head_elems * sizeof(float));
    *s = (whit_stream){0};
}

/* ---- a layer ----------------------------------------------------------------------------------- */

static whit_status load_param(whit_stream *s, int32_t param, size_t *at, whit_error *error)
{
    if (param < 0) return WHIT_OK;
    float *values = s->weights[WHIT_STREAM_ORIGINAL] + *at;
    size_t n = s->params[0].items[param].n;
    WHIT_TRY(read_tensor(s, param, values, error));
    memcpy(s->weights[WHIT_STREAM_COMPRESSED] + *at, values, n * sizeof *values);
    for (int side = 0; side < WHIT_STREAM_SIDES; side++) s->params[side].items[param].value = s->weights[side] + *at;
    *at += whit_round_up(n, 16);
    return WHIT_OK;
}

whit_status whit_stream_load(whit_stream *s, uint32_t layer, whit_error *error)
{
    size_t at = 0;
    whit_stream_rest(s);
    WHIT_TRY(cut_block(s, layer, error));
    for (uint32_t i = 0; i < s->block.n_nodes; i++) {
        WHIT_TRY(load_param(s, s->block.nodes[i].weight, &at, error));
        WHIT_TRY(load_param(s, s->block.nodes[i].bias, &at, error));
    }
    return WHIT_OK;
}

whit_status whit_stream_load_head(whit_stream *s, whit_error *error)
{
    size_t at = 0;
    whit_stream_rest(s);
    WHIT_TRY(cut_block(s, s->source->config.n_layers - 1, error));
    const whit_node *end = s->graph.nodes + s->graph.n_nodes;
    s->block.nodes += s->block.n_nodes;
    s->block.n_nodes = (uint32_t)(end - s->block.nodes);
    s->input = s->output;
    s->output = s->block.output = s->graph.output;
    s->head_elems = block_elems(s);
    s->head = whit_zalloc_array(s->allocator, s->head_elems, sizeof(float));
    if (!s->head) return whit_fail_memory(error, "the head", s->head_elems * sizeof(float));
    for (uint32_t i = 0; i < s->block.n_nodes; i++) {
        const int32_t params[] = {s->block.nodes[i].weight, s->block.nodes[i].bias};
        for (int k = 0; k < 2; k++) {
            if (params[k] < 0) continue;
            WHIT_TRY(read_tensor(s, params[k], s->head + at, error));
            for (int side = 0; side < WHIT_STREAM_SIDES; side++) s->params[side].items[params[k]].value = s->head + at;
            at += whit_round_up(s->params[0].items[params[k]].n, 16);
        }
    }
    return WHIT_OK;
}

whit_status whit_stream_wake(whit_stream *s, whit_error *error)
{
    if (s->awake) return WHIT_OK;
    whit_tape_options options = {
        .n_sequences = s->n_sequences, .n_tokens = s->n_tokens, .input = s->input, .precision = WHIT_PRECISION_F32};
    WHIT_TRY(whit_tape_open(&s->tape[0], &s->block, &s->source->config, &s->params[0], &options, s->pool, s->allocator,
                            error));
    whit_status status = whit_tape_open(&s->tape[1], &s->block, &s->source->config, &s->params[1], &options, s->pool,
                                        s->allocator, error);
    if (status != WHIT_OK) whit_tape_close(&s->tape[0]);
    s->awake = status == WHIT_OK;
    for (int side = 0; s->awake && side < WHIT_STREAM_SIDES; side++)
        s->tape[side].blas.multiply_adds = s->multiply_adds;
    return status;
}

float *whit_stream_values(const whit_stream *s, whit_stream_side side, int32_t param)
{
    return s->params[side].items[param].value;
}

static void run_side(whit_stream *s, int side, uint32_t batch, whit_ref value)
{
    size_t n = (size_t)s->n_rows * s->n_embd;
    memcpy(whit_tape_value(&s->tape[side], s->input), s->x[side] + batch * n, n * sizeof(float));
    whit_tape_forward_to(&s->tape[side], s->ids + (size_t)batch * s->n_rows, value);
}

void whit_stream_run(whit_stream *s, uint32_t batch, whit_ref value)
{
    for (int side = s->is_single ? WHIT_STREAM_COMPRESSED : 0; side < WHIT_STREAM_SIDES; side++)
        run_side(s, side, batch, value);
}

uint32_t whit_stream_own_batches(const whit_stream *s, uint32_t *begin)
{
    *begin = s->ranks ? whit_rank_begin(s->ranks, s->ranks->rank, s->n_batches) : 0;
    return s->ranks ? whit_rank_begin(s->ranks, s->ranks->rank + 1, s->n_batches) : s->n_batches;
}

uint32_t whit_stream_place(const whit_stream *s, uint32_t batch, bool is_held_out)
{
    const uint32_t n_held = is_held_out ? batch / HELD_EVERY : 0;
    return is_held_out && whit_stream_is_held(s, batch) ? n_held : batch - n_held;
}

void whit_stream_advance(whit_stream *s, whit_stream_side side)
{
    size_t n = (size_t)s->n_rows * s->n_embd;
    uint32_t begin, end = whit_stream_own_batches(s, &begin);
    for (uint32_t batch = begin; batch < end; batch++) {
        if (!whit_within_tell(&s->within, (double)(batch - begin) / (end - begin))) return;
        run_side(s, side, batch, s->output);
        memcpy(s->x[side] + batch * n, whit_tape_value(&s->tape[side], s->output), n * sizeof(float));
    }
}

bool whit_stream_is_held(const whit_stream *s, uint32_t batch)
{
    return s->n_batches >= HELD_EVERY && batch % HELD_EVERY == HELD_EVERY - 1;
}
