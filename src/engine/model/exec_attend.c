/* SPDX-License-Identifier: MIT
 * Computes attention over the KV cache (docs/dev/numerics.md, rules 5 and 6): each query's softmax is computed
 * separately over each group of four blocks, 256 positions, and the partials are merged in ascending order of groups,
 * whichever thread computed them.
 *
 * In an endless cache a query whose window has left the first positions attends to the sinks as one more group before
 * the others, as if the sinks immediately preceded its window (docs/use/context.md): instead of rotating the sinks'
 * keys forward, the query is rotated back by the same distance. */
#include "kernels/math.h"
#include "model/exec_step.h"

#include <stdatomic.h>
#include <string.h>

/* Offsets in bytes in a worker's scratch: prepared queries, queries prepared for the sinks, spans of the queries in a
 * group, partial results of all groups so far, and partial results of one group. */
struct layout {
    size_t queries, sink_queries, spans, total, partials, bytes;
};

static struct layout layout_of(const whit_kv_class *class, uint32_t n)
{
    struct layout at = {0};
    uint32_t head_dim = class->head_dim;
    size_t partials = whit_round_up(n * whit_kv_partial_elems(head_dim) * sizeof(float), WHIT_ALIGN_BYTES);
    size_t queries = whit_round_up(n * whit_kv_query_bytes(class->type, head_dim), WHIT_ALIGN_BYTES);
    at.sink_queries = at.queries + queries;
    at.spans = at.sink_queries + (class->n_sinks ? queries : 0);
    at.total = at.spans + whit_round_up(n * sizeof(whit_kv_span), WHIT_ALIGN_BYTES);
    at.partials = at.total + partials;
    at.bytes = at.partials + WHIT_KV_PASS_QUERIES * whit_kv_partial_elems(head_dim) * sizeof(float);
    return at;
}

size_t whit_exec_attend_scratch_bytes(const whit_kv_class *class, uint32_t n_queries)
{
    return layout_of(class, n_queries).bytes;
}

/* ---- visible positions ------------------------------------------------------------------------ */

/* Returns whether a query attends to the sinks as a separate group: its position is window + n_sinks or later. Until
 * then a query of an endless cache attends to all positions. */
static bool has_left(const whit_kv_class *class, uint32_t position)
{
    return class->n_sinks && position >= class->window + class->n_sinks;
}

/* Returns the first position that a query attends to, apart from sinks in a separate group. */
static uint32_t window_begin(const whit_kv_class *class, uint32_t position)
{
    if (class->is_bidirectional) return position > class->sides ? position - class->sides : 0;
    bool sees_all = !class->window || position < class->window || (class->n_sinks && !has_left(class, position));
    return sees_all ? 0 : position + 1 - class->window;
}

/* Returns the end of the positions that row `row` of a step attends to: the position after the row's own; in
 * bidirectional attention, the position after the last one at most `sides` away. */
static uint32_t window_end(const whit_exec_step *step, const whit_exec *exec, uint32_t row)
{
    const whit_kv_class *class = step->cache->class;
    const uint32_t position = exec->positions[step->rows][row], end = position + 1;
    if (!class->is_bidirectional) return end;
    const uint32_t n_tokens = exec->kv->n_tokens[exec->sequences[step->rows][row]];
    return class->sides < n_tokens - end ? end + class->sides : n_tokens;
}

/* Returns the span of positions, relative to the beginning of group g, that row `row` of a step attends to. */
static whit_kv_span span_of(const whit_exec_step *step, const whit_exec *exec, uint32_t row, uint32_t g)
{
    const uint32_t position = exec->positions[step->rows][row], first = g * WHIT_KV_GROUP_TOKENS;
    uint32_t begin = window_begin(step->cache->class, position), end = window_end(step, exec, row);
    begin = begin > first ? begin - first : 0;
    end = end > first ? end - first : 0;
    return (whit_kv_span){(uint16_t)(begin < WHIT_KV_GROUP_TOKENS ? begin : WHIT_KV_GROUP_TOKENS),
                          (uint16_t)(end < WHIT_KV_GROUP_TOKENS ? end : WHIT_KV_GROUP_TOKENS)};
}

/* Holds the n groups that rows [row, end) of a query block attend to: the sinks, if any, then groups from index `first`
 * on. */
struct seen {
    uint32_t row, end, first, n;
    bool has_sinks;
};

static struct seen groups_seen(const whit_exec_step *step, const whit_exec *exec, uint32_t block)
{
    const whit_kv_class *class = step->cache->class;
    const uint32_t *blocks = step->cache->query_blocks[step->rows].first, *positions = exec->positions[step->rows];
    struct seen seen = {.row = blocks[block], .end = blocks[block + 1]};
    seen.first = window_begin(class, positions[seen.row]) / WHIT_KV_GROUP_TOKENS;
    seen.has_sinks = has_left(class, positions[seen.row]);
    seen.n = (window_end(step, exec, seen.end - 1) - 1) / WHIT_KV_GROUP_TOKENS - seen.first + 1 + seen.has_sinks;
    return seen;
}

#define SINKS UINT32_MAX /* stands for the sinks where a group's index is expected */

/* Returns the index of the i-th group that the rows attend to. */
static uint32_t seen_at(const struct seen *seen, uint32_t i)
{
    return i < seen->has_sinks ? SINKS : seen->first + i - seen->has_sinks;
}

/* Returns the blocks of group g of one KV head that the query block attends to. */
static whit_kv_group group_of(const whit_exec_step *step, const whit_exec *exec, const struct seen *seen, uint32_t head,
                              uint32_t g)
{
    const whit_kv_class *class = step->cache->class;
    whit_kv_group group = {{0}};
    const uint32_t sequence = exec->sequences[step->rows][seen->row], position = exec->positions[step->rows][seen->row];
    const uint32_t first = g == SINKS ? 0 : g * WHIT_KV_GROUP_BLOCKS;
    uint32_t begin = 0, last = class->n_sinks;
    if (g != SINKS) {
        begin = span_of(step, exec, seen->row, g).begin;
        last = span_of(step, exec, seen->end - 1, g).end;
    }
    for (uint32_t b = 0; step->cache->pack && b < (g == SINKS ? 1 : WHIT_KV_GROUP_BLOCKS); b++)
        if (whit_kv_reads_closed(class, position, first + b)) group.closed |= 1u << b;
    for (uint32_t b = begin / WHIT_KV_BLOCK_TOKENS; b * WHIT_KV_BLOCK_TOKENS < last; b++) {
        const whit_kv_class *from = group.closed >> b & 1 ? class : step->cache->open;
        group.blocks[b] = whit_kv_class_block(from, step->layer, head, sequence, first + b);
    }
    if (!group.closed) return group;
    group.rope = step->rope->offset_table;
    group.rope_pairs = class->rope_pairs;
    if (first == 0 && group.blocks[0])
        group.sinks = whit_kv_class_block(whit_kv_sinks_class(class), step->layer, head, sequence, 0);
    return group;
}

/* Returns a worker's cache of converted groups, emptied if it belongs to another phase run, head or sequence; NULL if
 * no kernel converts. */
static whit_exec_converted *converted_of(const whit_exec *exec, uint32_t worker, uint32_t head, uint32_t sequence)
{
    if (!exec->converted) return NULL;
    whit_exec_converted *converted = &exec->converted[worker];
    if (converted->run != exec->n_runs || converted->head != head || converted->sequence != sequence)
        *converted = (whit_exec_converted){.run = exec->n_runs, .head = head, .sequence = sequence};
    return converted;
}

/* Returns the index of the entry of group g if it is cached, else of a free entry, else of the last entry. */
static uint32_t slot_of(whit_exec_converted *converted, uint32_t g)
{
    for (uint32_t i = 0; i < converted->n_kept; i++)
        if (converted->of[i].group == g) return i;
    const uint32_t i =
        converted->n_kept < WHIT_EXEC_CONVERTED_GROUPS - 1 ? converted->n_kept++ : WHIT_EXEC_CONVERTED_GROUPS - 1;
    converted->of[i].group = g;
    converted->of[i].valid = 0;
    return i;
}

/* Attends to group g of one head and sequence; blocks that were converted before are reused. */
static void attend_group(const whit_exec_step *step, const whit_exec *exec, uint32_t worker,
                         whit_exec_converted *converted, uint32_t g, whit_kv_group group, const whit_kv_group *next,
                         const uint8_t *queries, const whit_kv_span *spans, uint32_t n, float *partials, float *into)
{
    const uint32_t i = converted ? slot_of(converted, g) : 0;
    if (converted) {
        group.converted = exec->converted_data + (worker * WHIT_EXEC_CONVERTED_GROUPS + i) * exec->converted_bytes;
        group.valid = converted->of[i].valid;
    }
    step->cache->attend(&group, next, queries, spans, n, step->head_dim, step->constant, partials, into);
    if (converted) converted->of[i].valid = group.valid;
}

/* ---- queries ---------------------------------------------------------------------------------- */

enum { ROTATED = 2 * WHIT_KV_MAX_HEAD_DIM };

/* Prepares n queries of a row for attention to the sinks. `rotated` are the queries, rotated like the keys of the
 * layer. */
static void ready_for_sinks(const whit_exec_step *step, const whit_exec *exec, uint32_t row, const float *rotated,
                            uint32_t n, uint8_t *ready)
{
    float back[ROTATED];
    const whit_exec_cache *cache = step->cache;
    uint32_t head_dim = step->head_dim, most = ROTATED / head_dim;
    const float *table = step->rope->sink_tables + (size_t)whit_exec_batch_row(step, exec, row) * 2 * step->rope->pairs;
    /* 0 pairs: scores do not depend on distance, so the queries are not rotated back */
    const uint32_t pairs = exec->kv->shape.layers[step->plan->layer].rope_pairs;
    for (uint32_t h = 0, k; h < n; h += k, rotated += k * head_dim) {
        k = n - h < most ? n - h : most;
        exec->kernels->rope_half(rotated, k, head_dim, pairs, table, back);
        cache->query(back, head_dim, k, head_dim, ready);
        ready += k * whit_kv_query_bytes(cache->class->type, head_dim);
    }
}

void whit_exec_ready(const whit_exec_step *step, const whit_exec *exec, uint32_t row, const float *x, uint8_t *ready,
                     uint8_t *for_sinks)
{
    const uint32_t n = step->cache->heads_per_kv_head;
    step->cache->query(x, step->head_dim, n, step->head_dim, ready);
    if (for_sinks) ready_for_sinks(step, exec, row, x, n, for_sinks);
}

/* Prepares queries like whit_exec_ready, but rotates them first. */
void whit_exec_ready_rotated(const whit_exec_step *step, const whit_exec *exec, uint32_t row, const float *x,
                             uint8_t *ready, uint8_t *for_sinks)
{
    float rotated[ROTATED];
    uint32_t head_dim = step->head_dim, n_heads = step->cache->heads_per_kv_head, n = n_heads;
    size_t query_bytes = whit_kv_query_bytes(step->cache->class->type, head_dim);
    const float *table = step->rope->tables + (size_t)whit_exec_batch_row(step, exec, row) * 2 * step->rope->pairs;
    for (uint32_t h = 0; h < n_heads; h += n, x += n * head_dim, ready += n * query_bytes) {
        n = n_heads - h < ROTATED / head_dim ? n_heads - h : ROTATED / head_dim;
        exec->kernels->rope_half(x, n, head_dim, step->rotary / 2, table, rotated);
        step->cache->query(rotated, head_dim, n, head_dim, ready);
        if (for_sinks) ready_for_sinks(step, exec, row, rotated, n, for_sinks + h * query_bytes);
    }
}

/* Prepares the queries of a query block for one KV head, and a second copy for the sinks if the block attends to
 * them. */
static void ready_queries(const whit_exec_step *step, const whit_exec *exec, const struct seen *seen, uint32_t head,
                          uint8_t *ready, uint8_t *for_sinks)
{
    /* number of rows from the current row to the prefetched row, which is prefetched for writing: outputs overwrite
     * queries */
    enum { ROWS_AHEAD = 3 };
    uint32_t n_heads = step->cache->heads_per_kv_head;
    size_t row_bytes = n_heads * whit_kv_query_bytes(step->cache->class->type, step->head_dim);
    size_t n = (size_t)n_heads * step->head_dim;
    const float *x = whit_exec_row_of(step, exec, step->input[0], step->input_stride[0], seen->row) + head * n;
    if (!seen->has_sinks) for_sinks = NULL;
    for (uint32_t r = seen->row; r < seen->end; r++, ready += row_bytes, x += step->input_stride[0]) {
        for (size_t i = 0; r + ROWS_AHEAD < seen->end && i < n; i += 16)
            __builtin_prefetch(x + ROWS_AHEAD * step->input_stride[0] + i, 1, 2);
        step->ready(step, exec, r, x, ready, for_sinks);
        if (for_sinks) for_sinks += row_bytes;
    }
}

/* Returns whether all rows of a query block attend to all of group g. Only two rows need a check: the window of the
 * first row ends first, and the window of the last row begins last. */
static bool sees_whole(const whit_exec_step *step, const whit_exec *exec, const struct seen *seen, uint32_t g)
{
    whit_kv_span first = span_of(step, exec, seen->row, g), last = span_of(step, exec, seen->end - 1, g);
    return first.begin == 0 && first.end == WHIT_KV_GROUP_TOKENS && last.begin == 0 && last.end == WHIT_KV_GROUP_TOKENS;
}

/* Sets `spans` to the positions of group g that each query of a block attends to. *are_whole becomes whether all spans
 * cover the whole group; if it was true before and stays true, the spans are not rewritten. */
static void make_spans(const whit_exec_step *step, const whit_exec *exec, const struct seen *seen, uint32_t g,
                       whit_kv_span *spans, bool *are_whole)
{
    const whit_kv_class *class = step->cache->class;
    bool were_whole = *are_whole;
    *are_whole = g != SINKS && sees_whole(step, exec, seen, g);
    if (*are_whole && were_whole) return;
    for (uint32_t row = seen->row, i = 0; row < seen->end; row++) {
        whit_kv_span span = {0, (uint16_t) class->n_sinks};
        if (g != SINKS) span = span_of(step, exec, row, g);
        for (uint32_t h = 0; h < step->cache->heads_per_kv_head; h++) spans[i++] = span;
    }
}

/* Adds the weight of an attention sink (a logit without a value) to a merged partial result. Scores are exponents of 2,
 * so the logit is multiplied by log2(e). */
static void add_sink(float sink, uint32_t head_dim, const whit_kernels *kernels, float *total)
{
    const float score = sink * WHIT_EXP_LOG2E, max = total[head_dim];
    if (score <= max) {
        total[head_dim + 1] += whit_exp2_below_0_f32(score - max);
        return;
    }
    const float factor = whit_exp2_below_0_f32(max - score);
    kernels->scale(total, factor, head_dim);
    total[head_dim] = score;
    total[head_dim + 1] = fmaf(total[head_dim + 1], factor, 1.0f);
}

/* Adds the attention sink, if any, to the merged partial result of query i, divides it by its sum and writes the
 * output. Query i is counted from the first query of row `row`. */
static void finish_query(const whit_exec_step *step, const whit_exec *exec, uint32_t row, uint32_t head, uint32_t i,
                         float *total)
{
    uint32_t n_heads = step->cache->heads_per_kv_head, head_dim = step->head_dim;
    float *out = whit_exec_row_of(step, exec, step->output, step->output_stride, row + i / n_heads);
    out += ((size_t)head * n_heads + i % n_heads) * head_dim;
    if (step->vector) add_sink(step->vector[head * n_heads + i % n_heads], head_dim, exec->kernels, total);
    step->cache->finish(total, head_dim, out);
}

/* ---- query blocks ----------------------------------------------------------------------------- */

/* Returns the number of rows per query block: as many as the kernels prefer, or fewer if the threads would have too few
 * items. */
uint32_t whit_exec_query_block_rows(const whit_exec *exec, const whit_exec_cache *cache, uint32_t n_threads,
                                    uint32_t n_rows)
{
    enum { LEAST_QUERIES = 128, ITEMS_OF_THREAD = 8 };
    uint32_t n_heads = cache->heads_per_kv_head, n_queries = exec->kernels->kv_queries, n = n_rows * n_heads;
    while (n_queries > LEAST_QUERIES && n / n_queries * cache->class->n_kv_heads < ITEMS_OF_THREAD * n_threads)
        n_queries /= 2;
    return n_heads < n_queries ? n_queries / n_heads : 1;
}

/* Returns whether rows at positions `a` and `b` of one sequence may share a query block: either both attend to the
 * sinks as a separate group or neither does, and both read the same blocks in the closed form. */
static bool sees_alike(const whit_kv_class *class, uint32_t a, uint32_t b)
{
    const uint32_t shift = WHIT_KV_BLOCK_TOKENS - WHIT_KV_LINGER_TOKENS;
    if (whit_kv_is_packed(class->type) && (a + shift) / WHIT_KV_BLOCK_TOKENS != (b + shift) / WHIT_KV_BLOCK_TOKENS)
        return false;
    return has_left(class, a) == has_left(class, b);
}

/* Cuts a row set of the pass into query blocks: adjacent rows of one sequence, which read the sequence's keys and
 * values together. */
static void make_query_blocks(const whit_exec *exec, whit_exec_cache *cache, int rows)
{
    const uint32_t *positions = exec->positions[rows], *sequences = exec->sequences[rows], n_rows = exec->n_rows[rows];
    uint32_t most = whit_exec_query_block_rows(exec, cache, whit_pool_size(exec->pool), n_rows);
    struct whit_exec_query_blocks *blocks = &cache->query_blocks[rows];
    blocks->n = 0;
    for (uint32_t r = 0; r < n_rows;) {
        blocks->first[blocks->n++] = r;
        uint32_t begin = r++;
        while (r < n_rows && r - begin < most && sequences[r] == sequences[begin] && positions[r] > positions[r - 1] &&
               sees_alike(cache->class, positions[begin], positions[r]))
            r++;
    }
    blocks->first[blocks->n] = n_rows;
}

void whit_exec_make_query_blocks(whit_exec *exec)
{
    for (uint32_t c = 0; c < exec->kv->n_classes; c++) {
        if (exec->kv->classes[c].role != WHIT_KV_ROLE_LAYERS) continue;
        make_query_blocks(exec, &exec->caches[c], WHIT_ROWS_BATCH);
        if (exec->caches[c].query_blocks[WHIT_ROWS_SELECTED].first)
            make_query_blocks(exec, &exec->caches[c], WHIT_ROWS_SELECTED);
    }
    exec->n_closing = 0;
    for (uint32_t r = 0; exec->closing && r < exec->batch->n_rows; r++)
        if ((exec->batch->positions[r] + 1) % WHIT_KV_BLOCK_TOKENS == 0) exec->closing[exec->n_closing++] = r;
}

void whit_exec_attend(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, uint32_t begin, uint32_t end)
{
    const whit_exec_cache *cache = step->cache;
    const uint32_t n_blocks = cache->query_blocks[step->rows].n;
    uint8_t *scratch = exec->scratch + worker * exec->scratch_bytes;
    size_t elems = whit_kv_partial_elems(step->head_dim);
    /* Consecutive items are query blocks of one head, which read the same keys and values. */
    for (uint32_t item = begin; item < end; item++) {
        const uint32_t head = item / n_blocks;
        const struct seen seen = groups_seen(step, exec, item % n_blocks);
        uint32_t n = (seen.end - seen.row) * cache->heads_per_kv_head;
        struct layout at = layout_of(cache->class, n);
        whit_kv_span *spans = (whit_kv_span *)(scratch + at.spans);
        float *total = (float *)(void *)(scratch + at.total), *partials = (float *)(void *)(scratch + at.partials);
        ready_queries(step, exec, &seen, head, scratch + at.queries, scratch + at.sink_queries);
        for (uint32_t i = 0; i < n; i++) total[i * elems + step->head_dim + 1] = 0; /* sum 0: an empty partial */
        bool spans_are_whole = false;
        whit_kv_group next = group_of(step, exec, &seen, head, seen_at(&seen, 0));
        whit_exec_converted *converted = converted_of(exec, worker, head, exec->sequences[step->rows][seen.row]);
        for (uint32_t i = 0; i < seen.n; i++) {
            const uint32_t g = seen_at(&seen, i);
            make_spans(step, exec, &seen, g, spans, &spans_are_whole);
            const whit_kv_group group = next;
            if (i + 1 < seen.n) next = group_of(step, exec, &seen, head, seen_at(&seen, i + 1));
            attend_group(step, exec, worker, converted, g, group, &next,
                         scratch + (g == SINKS ? at.sink_queries : at.queries), spans, n, partials, total);
        }
        for (uint32_t i = 0; i < n; i++) finish_query(step, exec, seen.row, head, i, total + i * elems);
    }
}

/* ---- split-KV ----------------------------------------------------------------------- */

/* Returns whether attention is split over KV groups: only if there is a single query block with several groups, few KV
 * heads (otherwise the threads have enough items), and room for all partial results. */
static bool splits_kv(const whit_exec_step *step, const whit_exec *exec)
{
    const whit_exec_cache *cache = step->cache;
    if (cache->query_blocks[step->rows].n != 1 || cache->class->n_kv_heads >= 8 * whit_pool_size(exec->pool))
        return false;
    const struct seen seen = groups_seen(step, exec, 0);
    uint64_t n_partials = (uint64_t)seen.n * cache->class->n_kv_heads * (seen.end - seen.row);
    n_partials *= cache->heads_per_kv_head;
    return n_partials * whit_kv_partial_elems(step->head_dim) <= exec->n_partial_elems && seen.n > 1;
}

/* Splits the KV cache of one query block (flash decoding). Items are (KV head, group) pairs. Every worker has a split,
 * which is a range of items, so that it can merge most groups immediately. If two splits share a head, the first split
 * computes its part of the head first, and the second split computes its part last: by then it can usually continue
 * from the groups that the first split has merged. Partial results that cannot be merged in order (those of chunks
 * stolen from another worker's split) are kept and merged at the end.
 *
 * Queries are prepared once, (n_kv_heads, n), and once more for the sinks if the block attends to them. Partial results
 * are (n_kv_heads, n_groups, n); the first one of each head accumulates the merged result. */
enum { CHUNKS_PER_SPLIT = 8 };

struct split_kv {
    const whit_exec_step *step;
    const whit_exec *exec;
    struct seen seen;
    uint32_t n_groups; /* number of groups, equal to seen.n */
    uint32_t n;        /* number of queries of one KV head */
    uint32_t n_splits;
};

static uint8_t *queries_of(const struct split_kv *d, uint32_t head, uint32_t g)
{
    const whit_kv_class *class = d->step->cache->class;
    size_t place = (size_t)head + (g == SINKS ? class->n_kv_heads : 0);
    return d->exec->queries + place * d->n * whit_kv_query_bytes(class->type, d->step->head_dim);
}

static float *partials_of(const struct split_kv *d, uint32_t head, uint32_t group)
{
    size_t i = (size_t)head * d->n_groups + group;
    return d->exec->partials + i * d->n * whit_kv_partial_elems(d->step->head_dim);
}

/* Returns the item at index `place` of the execution order of a split [begin, end): first the items of the split's last
 * head, then of its other whole heads, then its part of its first head. */
static uint32_t item_at(const struct split_kv *d, uint32_t begin, uint32_t end, uint32_t place)
{
    uint32_t whole = (begin + d->n_groups - 1) / d->n_groups * d->n_groups,
             last = (end - 1) / d->n_groups * d->n_groups;
    if (last < whole) return begin + place;
    if (place < end - last) return last + place;
    place -= end - last;
    return place < last - whole ? whole + place : begin + place - (last - whole);
}

static whit_kv_group group_of_item(const struct split_kv *d, uint32_t item)
{
    return group_of(d->step, d->exec, &d->seen, item / d->n_groups, seen_at(&d->seen, item % d->n_groups));
}

/* Computes the items with indices [from, to) in the execution order of the split [begin, end). */
static void attend_places(const struct split_kv *d, uint32_t worker, uint32_t begin, uint32_t end, uint32_t from,
                          uint32_t to)
{
    const whit_exec *exec = d->exec;
    uint8_t *scratch = exec->scratch + worker * exec->scratch_bytes;
    struct layout at = layout_of(d->step->cache->class, d->n);
    whit_kv_span *spans = (whit_kv_span *)(scratch + at.spans);
    float *partials = (float *)(void *)(scratch + at.partials);
    bool spans_are_whole = false, merges = false;
    for (uint32_t place = from, before = UINT32_MAX; place < to; place++) {
        uint32_t item = item_at(d, begin, end, place), head = item / d->n_groups, group = item % d->n_groups;
        const uint32_t g = seen_at(&d->seen, group);
        if (item != before + 1 || group == 0)
            merges = group == 0 || atomic_load_explicit(&exec->n_merged[head], memory_order_acquire) == group;
        make_spans(d->step, exec, &d->seen, g, spans, &spans_are_whole);
        bool goes_on = merges && group > 0;
        float *own = goes_on ? partials : partials_of(d, head, group);
        float *into = goes_on ? partials_of(d, head, 0) : NULL;
        uint32_t next = place + 1 < end - begin ? item_at(d, begin, end, place + 1) : item;
        const whit_kv_group these = group_of_item(d, item), those = group_of_item(d, next);
        whit_exec_converted *converted = converted_of(exec, worker, head, exec->sequences[d->step->rows][d->seen.row]);
        attend_group(d->step, exec, worker, converted, g, these, &those, queries_of(d, head, g), spans, d->n, own,
                     into);
        bool is_last = place + 1 == to || next != item + 1 || group + 1 == d->n_groups;
        if (merges && is_last) atomic_store_explicit(&exec->n_merged[head], group + 1, memory_order_release);
        before = item;
    }
}

static void attend_chunks(void *context, uint32_t worker, uint32_t chunk, uint32_t chunk_end)
{
    const struct split_kv *d = context;
    uint64_t n_items = (uint64_t)d->n_groups * d->step->cache->class->n_kv_heads;
    for (; chunk < chunk_end; chunk++) {
        uint32_t split = chunk / CHUNKS_PER_SPLIT, piece = chunk % CHUNKS_PER_SPLIT;
        uint32_t begin = (uint32_t)(n_items * split / d->n_splits),
                 end = (uint32_t)(n_items * (split + 1) / d->n_splits);
        uint32_t from = (end - begin) * piece / CHUNKS_PER_SPLIT, to = (end - begin) * (piece + 1) / CHUNKS_PER_SPLIT;
        attend_places(d, worker, begin, end, from, to);
    }
}

static void finish_heads(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct split_kv *d = context;
    (void)worker;
    for (uint32_t head = begin; head < end; head++) {
        float *total = partials_of(d, head, 0);
        for (uint32_t b = atomic_load_explicit(&d->exec->n_merged[head], memory_order_relaxed); b < d->n_groups; b++)
            d->exec->kernels->kv_merge(total, partials_of(d, head, b), d->n, d->step->head_dim);
        for (uint32_t i = 0; i < d->n; i++)
            finish_query(d->step, d->exec, d->seen.row, head, i, total + i * whit_kv_partial_elems(d->step->head_dim));
    }
}

static void attend_split_kv(const whit_exec_step *step, const whit_exec *exec)
{
    const uint32_t n_kv_heads = step->cache->class->n_kv_heads;
    struct split_kv d = {
        .step = step, .exec = exec, .seen = groups_seen(step, exec, 0), .n_splits = whit_pool_size(exec->pool)};
    d.n = (d.seen.end - d.seen.row) * step->cache->heads_per_kv_head;
    d.n_groups = d.seen.n;
    for (uint32_t head = 0; head < n_kv_heads; head++) {
        ready_queries(step, exec, &d.seen, head, queries_of(&d, head, 0), queries_of(&d, head, SINKS));
        atomic_store_explicit(&exec->n_merged[head], 0, memory_order_relaxed);
    }
    whit_pool_run(exec->pool, attend_chunks, &d, d.n_splits * CHUNKS_PER_SPLIT, 1);
    bool all_merged = true;
    for (uint32_t head = 0; head < n_kv_heads; head++)
        all_merged &= atomic_load_explicit(&exec->n_merged[head], memory_order_relaxed) == d.n_groups;
    if (all_merged)
        finish_heads(&d, 0, 0, n_kv_heads);
    else
        whit_pool_run(exec->pool, finish_heads, &d, n_kv_heads, 1);
}

struct closing {
    const whit_exec_step *step;
    const whit_exec *exec;
};

/* Packs blocks of a layer whose last position is in this pass into their closed form. Items are (row of that position,
 * KV head) pairs. */
static void close_blocks(void *attend_step, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct closing *c = attend_step;
    const whit_kv_class *class = c->step->cache->class;
    const whit_kv_packing how = {.rope = c->step->rope->offset_table, .rope_pairs = class->rope_pairs};
    (void)worker;
    for (uint32_t item = begin; item < end; item++) {
        const uint32_t row = c->exec->closing[item / class->n_kv_heads], head = item % class->n_kv_heads;
        const uint32_t sequence = c->exec->batch->sequences[row], layer = c->step->layer;
        const uint32_t block = c->exec->batch->positions[row] / WHIT_KV_BLOCK_TOKENS;
        void *sinks = NULL;
        if (block == 0) sinks = whit_kv_class_block(whit_kv_sinks_class(class), layer, head, sequence, 0);
        c->step->cache->pack(whit_kv_class_block(c->step->cache->open, layer, head, sequence, block), class->head_dim,
                             &how, whit_kv_class_block(class, layer, head, sequence, block), sinks);
    }
}

void whit_exec_run_heads_phase(whit_exec *exec, const whit_exec_phase *phase, uint32_t n_rows)
{
    whit_exec_phase_run run = {.exec = exec, .phase = phase, .n_rows = n_rows};
    const whit_exec_cache *cache = phase->steps->cache;
    if (cache->pack && exec->n_closing && !phase->steps->plan->is_shared) {
        struct closing closing = {phase->steps, exec};
        whit_pool_run(exec->pool, close_blocks, &closing, exec->n_closing * cache->class->n_kv_heads, 1);
    }
    if (splits_kv(phase->steps, exec))
        attend_split_kv(phase->steps, exec);
    else
        whit_pool_run(exec->pool, whit_exec_run_rows, &run,
                      cache->query_blocks[phase->rows].n * cache->class->n_kv_heads, 1);
}
