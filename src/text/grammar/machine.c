/* SPDX-License-Identifier: MIT
 * Implements the pushdown machine: closures, steps, and pools. */
#include "grammar/machine.h"
#include "base/items.h"

#include <stdlib.h>

enum {
    FIRST_SLOTS = 1 << 10,
    MOST_WORK = 1 << 16,
    MOST_FRAMES = 1 << 18,
    MOST_CONFIGURATIONS = 1 << 17,
    MOST_THREADS_KEPT = 1 << 20,
    MOST_ROW_BYTES = 16 << 20
};

static void exceed(whit_state_pool *pool, const char *limit)
{
    pool->failed = true;
    pool->limit = limit;
}

/* ---- hashing --------------------------------------------------------------------------------- */

static uint32_t mix(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ (b * 0x9E3779B97F4A7C15u)) * 0xBF58476D1CE4E5B9u;
    h ^= h >> 31;
    h *= 0x94D049BB133111EBu;
    return (uint32_t)(h >> 32);
}

static uint32_t hash_frame(const whit_stack_frame *f)
{
    return mix((uint64_t)f->node << 32 | f->parent, (uint64_t)f->need << 32 | f->room);
}

static uint32_t hash_threads(const whit_stack_thread *threads, uint32_t n, bool complete)
{
    uint64_t h = n * 2 + complete;
    for (uint32_t i = 0; i < n; i++) h = mix(h, (uint64_t)threads[i].node << 32 | threads[i].frame) + (h << 7);
    return mix(h, n);
}

typedef uint32_t hash_of_fn(const whit_state_pool *pool, uint32_t at);
static uint32_t hash_of_frame(const whit_state_pool *pool, uint32_t at)
{
    return hash_frame(whit_state_pool_frame(pool, at));
}
static uint32_t hash_of_configuration(const whit_state_pool *pool, uint32_t at)
{
    const whit_configuration *c = whit_state_pool_at(pool, at);
    return hash_threads(WHIT_ITEMS(const whit_stack_thread, &pool->threads) + c->first, c->n_threads, c->complete);
}

static bool grow_slots(whit_state_pool *pool, uint32_t **slots, uint32_t *n_slots, uint32_t n_items,
                       hash_of_fn *hash_of)
{
    uint32_t n = *n_slots ? *n_slots * 2 : FIRST_SLOTS;
    uint32_t *larger = whit_zalloc_array(pool->allocator, n, sizeof *larger);
    if (!larger) {
        pool->failed = true;
        return false;
    }
    for (uint32_t i = 0; i < n_items; i++) {
        uint32_t at = hash_of(pool, i) & (n - 1);
        while (larger[at]) at = (at + 1) & (n - 1);
        larger[at] = i + 1;
    }
    whit_free(pool->allocator, *slots, *n_slots * sizeof **slots);
    *slots = larger;
    *n_slots = n;
    return true;
}

uint32_t whit_state_pool_n_frames(const whit_state_pool *pool)
{
    return (uint32_t)(pool->frames.size_bytes / sizeof(whit_stack_frame));
}

uint32_t whit_state_pool_n_configurations(const whit_state_pool *pool)
{
    return (uint32_t)(pool->configurations.size_bytes / sizeof(whit_configuration));
}

/* ---- pools ----------------------------------------------------------------------------------- */

whit_status whit_state_pool_open(const whit_automaton *graph, const whit_allocator *allocator, whit_state_pool *pool,
                                 whit_error *error)
{
    *pool = (whit_state_pool){.graph = graph, .allocator = allocator, .n_seen = FIRST_SLOTS, .work_left = UINT64_MAX};
    whit_buf *const bufs[] = {&pool->frames, &pool->threads, &pool->configurations,
                              &pool->rows,   &pool->work,    &pool->found};
    for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++) bufs[i]->allocator = allocator;
    pool->seen = whit_zalloc_array(allocator, pool->n_seen, sizeof *pool->seen);
    pool->seen_at = whit_zalloc_array(allocator, pool->n_seen, sizeof *pool->seen_at);
    if (pool->seen && pool->seen_at && grow_slots(pool, &pool->frame_slots, &pool->n_frame_slots, 0, hash_of_frame) &&
        grow_slots(pool, &pool->configuration_slots, &pool->n_configuration_slots, 0, hash_of_configuration)) {
        whit_state_pool_clear(pool);
        if (!pool->failed) return WHIT_OK;
    }
    whit_state_pool_close(pool);
    return whit_fail_memory(error, "the states of the grammar", FIRST_SLOTS * sizeof *pool->seen);
}

void whit_state_pool_close(whit_state_pool *pool)
{
    whit_buf_free(&pool->frames);
    whit_buf_free(&pool->threads);
    whit_buf_free(&pool->configurations);
    whit_buf_free(&pool->rows);
    whit_buf_free(&pool->work);
    whit_buf_free(&pool->found);
    whit_free(pool->allocator, pool->frame_slots, pool->n_frame_slots * sizeof *pool->frame_slots);
    whit_free(pool->allocator, pool->configuration_slots, pool->n_configuration_slots * sizeof(uint32_t));
    whit_free(pool->allocator, pool->seen, pool->n_seen * sizeof *pool->seen);
    whit_free(pool->allocator, pool->seen_at, pool->n_seen * sizeof *pool->seen_at);
    *pool = (whit_state_pool){0};
}

static uint32_t keep_configuration(whit_state_pool *pool, const whit_stack_thread *threads, uint32_t n, bool complete);

void whit_state_pool_clear(whit_state_pool *pool)
{
    whit_stack_frame bottom = {.node = WHIT_AUTOMATON_NONE};
    pool->frames.size_bytes = pool->threads.size_bytes = pool->configurations.size_bytes = pool->rows.size_bytes = 0;
    memset(pool->frame_slots, 0, pool->n_frame_slots * sizeof *pool->frame_slots);
    memset(pool->configuration_slots, 0, pool->n_configuration_slots * sizeof *pool->configuration_slots);
    pool->failed = false;
    pool->limit = NULL;
    whit_state_pool_keep_frame(pool, bottom);
    keep_configuration(pool, NULL, 0, false);
}

uint32_t whit_state_pool_keep_frame(whit_state_pool *pool, whit_stack_frame frame)
{
    uint32_t mask = pool->n_frame_slots - 1, at = hash_frame(&frame) & mask;
    for (; pool->frame_slots[at]; at = (at + 1) & mask) {
        const whit_stack_frame *f = whit_state_pool_frame(pool, pool->frame_slots[at] - 1);
        if (f->node == frame.node && f->parent == frame.parent && f->need == frame.need && f->room == frame.room)
            return pool->frame_slots[at] - 1;
    }
    uint32_t id = whit_state_pool_n_frames(pool);
    frame.depth = id ? whit_state_pool_frame(pool, frame.parent)->depth + 1 : 0;
    frame.bounded = 0;
    if (id >= MOST_FRAMES) {
        exceed(pool, "its rules nest in more than 2^18 ways");
        return WHIT_MACHINE_BOTTOM;
    }
    if (!whit_buf_append(&pool->frames, &frame, sizeof frame)) {
        pool->failed = true;
        return WHIT_MACHINE_BOTTOM;
    }
    pool->frame_slots[at] = id + 1;
    if (id * 2 > pool->n_frame_slots) grow_slots(pool, &pool->frame_slots, &pool->n_frame_slots, id + 1, hash_of_frame);
    return id;
}

static uint32_t keep_configuration(whit_state_pool *pool, const whit_stack_thread *threads, uint32_t n, bool complete)
{
    uint32_t mask = pool->n_configuration_slots - 1, at = hash_threads(threads, n, complete) & mask;
    for (; pool->configuration_slots[at]; at = (at + 1) & mask) {
        const whit_configuration *c = whit_state_pool_at(pool, pool->configuration_slots[at] - 1);
        if (c->n_threads == n && c->complete == complete &&
            (n == 0 ||
             memcmp(WHIT_ITEMS(const whit_stack_thread, &pool->threads) + c->first, threads, n * sizeof *threads) == 0))
            return pool->configuration_slots[at] - 1;
    }
    uint32_t id = whit_state_pool_n_configurations(pool);
    whit_configuration c = {
        .first = (uint32_t)(pool->threads.size_bytes / sizeof *threads), .n_threads = n, .complete = complete};
    if (id >= MOST_CONFIGURATIONS || c.first > MOST_THREADS_KEPT) {
        exceed(pool, "it has more than 2^17 states");
        return WHIT_MACHINE_DEAD;
    }
    if ((n && !whit_buf_append(&pool->threads, threads, n * sizeof *threads)) ||
        !whit_buf_append(&pool->configurations, &c, sizeof c)) {
        pool->failed = true;
        return WHIT_MACHINE_DEAD;
    }
    pool->configuration_slots[at] = id + 1;
    if (id * 2 > pool->n_configuration_slots)
        grow_slots(pool, &pool->configuration_slots, &pool->n_configuration_slots, id + 1, hash_of_configuration);
    return id;
}

/* ---- closures: all threads that can be reached without a byte ---------------------------------- */

static void grow_seen(whit_state_pool *pool)
{
    uint32_t n = pool->n_seen * 2;
    uint64_t *seen = whit_zalloc_array(pool->allocator, n, sizeof *seen);
    uint32_t *seen_at = whit_zalloc_array(pool->allocator, n, sizeof *seen_at);
    if (!seen || !seen_at) {
        whit_free(pool->allocator, seen, n * sizeof *seen);
        whit_free(pool->allocator, seen_at, n * sizeof *seen_at);
        pool->failed = true;
        return;
    }
    for (uint32_t i = 0; i < pool->n_in_seen; i++) {
        uint64_t key = pool->seen[pool->seen_at[i]];
        uint32_t at = mix(key, 1) & (n - 1);
        while (seen[at]) at = (at + 1) & (n - 1);
        seen[at] = key;
        seen_at[i] = at;
    }
    whit_free(pool->allocator, pool->seen, pool->n_seen * sizeof *seen);
    whit_free(pool->allocator, pool->seen_at, pool->n_seen * sizeof *seen_at);
    pool->seen = seen;
    pool->seen_at = seen_at;
    pool->n_seen = n;
}

/* Adds (node, frame) to the threads to be visited, unless it was visited before or cannot reach an end within the depth
 * limit. */
static void visit(whit_state_pool *pool, uint32_t node, uint32_t frame)
{
    if (pool->failed) return;
    if (pool->work_left == 0) {
        exceed(pool, "the search for one token takes more than 2^22 steps");
        return;
    }
    pool->work_left--;
    uint32_t height = whit_automaton_at(pool->graph, node)->height;
    if (whit_state_pool_frame(pool, frame)->depth + height > WHIT_AUTOMATON_MAX_DEPTH) return;
    uint64_t key = ((uint64_t)node << 32 | frame) + 1;
    uint32_t mask = pool->n_seen - 1, at = mix(key, 1) & mask;
    for (; pool->seen[at]; at = (at + 1) & mask)
        if (pool->seen[at] == key) return;
    if (pool->n_in_seen >= MOST_WORK) {
        exceed(pool, "there are too many ways to read the same text");
        return;
    }
    pool->seen[at] = key;
    pool->seen_at[pool->n_in_seen++] = at;
    whit_stack_thread thread = {node, frame};
    if (!whit_buf_append(&pool->work, &thread, sizeof thread)) pool->failed = true;
    if (pool->n_in_seen * 2 > pool->n_seen) grow_seen(pool);
}

static uint32_t one_less(uint32_t count)
{
    return count == 0 || count == WHIT_MACHINE_MANY ? count : count - 1;
}

/* Continues the repetition at `node` with the next turn: visits its next node if no more turns are needed, and its body
 * if there is room for another. */
static void turn(whit_state_pool *pool, uint32_t node, uint32_t need, uint32_t room, uint32_t parent)
{
    const whit_automaton_node *n = whit_automaton_at(pool->graph, node);
    if (need == 0) visit(pool, n->b, parent);
    if (room == 0) return;
    const whit_automaton_repetition *r = WHIT_ITEMS(const whit_automaton_repetition, &pool->graph->repetitions) + n->a;
    whit_stack_frame frame = {.node = node, .parent = parent, .need = one_less(need), .room = one_less(room)};
    visit(pool, r->body, whit_state_pool_keep_frame(pool, frame));
}

static void look(whit_state_pool *pool, whit_stack_thread at)
{
    const whit_automaton *graph = pool->graph;
    const whit_automaton_node *n = whit_automaton_at(graph, at.node);
    switch ((whit_automaton_kind)n->kind) {
    case WHIT_AUTOMATON_END: {
        whit_stack_frame frame = *whit_state_pool_frame(pool, at.frame);
        if (at.frame == WHIT_MACHINE_BOTTOM)
            pool->complete = true;
        else if (whit_automaton_at(graph, frame.node)->kind == WHIT_AUTOMATON_REPEAT)
            turn(pool, frame.node, frame.need, frame.room, frame.parent);
        else
            visit(pool, whit_automaton_at(graph, frame.node)->b, frame.parent);
        break;
    }
    case WHIT_AUTOMATON_BYTES:
        if (!whit_buf_append(&pool->found, &at, sizeof at)) pool->failed = true;
        break;
    case WHIT_AUTOMATON_SPLIT:
        for (uint32_t i = 0; i < n->b; i++)
            visit(pool, (WHIT_ITEMS(const uint32_t, &graph->edges))[n->a + i], at.frame);
        break;
    case WHIT_AUTOMATON_CALL: {
        uint32_t begin = (WHIT_ITEMS(const uint32_t, &graph->rules))[n->a];
        whit_stack_frame frame = {.node = at.node, .parent = at.frame};
        visit(pool, begin, n->b == WHIT_AUTOMATON_RET ? at.frame : whit_state_pool_keep_frame(pool, frame));
        break;
    }
    case WHIT_AUTOMATON_REPEAT: {
        const whit_automaton_repetition *r = WHIT_ITEMS(const whit_automaton_repetition, &graph->repetitions) + n->a;
        turn(pool, at.node, r->min, r->max, at.frame);
        break;
    }
    }
}

static int by_number(const void *a, const void *b)
{
    const whit_stack_thread *x = a, *y = b;
    if (x->node != y->node) return x->node < y->node ? -1 : 1;
    return x->frame < y->frame ? -1 : x->frame > y->frame;
}

static void begin_closure(whit_state_pool *pool)
{
    pool->work.size_bytes = pool->found.size_bytes = 0;
    pool->complete = false;
}

static uint32_t end_closure(whit_state_pool *pool)
{
    while (pool->work.size_bytes && !pool->failed) {
        pool->work.size_bytes -= sizeof(whit_stack_thread);
        look(pool, *(const whit_stack_thread *)(pool->work.data + pool->work.size_bytes));
    }
    for (uint32_t i = 0; i < pool->n_in_seen; i++) pool->seen[pool->seen_at[i]] = 0;
    pool->n_in_seen = 0;
    uint32_t n = (uint32_t)(pool->found.size_bytes / sizeof(whit_stack_thread));
    if (n > WHIT_MACHINE_MAX_THREADS) exceed(pool, "there are too many ways to read the same text");
    if (pool->failed) return WHIT_MACHINE_DEAD;
    whit_stack_thread *threads = WHIT_ITEMS(whit_stack_thread, &pool->found);
    if (n > 1) qsort(threads, n, sizeof *threads, by_number);
    return keep_configuration(pool, threads, n, pool->complete);
}

uint32_t whit_state_pool_begin(whit_state_pool *pool, uint32_t rule)
{
    begin_closure(pool);
    visit(pool, (WHIT_ITEMS(const uint32_t, &pool->graph->rules))[rule], WHIT_MACHINE_BOTTOM);
    return end_closure(pool);
}

uint32_t whit_state_pool_step(whit_state_pool *pool, uint32_t configuration, uint8_t byte)
{
    const whit_byte_set *sets = WHIT_ITEMS(const whit_byte_set, &pool->graph->sets);
    begin_closure(pool);
    whit_configuration c = *whit_state_pool_at(pool, configuration);
    for (uint32_t i = 0; i < c.n_threads; i++) {
        whit_stack_thread thread = (WHIT_ITEMS(const whit_stack_thread, &pool->threads))[c.first + i];
        const whit_automaton_node *n = whit_automaton_at(pool->graph, thread.node);
        if (whit_byte_in(&sets[n->a], byte)) visit(pool, n->b, thread.frame);
    }
    return pool->n_in_seen ? end_closure(pool) : WHIT_MACHINE_DEAD;
}

uint32_t whit_state_pool_step_remembered(whit_state_pool *pool, uint32_t configuration, uint8_t byte)
{
    size_t n_classes = pool->graph->n_classes;
    whit_configuration *c = whit_state_pool_at(pool, configuration);
    if (!c->row && pool->rows.size_bytes > MOST_ROW_BYTES) return whit_state_pool_step(pool, configuration, byte);
    if (!c->row) {
        size_t n_bytes = n_classes * sizeof(uint32_t), at = pool->rows.size_bytes;
        if (!whit_buf_append_zeros(&pool->rows, n_bytes)) {
            pool->failed = true;
            return WHIT_MACHINE_DEAD;
        }
        c->row = (uint32_t)(at / n_bytes) + 1;
    }
    size_t at = (c->row - 1) * n_classes + pool->graph->class_of[byte];
    uint32_t known = (WHIT_ITEMS(const uint32_t, &pool->rows))[at];
    if (known) return known - 1;
    uint32_t to = whit_state_pool_step(pool, configuration, byte);
    if (!pool->failed) (WHIT_ITEMS(uint32_t, &pool->rows))[at] = to + 1;
    return to;
}

/* ---- copying between pools --------------------------------------------------------------------- */

static uint32_t bound(uint32_t count, uint32_t most)
{
    return most && count > most ? WHIT_MACHINE_MANY : count;
}

static uint32_t import_frame(whit_state_pool *pool, whit_state_pool *from, uint32_t frame, uint32_t most)
{
    uint32_t chain[WHIT_AUTOMATON_MAX_DEPTH + 2], n = 0, to = WHIT_MACHINE_BOTTOM;
    for (; frame != WHIT_MACHINE_BOTTOM; frame = whit_state_pool_frame(from, frame)->parent) {
        if (whit_state_pool_frame(from, frame)->bounded) {
            to = whit_state_pool_frame(from, frame)->bounded - 1;
            break;
        }
        chain[n++] = frame;
    }
    while (n) {
        whit_stack_frame *f = whit_state_pool_frame(from, chain[--n]);
        to = whit_state_pool_keep_frame(
            pool, (whit_stack_frame){f->node, to, bound(f->need, most), bound(f->room, most), 0, 0});
        f->bounded = to + 1;
    }
    return to;
}

uint32_t whit_state_pool_import(whit_state_pool *pool, whit_state_pool *from, uint32_t configuration, uint32_t most)
{
    whit_configuration c = *whit_state_pool_at(from, configuration);
    begin_closure(pool);
    for (uint32_t i = 0; i < c.n_threads; i++) {
        whit_stack_thread thread = (WHIT_ITEMS(const whit_stack_thread, &from->threads))[c.first + i];
        thread.frame = import_frame(pool, from, thread.frame, most);
        if (!whit_buf_append(&pool->found, &thread, sizeof thread)) pool->failed = true;
    }
    if (pool->failed) return WHIT_MACHINE_DEAD;
    whit_stack_thread *threads = WHIT_ITEMS(whit_stack_thread, &pool->found);
    if (c.n_threads > 1) qsort(threads, c.n_threads, sizeof *threads, by_number);
    uint32_t n = 0; /* threads that differed only in counts may be equal now */
    for (uint32_t i = 0; i < c.n_threads; i++)
        if (n == 0 || by_number(&threads[n - 1], &threads[i])) threads[n++] = threads[i];
    return keep_configuration(pool, threads, n, c.complete);
}
