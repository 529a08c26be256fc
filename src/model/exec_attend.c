/* SPDX-License-Identifier: MIT
 * Attention over the blocked KV cache (docs/numerics.md, rules 5 and 6): every query's softmax over
 * each block of 64 positions by itself, then joined in ascending order of blocks, whoever did them. */
#include "model/exec.h"

#include <stdatomic.h>
#include <string.h>

/* A worker's scratch, as offsets: queries made ready, their spans in a block, partials of all
 * blocks so far and what kernels need for those of one block. */
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
    at.bytes = at.block + WHIT_KV_PASS_QUERIES * whit_kv_partial_elems(head_dim) * sizeof(float);
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

void whit_exec_join_rope(const whit_plan *plan, uint32_t i, whit_exec_step *steps)
{
    if (plan->steps[i].op != WHIT_PLAN_ATTEND) return;
    uint32_t queries = plan->steps[i].input[0], rope = i;
    while (rope > 0 && plan->steps[rope].output != queries) rope--;
    if (plan->steps[rope].op != WHIT_PLAN_ROPE || plan->steps[rope].output != queries || !whit_exec_is_read_once(plan, queries) ||
        steps[rope].input[0] != steps[rope].output)
        return;
    steps[i].turned = &steps[rope];
    steps[rope].turned = &steps[i];
}

/* Few rows may be divided by blocks, and their queries made ready by one thread: not this, too. */
bool whit_exec_turns(const whit_exec_step *step, const whit_exec *exec)
{
    enum { LEAST_ROWS = 16 };
    return step->turned && exec->batch->n_rows >= LEAST_ROWS;
}

/* The queries of a row and one KV head, turned here where that was left to attention. */
static void ready_row(const whit_exec_step *step, const whit_exec *exec, uint32_t row, const float *x, uint8_t *ready)
{
    enum { TURNED = 2 * WHIT_KV_MAX_HEAD_DIM };
    float turned[TURNED];
    uint32_t head_dim = step->group, group = exec->heads_per_kv_head, n = group;
    if (!whit_exec_turns(step, exec)) {
        exec->kv_query(x, head_dim, group, head_dim, ready);
        return;
    }
    const float *table = exec->rope_tables + (size_t)row * 2 * exec->rope_pairs;
    for (uint32_t h = 0; h < group; h += n, x += n * head_dim, ready += n * whit_kv_query_bytes(exec->kv->shape.type, head_dim)) {
        n = group - h < TURNED / head_dim ? group - h : TURNED / head_dim;
        memcpy(turned, x, n * head_dim * sizeof *x);
        exec->kernels->rope_half(turned, n, head_dim, step->turned->rotary / 2, table);
        exec->kv_query(turned, head_dim, n, head_dim, ready);
    }
}

/* Queries of rows [row, end) and one KV head. */
static void ready_queries(const whit_exec_step *step, const whit_exec *exec, uint32_t row, uint32_t end, uint32_t head,
                          uint8_t *ready)
{
    enum { ROWS_AHEAD = 3 }; /* asked for: other threads' rows, out of cache */
    uint32_t group = exec->heads_per_kv_head;
    size_t row_bytes = group * whit_kv_query_bytes(exec->kv->shape.type, step->group), n = (size_t)group * step->group;
    const float *x = (const float *)(const void *)step->input[0] + row * step->input_stride[0] + head * n;
    for (uint32_t r = row; r < end; r++, ready += row_bytes, x += step->input_stride[0]) {
        for (size_t i = 0; r + ROWS_AHEAD < end && i < n; i += 16)
            __builtin_prefetch(x + ROWS_AHEAD * step->input_stride[0] + i, 0, 2);
        ready_row(step, exec, r, x, ready);
    }
}

/* Whether rows [row, end) see all of block b: the first row sees as far, the last one's window begins where all do. */
static bool sees_whole(const whit_exec_step *step, const whit_exec *exec, uint32_t row, uint32_t end, uint32_t b)
{
    whit_kv_span first = span_of(exec->batch->positions[row], step->window, b);
    whit_kv_span last = span_of(exec->batch->positions[end - 1], step->window, b);
    return first.begin == 0 && first.end == WHIT_KV_BLOCK_TOKENS && last.begin == 0 && last.end == WHIT_KV_BLOCK_TOKENS;
}

/* What the queries of rows [row, end) see of block b. are_whole: all of a block; those that were are not
 * made again. */
static void make_spans(const whit_exec_step *step, const whit_exec *exec, uint32_t row, uint32_t end, uint32_t b,
                       whit_kv_span *spans, bool *are_whole)
{
    bool were_whole = *are_whole;
    *are_whole = sees_whole(step, exec, row, end, b);
    if (*are_whole && were_whole) return;
    for (uint32_t i = 0; row < end; row++) {
        whit_kv_span span = span_of(exec->batch->positions[row], step->window, b);
        for (uint32_t h = 0; h < exec->heads_per_kv_head; h++) spans[i++] = span;
    }
}

/* Divides the joined partial of query i (of those of the rows from `row` on) by its sum, into the row it belongs to. */
static void finish(const whit_exec_step *step, const whit_exec *exec, uint32_t row, uint32_t head, uint32_t i, const float *total)
{
    uint32_t group = exec->heads_per_kv_head, head_dim = step->group;
    float *out = (float *)(void *)step->output + (row + i / group) * step->output_stride;
    out += ((size_t)head * group + i % group) * head_dim;
    if (row + i / group + 1 < exec->batch->n_rows) /* the next row's, out of cache too */
        for (uint32_t d = 0; d < head_dim; d += 16) __builtin_prefetch(out + step->output_stride + d, 1);
    exec->kernels->kv_finish(total, head_dim, out);
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
        for (uint32_t i = 0; i < n; i++) total[i * whit_kv_partial_elems(step->group) + step->group + 1] = 0; /* nothing seen */
        bool spans_are_whole = false;
        for (uint32_t b = first; b <= last; b++) {
            make_spans(step, exec, row, row_end, b, spans, &spans_are_whole);
            uint32_t sequence = exec->batch->sequences[row], next = b < last ? b + 1 : b;
            exec->kv_attend(whit_kv_head_block(exec->kv, step->layer, head, sequence, b),
                            whit_kv_head_block(exec->kv, step->layer, head, sequence, next), scratch + at.queries, spans, n,
                            step->group, step->constant, partials, total);
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

/* One tile of rows, divided: items are (KV head, block) pairs, and every worker has a part of them, so
 * that it joins most blocks as it goes. A head that two parts cut is begun by the first and ended by
 * the second: the first does so at its beginning, the second at its end, by when it can go on with
 * what the first has joined. What nobody could go on with (chunks that were taken off another's part)
 * is kept and joined at last.
 *
 * Queries are made ready once, (n_kv_heads, n) of them; partials are (n_kv_heads, n_blocks, n), of
 * which the first of a head is its sum so far. */
enum { CHUNKS_OF_PART = 8 };

struct divided {
    const whit_exec_step *step;
    const whit_exec *exec;
    uint32_t first, n_blocks;
    uint32_t n; /* queries of one KV head */
    uint32_t n_parts;
};

static uint8_t *queries_of(const struct divided *d, uint32_t head)
{
    return d->exec->queries + (size_t)head * d->n * whit_kv_query_bytes(d->exec->kv->shape.type, d->step->group);
}

static float *partials_of(const struct divided *d, uint32_t head, uint32_t block)
{
    size_t i = (size_t)head * d->n_blocks + block;
    return d->exec->partials + i * d->n * whit_kv_partial_elems(d->step->group);
}

/* Where items [begin, end) lie in the order in which a part is done: its last head, other whole heads, what
 * it has of its first one. */
static uint32_t item_at(const struct divided *d, uint32_t begin, uint32_t end, uint32_t place)
{
    uint32_t whole = (begin + d->n_blocks - 1) / d->n_blocks * d->n_blocks, last = (end - 1) / d->n_blocks * d->n_blocks;
    if (last < whole) return begin + place;
    if (place < end - last) return last + place;
    place -= end - last;
    return place < last - whole ? whole + place : begin + place - (last - whole);
}

static const void *block_of(const struct divided *d, uint32_t item)
{
    return whit_kv_head_block(d->exec->kv, d->step->layer, item / d->n_blocks, d->exec->batch->sequences[d->exec->row_tiles[0]],
                              d->first + item % d->n_blocks);
}

/* Places [from, to) of the part of items [begin, end). */
static void attend_places(const struct divided *d, uint32_t worker, uint32_t begin, uint32_t end, uint32_t from, uint32_t to)
{
    const whit_exec *exec = d->exec;
    uint32_t head_dim = d->step->group;
    uint8_t *scratch = exec->scratch + worker * exec->scratch_bytes;
    struct layout at = layout_of(exec->kv->shape.type, head_dim, d->n);
    whit_kv_span *spans = (whit_kv_span *)(scratch + at.spans);
    float *partials = (float *)(void *)(scratch + at.block);
    bool spans_are_whole = false, joins = false;
    for (uint32_t place = from, before = UINT32_MAX; place < to; place++) {
        uint32_t item = item_at(d, begin, end, place), head = item / d->n_blocks, block = item % d->n_blocks;
        if (item != before + 1 || block == 0)
            joins = block == 0 || atomic_load_explicit(&exec->n_joined[head], memory_order_acquire) == block;
        make_spans(d->step, exec, exec->row_tiles[0], exec->row_tiles[1], d->first + block, spans, &spans_are_whole);
        bool goes_on = joins && block > 0;
        float *own = goes_on ? partials : partials_of(d, head, block), *into = goes_on ? partials_of(d, head, 0) : NULL;
        uint32_t next = place + 1 < end - begin ? item_at(d, begin, end, place + 1) : item;
        exec->kv_attend(block_of(d, item), block_of(d, next), queries_of(d, head), spans, d->n, head_dim, d->step->constant, own,
                        into);
        bool is_last = place + 1 == to || next != item + 1 || block + 1 == d->n_blocks;
        if (joins && is_last) atomic_store_explicit(&exec->n_joined[head], block + 1, memory_order_release);
        before = item;
    }
}

static void attend_chunks(void *context, uint32_t worker, uint32_t chunk, uint32_t chunk_end)
{
    const struct divided *d = context;
    uint64_t n_items = (uint64_t)d->n_blocks * d->exec->n_kv_heads;
    for (; chunk < chunk_end; chunk++) {
        uint32_t part = chunk / CHUNKS_OF_PART, piece = chunk % CHUNKS_OF_PART;
        uint32_t begin = (uint32_t)(n_items * part / d->n_parts), end = (uint32_t)(n_items * (part + 1) / d->n_parts);
        uint32_t from = (end - begin) * piece / CHUNKS_OF_PART, to = (end - begin) * (piece + 1) / CHUNKS_OF_PART;
        attend_places(d, worker, begin, end, from, to);
    }
}

static void finish_heads(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct divided *d = context;
    (void)worker;
    for (uint32_t head = begin; head < end; head++) {
        float *total = partials_of(d, head, 0);
        for (uint32_t b = atomic_load_explicit(&d->exec->n_joined[head], memory_order_relaxed); b < d->n_blocks; b++)
            d->exec->kernels->kv_join(total, partials_of(d, head, b), d->n, d->step->group);
        for (uint32_t i = 0; i < d->n; i++)
            finish(d->step, d->exec, d->exec->row_tiles[0], head, i, total + i * whit_kv_partial_elems(d->step->group));
    }
}

void whit_exec_attend_divided(const whit_exec_step *step, const whit_exec *exec)
{
    struct divided d = {.step = step, .exec = exec, .n_parts = whit_pool_size(exec->pool)};
    uint32_t row = exec->row_tiles[0], end = exec->row_tiles[1], last;
    d.n = (end - row) * exec->heads_per_kv_head;
    blocks_seen(step, exec->batch, row, end, &d.first, &last);
    d.n_blocks = last - d.first + 1;
    for (uint32_t head = 0; head < exec->n_kv_heads; head++) {
        ready_queries(step, exec, row, end, head, queries_of(&d, head));
        atomic_store_explicit(&exec->n_joined[head], 0, memory_order_relaxed);
    }
    whit_pool_run(exec->pool, attend_chunks, &d, d.n_parts * CHUNKS_OF_PART, 1);
    bool all_joined = true;
    for (uint32_t head = 0; head < exec->n_kv_heads; head++)
        all_joined &= atomic_load_explicit(&exec->n_joined[head], memory_order_relaxed) == d.n_blocks;
    if (all_joined)
        finish_heads(&d, 0, 0, exec->n_kv_heads);
    else
        whit_pool_run(exec->pool, finish_heads, &d, exec->n_kv_heads, 1);
}
