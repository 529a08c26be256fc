/* SPDX-License-Identifier: MIT
 * Attention over the blocked KV cache (docs/numerics.md, rules 5 and 6): every query's softmax over
 * each block of 64 positions by itself, then joined in ascending order of blocks, whoever did them. */
#include "model/exec.h"

/* A worker's scratch, as offsets: queries made ready, their spans in a block, partials of all
 * blocks so far and of one block. */
struct layout {
    size_t queries, spans, total, block, bytes;
};

static struct layout layout_of(whit_kv_type type, uint32_t head_dim, uint32_t n)
{
    struct layout at = {0};
    size_t partials = whit_round_up(n * whit_kv_partial_elems(head_dim) * sizeof(float), WHIT_ALIGN_BYTES);
    at.spans = at.queries + whit_round_up(n * whit_kv_query_bytes(type, head_dim), WHIT_ALIGN_BYTES);
    at.total = at.spans + whit_round_up(n * sizeof(whit_kv_span), WHIT_ALIGN_BYTES);
    at.block = at.total + partials;
    at.bytes = at.block + partials;
    return at;
}

size_t whit_exec_attend_scratch_bytes(whit_kv_type type, uint32_t head_dim, uint32_t n_queries)
{
    return layout_of(type, head_dim, n_queries).bytes;
}

/* Positions of block b that a query at `position` sees. */
static whit_kv_span span_of(uint32_t position, uint32_t window, uint32_t b)
{
    uint32_t first = b * WHIT_KV_BLOCK_TOKENS, begin = window && position + 1 > window ? position + 1 - window : 0;
    uint32_t end = position + 1;
    begin = begin > first ? begin - first : 0;
    end = end > first ? end - first : 0;
    return (whit_kv_span){(uint8_t)(begin < WHIT_KV_BLOCK_TOKENS ? begin : WHIT_KV_BLOCK_TOKENS),
                          (uint8_t)(end < WHIT_KV_BLOCK_TOKENS ? end : WHIT_KV_BLOCK_TOKENS)};
}

static void blocks_seen(const whit_exec_step *step, const whit_batch *batch, uint32_t row, uint32_t end, uint32_t *first,
                        uint32_t *last)
{
    uint32_t window = step->window, seen = batch->positions[row] + 1;
    *first = window && seen > window ? (seen - window) / WHIT_KV_BLOCK_TOKENS : 0;
    *last = batch->positions[end - 1] / WHIT_KV_BLOCK_TOKENS;
}

/* Queries of rows [row, end) and one KV head. */
static void ready_queries(const whit_exec_step *step, const whit_exec *exec, uint32_t row, uint32_t end, uint32_t head,
                          uint8_t *ready)
{
    uint32_t group = exec->heads_per_kv_head;
    size_t row_bytes = group * whit_kv_query_bytes(exec->kv->shape.type, step->group);
    for (uint32_t r = row; r < end; r++, ready += row_bytes) {
        const float *x = (const float *)(const void *)step->input[0] + r * step->input_stride[0];
        exec->kv_query(x + (size_t)head * group * step->group, step->group, group, step->group, ready);
    }
}

/* What n queries of the rows from `row` on see of block b. */
static void make_spans(const whit_exec_step *step, const whit_exec *exec, uint32_t row, uint32_t n, uint32_t b,
                       whit_kv_span *spans)
{
    for (uint32_t i = 0; i < n; i++)
        spans[i] = span_of(exec->batch->positions[row + i / exec->heads_per_kv_head], step->window, b);
}

/* Divides the joined partial of query i (of those of the rows from `row` on) by its sum, into the row it belongs to. */
static void finish(const whit_exec_step *step, const whit_exec *exec, uint32_t row, uint32_t head, uint32_t i, const float *total)
{
    uint32_t group = exec->heads_per_kv_head, head_dim = step->group;
    float *out = (float *)(void *)step->output + (row + i / group) * step->output_stride;
    exec->kernels->kv_finish(total, head_dim, out + ((size_t)head * group + i % group) * head_dim);
}

void whit_exec_attend(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, uint32_t begin, uint32_t end)
{
    uint8_t *scratch = exec->scratch + worker * exec->scratch_bytes;
    whit_kv_type type = exec->kv->shape.type;
    for (uint32_t item = begin; item < end; item++) { /* tiles of a head follow each other: they read the same blocks */
        uint32_t tile = item % exec->n_row_tiles, head = item / exec->n_row_tiles, first, last;
        uint32_t row = exec->row_tiles[tile], row_end = exec->row_tiles[tile + 1], n = (row_end - row) * exec->heads_per_kv_head;
        struct layout at = layout_of(type, step->group, n);
        whit_kv_span *spans = (whit_kv_span *)(scratch + at.spans);
        float *total = (float *)(void *)(scratch + at.total), *partials = (float *)(void *)(scratch + at.block);
        ready_queries(step, exec, row, row_end, head, scratch + at.queries);
        blocks_seen(step, exec->batch, row, row_end, &first, &last);
        for (uint32_t b = first; b <= last; b++) {
            make_spans(step, exec, row, n, b, spans);
            exec->kv_attend(whit_kv_head_block(exec->kv, step->layer, head, exec->batch->sequences[row], b), NULL,
                            scratch + at.queries, spans, n, step->group, step->constant, b == first ? total : partials);
            if (b != first) exec->kernels->kv_join(total, partials, n, step->group);
        }
        for (uint32_t i = 0; i < n; i++) finish(step, exec, row, head, i, total + i * whit_kv_partial_elems(step->group));
    }
}

/* ---- divided by blocks ----------------------------------------------------------------------- */

/* Only one tile of rows is divided: several make enough items by themselves. */
bool whit_exec_attend_divides(const whit_exec_step *step, const whit_exec *exec)
{
    if (exec->n_row_tiles != 1 || exec->n_kv_heads >= 8 * whit_pool_size(exec->pool)) return false;
    uint32_t first, last, n_rows = exec->row_tiles[1] - exec->row_tiles[0];
    blocks_seen(step, exec->batch, exec->row_tiles[0], exec->row_tiles[1], &first, &last);
    uint64_t n_partials = (uint64_t)(last - first + 1) * exec->n_kv_heads * n_rows * exec->heads_per_kv_head;
    return n_partials <= exec->n_partials && last - first >= 2;
}

/* One tile of rows, divided. Queries are made ready once, (n_kv_heads, n) of them; partials are
 * (block, KV head, n), so that heads of a block lie side by side, as in the cache. */
struct divided {
    const whit_exec_step *step;
    const whit_exec *exec;
    uint32_t first, last; /* blocks */
    uint32_t n;           /* queries of one KV head */
};

static uint8_t *queries_of(const struct divided *d, uint32_t head)
{
    return d->exec->queries + (size_t)head * d->n * whit_kv_query_bytes(d->exec->kv->shape.type, d->step->group);
}

static float *partials_of(const struct divided *d, uint32_t block, uint32_t head)
{
    size_t i = (size_t)(block - d->first) * d->exec->n_kv_heads + head;
    return d->exec->partials + i * d->n * whit_kv_partial_elems(d->step->group);
}

static void attend_items(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct divided *d = context;
    const whit_exec *exec = d->exec;
    uint8_t *scratch = exec->scratch + worker * exec->scratch_bytes;
    whit_kv_span *spans = (whit_kv_span *)(scratch + layout_of(exec->kv->shape.type, d->step->group, d->n).spans);
    for (uint32_t item = begin; item < end; item++) {
        uint32_t block = d->first + item / exec->n_kv_heads, head = item % exec->n_kv_heads;
        if (item == begin || head == 0) make_spans(d->step, exec, exec->row_tiles[0], d->n, block, spans);
        exec->kv_attend(whit_kv_head_block(exec->kv, d->step->layer, head, exec->batch->sequences[exec->row_tiles[0]], block),
                        NULL, queries_of(d, head), spans, d->n, d->step->group, d->step->constant, partials_of(d, block, head));
    }
}

static void join_heads(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct divided *d = context;
    size_t elems = whit_kv_partial_elems(d->step->group);
    (void)worker;
    for (uint32_t head = begin; head < end; head++) {
        float *total = partials_of(d, d->first, head);
        for (uint32_t b = d->first + 1; b <= d->last; b++)
            d->exec->kernels->kv_join(total, partials_of(d, b, head), d->n, d->step->group);
        for (uint32_t i = 0; i < d->n; i++) finish(d->step, d->exec, d->exec->row_tiles[0], head, i, total + i * elems);
    }
}

void whit_exec_attend_divided(const whit_exec_step *step, const whit_exec *exec)
{
    struct divided d = {.step = step, .exec = exec};
    uint32_t row = exec->row_tiles[0], end = exec->row_tiles[1];
    d.n = (end - row) * exec->heads_per_kv_head;
    blocks_seen(step, exec->batch, row, end, &d.first, &d.last);
    for (uint32_t head = 0; head < exec->n_kv_heads; head++) ready_queries(step, exec, row, end, head, queries_of(&d, head));
    whit_pool_run(exec->pool, attend_items, &d, (d.last - d.first + 1) * exec->n_kv_heads, 0);
    whit_pool_run(exec->pool, join_heads, &d, exec->n_kv_heads, 1);
}
