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

/* Queries of rows [row, end) and one KV head, made ready in a worker's scratch. */
struct queries {
    const whit_exec_step *step;
    const whit_exec *exec;
    uint32_t row, head, n;
    uint32_t first, last; /* blocks they see */
    uint8_t *ready;
    whit_kv_span *spans;
    float *total, *block;
};

static void blocks_seen(const whit_exec_step *step, const whit_batch *batch, uint32_t row, uint32_t end, uint32_t *first,
                        uint32_t *last)
{
    uint32_t window = step->window, seen = batch->positions[row] + 1;
    *first = window && seen > window ? (seen - window) / WHIT_KV_BLOCK_TOKENS : 0;
    *last = batch->positions[end - 1] / WHIT_KV_BLOCK_TOKENS;
}

static struct queries prepare(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, uint32_t tile, uint32_t head)
{
    uint32_t row = exec->row_tiles[tile], end = exec->row_tiles[tile + 1], group = exec->heads_per_kv_head;
    whit_kv_type type = exec->kv->shape.type;
    struct queries q = {.step = step, .exec = exec, .row = row, .head = head, .n = (end - row) * group};
    struct layout at = layout_of(type, step->group, q.n);
    uint8_t *scratch = exec->scratch + worker * exec->scratch_bytes;
    q.ready = scratch + at.queries;
    q.spans = (whit_kv_span *)(scratch + at.spans);
    q.total = (float *)(void *)(scratch + at.total);
    q.block = (float *)(void *)(scratch + at.block);
    blocks_seen(step, exec->batch, row, end, &q.first, &q.last);
    size_t row_bytes = group * whit_kv_query_bytes(type, step->group);
    for (uint32_t r = row; r < end; r++) {
        const float *x = (const float *)(const void *)step->input[0] + r * step->input_stride[0];
        exec->kv_query(x + (size_t)head * group * step->group, step->group, group, step->group, q.ready + (r - row) * row_bytes);
    }
    return q;
}

static void attend_block(const struct queries *q, uint32_t b, float *partials)
{
    const whit_exec *exec = q->exec;
    const whit_batch *batch = exec->batch;
    for (uint32_t i = 0; i < q->n; i++)
        q->spans[i] = span_of(batch->positions[q->row + i / exec->heads_per_kv_head], q->step->window, b);
    exec->kv_attend(whit_kv_head_block(exec->kv, q->step->layer, q->head, batch->sequences[q->row], b), q->ready, q->spans,
                    q->n, q->step->group, q->step->constant, partials);
}

/* Divides joined partials of n queries by their sums, into the rows they belong to. */
static void finish(const whit_exec_step *step, const whit_exec *exec, uint32_t row, uint32_t head, uint32_t n, const float *total)
{
    uint32_t group = exec->heads_per_kv_head, head_dim = step->group;
    size_t elems = whit_kv_partial_elems(head_dim);
    for (uint32_t i = 0; i < n; i++) {
        float *out = (float *)(void *)step->output + (row + i / group) * step->output_stride;
        exec->kernels->kv_finish(total + i * elems, head_dim, out + ((size_t)head * group + i % group) * head_dim);
    }
}

void whit_exec_attend(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, uint32_t begin, uint32_t end)
{
    for (uint32_t item = begin; item < end; item++) {
        struct queries q = prepare(step, exec, worker, item / exec->n_kv_heads, item % exec->n_kv_heads);
        for (uint32_t b = q.first; b <= q.last; b++) {
            attend_block(&q, b, b == q.first ? q.total : q.block);
            if (b != q.first) exec->kernels->kv_join(q.total, q.block, q.n, step->group);
        }
        finish(step, exec, q.row, q.head, q.n, q.total);
    }
}

/* ---- divided by blocks ----------------------------------------------------------------------- */

/* Only one tile of rows is divided: several make enough items by themselves. */
static uint64_t partials_needed(const whit_exec_step *step, const whit_exec *exec, uint32_t *first, uint32_t *last)
{
    uint32_t n_rows = exec->row_tiles[1] - exec->row_tiles[0];
    blocks_seen(step, exec->batch, exec->row_tiles[0], exec->row_tiles[1], first, last);
    return (uint64_t)(*last - *first + 1) * exec->n_kv_heads * n_rows * exec->heads_per_kv_head;
}

bool whit_exec_attend_divides(const whit_exec_step *step, const whit_exec *exec)
{
    uint32_t first, last;
    if (exec->n_row_tiles != 1 || exec->n_kv_heads >= 8 * whit_pool_size(exec->pool)) return false;
    return partials_needed(step, exec, &first, &last) <= exec->n_partials && last - first >= 2;
}

struct divided {
    const whit_exec_step *step;
    const whit_exec *exec;
    uint32_t first; /* block */
};

/* Partials of one block and KV head; heads of a block lie side by side, as in the cache. */
static float *partials_of(const struct divided *d, uint32_t block, uint32_t head)
{
    const whit_exec *exec = d->exec;
    size_t n = (exec->row_tiles[1] - exec->row_tiles[0]) * exec->heads_per_kv_head;
    return exec->partials + ((size_t)(block - d->first) * exec->n_kv_heads + head) * n * whit_kv_partial_elems(d->step->group);
}

static void attend_items(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct divided *d = context;
    for (uint32_t item = begin; item < end; item++) {
        uint32_t block = d->first + item / d->exec->n_kv_heads, head = item % d->exec->n_kv_heads;
        struct queries q = prepare(d->step, d->exec, worker, 0, head);
        attend_block(&q, block, partials_of(d, block, head));
    }
}

static void join_heads(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct divided *d = context;
    const whit_exec *exec = d->exec;
    uint32_t first, last, row = exec->row_tiles[0], n = (exec->row_tiles[1] - row) * exec->heads_per_kv_head;
    (void)worker;
    blocks_seen(d->step, exec->batch, row, exec->row_tiles[1], &first, &last);
    for (uint32_t head = begin; head < end; head++) {
        float *total = partials_of(d, first, head);
        for (uint32_t b = first + 1; b <= last; b++)
            exec->kernels->kv_join(total, partials_of(d, b, head), n, d->step->group);
        finish(d->step, exec, row, head, n, total);
    }
}

void whit_exec_attend_divided(const whit_exec_step *step, const whit_exec *exec)
{
    struct divided d = {.step = step, .exec = exec};
    uint32_t last;
    (void)partials_needed(step, exec, &d.first, &last);
    whit_pool_run(exec->pool, attend_items, &d, (last - d.first + 1) * exec->n_kv_heads, 0);
    whit_pool_run(exec->pool, join_heads, &d, exec->n_kv_heads, 1);
}
