/* SPDX-License-Identifier: MIT
 * Runs grammars: computes token masks by walking the vocabulary's trie, and advances states by tokens. */
#include "grammar/grammar.h"
#include "base/items.h"

enum { MASK_BYTES = 8 << 20, MOST_MASKS = 512, FEWEST_MASKS = 8, FIRST_COLLECT = 1 << 15, FULL_ROW_BYTES = 8 << 20 };
enum { MOST_LOOKS = 4 << 20 }; /* limit of the graph's nodes that are visited for one mask or one token */

/* ---- opening --------------------------------------------------------------------------------- */

static whit_status fail_pool(const whit_state_pool *pool, whit_error *error)
{
    if (pool->limit)
        return whit_fail(error, WHIT_ERROR_LIMIT,
                         "the grammar is too ambiguous: %s; let its alternatives begin differently", pool->limit);
    return whit_fail_memory(error, "the states of the grammar", pool->frames.size_bytes);
}

/* Opens the state pools and allocates the masks of a grammar whose graph is set. The caller closes the grammar on
 * failure. */
static whit_status open_parts(whit_grammar *g, const char *name, size_t mask_bytes, whit_error *error)
{
    WHIT_TRY(whit_state_pool_open(&g->graph, g->allocator, &g->exact, error));
    WHIT_TRY(whit_state_pool_open(&g->graph, g->allocator, &g->bounded, error));
    g->masks = whit_zalloc_array(g->allocator, g->n_masks, g->vocabulary->n_words * sizeof *g->masks);
    g->mask_owner = whit_zalloc_array(g->allocator, g->n_masks, sizeof *g->mask_owner);
    g->path = whit_zalloc_array(g->allocator, g->vocabulary->longest_bytes + 1, sizeof *g->path);
    if (!g->masks || !g->mask_owner || !g->path)
        return whit_fail_memory(error, "the masks of a grammar", g->n_masks * mask_bytes);
    g->begin = whit_state_pool_begin(&g->exact, 0);
    if (g->exact.failed) return fail_pool(&g->exact, error);
    if (g->begin == WHIT_MACHINE_DEAD)
        return whit_fail(
            error, WHIT_ERROR_FORMAT,
            "%s: no finite text satisfies this grammar: every text would need the same rule again without end", name);
    return WHIT_OK;
}

whit_status whit_grammar_make(const whit_grammar_vocabulary *vocabulary, whit_automaton *graph, const char *name,
                              whit_grammar **grammar, whit_error *error)
{
    const whit_allocator *allocator = vocabulary->allocator;
    *grammar = NULL;
    whit_grammar *g = whit_zalloc(allocator, sizeof *g);
    if (!g) {
        whit_automaton_close(graph);
        return whit_fail_memory(error, "a grammar", sizeof *g);
    }
    g->vocabulary = vocabulary;
    g->allocator = allocator;
    g->graph = *graph;
    *graph = (whit_automaton){0};
    g->collect_at = FIRST_COLLECT;
    size_t mask_bytes = vocabulary->n_words * sizeof *g->masks + 1;
    g->n_masks = (uint32_t)(MASK_BYTES / mask_bytes);
    if (g->n_masks > MOST_MASKS) g->n_masks = MOST_MASKS;
    if (g->n_masks < FEWEST_MASKS) g->n_masks = FEWEST_MASKS;
    whit_status status = open_parts(g, name, mask_bytes, error);
    if (status == WHIT_OK)
        *grammar = g;
    else
        whit_grammar_close(g);
    return status;
}

void whit_grammar_close(whit_grammar *g)
{
    if (!g) return;
    whit_state_pool_close(&g->exact);
    whit_state_pool_close(&g->bounded);
    whit_automaton_close(&g->graph);
    whit_free(g->allocator, g->masks, g->n_masks * (g->vocabulary->n_words * sizeof *g->masks));
    whit_free(g->allocator, g->mask_owner, g->n_masks * sizeof *g->mask_owner);
    whit_free(g->allocator, g->path, (g->vocabulary->longest_bytes + 1) * sizeof *g->path);
    whit_free(g->allocator, g, sizeof *g);
}

/* ---- states ---------------------------------------------------------------------------------- */

static whit_status add_state(whit_grammar *g, const whit_grammar_state *like, whit_grammar_state **out,
                             whit_error *error)
{
    *out = NULL;
    whit_grammar_state *s = whit_zalloc(g->allocator, sizeof *s);
    if (!s) return whit_fail_memory(error, "a grammar's state", sizeof *s);
    if (like) *s = *like;
    s->grammar = g;
    if (!like) s->now = g->begin;
    s->next = g->states;
    if (s->next) s->next->link = &s->next;
    s->link = &g->states;
    g->states = s;
    *out = s;
    return WHIT_OK;
}

whit_status whit_grammar_state_open(whit_grammar *g, whit_grammar_state **state, whit_error *error)
{
    WHIT_NEED(state);
    *state = NULL;
    WHIT_NEED(g);
    return add_state(g, NULL, state, error);
}

whit_status whit_grammar_state_clone(const whit_grammar_state *state, whit_grammar_state **clone, whit_error *error)
{
    WHIT_NEED(clone);
    *clone = NULL;
    WHIT_NEED(state);
    return add_state(state->grammar, state, clone, error);
}

void whit_grammar_state_close(whit_grammar_state *s)
{
    if (!s) return;
    *s->link = s->next;
    if (s->next) s->next->link = s->link;
    whit_free(s->grammar->allocator, s, sizeof *s);
}

static void forget_masks(whit_grammar *g)
{
    whit_stack_frame *frames = WHIT_ITEMS(whit_stack_frame, &g->exact.frames);
    for (uint32_t i = 0; i < whit_state_pool_n_frames(&g->exact); i++) frames[i].bounded = 0;
    memset(g->mask_owner, 0, g->n_masks * sizeof *g->mask_owner);
    whit_state_pool_clear(&g->bounded);
}

/* Copies everything that the states use to a new pool and frees the old one. On failure the states are unchanged; the
 * cached masks are dropped in any case. */
static whit_status collect(whit_grammar *g, whit_error *error)
{
    whit_state_pool moved;
    WHIT_TRY(whit_state_pool_open(&g->graph, g->allocator, &moved, error));
    forget_masks(g); /* also clears the frames' references to their copies, which the import sets */
    uint32_t begin = whit_state_pool_import(&moved, &g->exact, g->begin, 0);
    for (int round = 0; round < 2 && !moved.failed; round++)
        for (whit_grammar_state *s = g->states; s; s = s->next) { /* first import all, which may fail, then replace */
            uint32_t now = whit_state_pool_import(&moved, &g->exact, s->now, 0);
            if (round) s->now = now;
            for (uint32_t i = 0; i < s->n_past; i++) {
                uint32_t past = whit_state_pool_import(&moved, &g->exact, s->past[i], 0);
                if (round) s->past[i] = past;
            }
        }
    if (moved.failed) {
        whit_state_pool_close(&moved);
        forget_masks(g);
        return whit_fail_memory(error, "the states of the grammar", g->exact.frames.size_bytes);
    }
    whit_state_pool_close(&g->exact);
    g->exact = moved;
    g->begin = begin;
    whit_stack_frame *frames = WHIT_ITEMS(whit_stack_frame, &g->exact.frames);
    for (uint32_t i = 0; i < whit_state_pool_n_frames(&g->exact); i++) frames[i].bounded = 0;
    g->collect_at = 2 * whit_state_pool_n_frames(&g->exact);
    if (g->collect_at < FIRST_COLLECT) g->collect_at = FIRST_COLLECT;
    return WHIT_OK;
}

whit_status whit_grammar_accept(whit_grammar_state *s, int32_t id, whit_error *error)
{
    WHIT_NEED(s);
    whit_grammar *g = s->grammar;
    const whit_grammar_vocabulary *v = g->vocabulary;
    if (id < 0 || (uint32_t)id >= v->n_tokens)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "there is no token %d: the vocabulary has ids from 0 to %u", id,
                         v->n_tokens - 1);
    uint32_t to = s->now;
    if (v->ends[id / 64] >> id % 64 & 1) {
        if (!whit_state_pool_at(&g->exact, s->now)->complete)
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "the text cannot end here: the grammar requires more");
    } else {
        if (v->begin[id] == v->begin[id + 1]) to = WHIT_MACHINE_DEAD;
        g->exact.work_left = MOST_LOOKS;
        for (uint32_t i = v->begin[id]; i < v->begin[id + 1] && to != WHIT_MACHINE_DEAD; i++)
            to = whit_state_pool_step(&g->exact, to, v->bytes[i]);
        if (g->exact.failed) {
            whit_status status = fail_pool(&g->exact, error);
            g->exact.failed = false;
            return status;
        }
        if (to == WHIT_MACHINE_DEAD)
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "the grammar does not allow token %d here", id);
    }
    if (s->n_past == WHIT_GRAMMAR_ROLLBACK_MAX) memmove(s->past, s->past + 1, --s->n_past * sizeof *s->past);
    s->past[s->n_past++] = s->now;
    s->now = to;
    /* The limit for threads is half of the pool's limit, because one token adds threads for each of its bytes. */
    bool many = whit_state_pool_n_frames(&g->exact) > g->collect_at ||
        whit_state_pool_n_configurations(&g->exact) > g->collect_at || g->exact.threads.size_bytes > (4u << 20);
    return many ? collect(g, error) : WHIT_OK;
}

whit_status whit_grammar_rollback(whit_grammar_state *s, uint32_t n, whit_error *error)
{
    WHIT_NEED(s);
    if (n > s->n_past)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "the grammar cannot take back %u tokens: it keeps the states before the last %u only", n,
                         s->n_past);
    if (n == 0) return WHIT_OK;
    s->n_past -= n;
    s->now = s->past[s->n_past];
    return WHIT_OK;
}

bool whit_grammar_is_complete(const whit_grammar_state *s)
{
    return whit_state_pool_at(&s->grammar->exact, s->now)->complete;
}

bool whit_grammar_is_finished(const whit_grammar_state *s)
{
    const whit_configuration *c = whit_state_pool_at(&s->grammar->exact, s->now);
    return c->complete && c->n_threads == 0;
}

/* ---- masks ----------------------------------------------------------------------------------- */

/* A repetition that accepts any sequence of at most `room` bytes of these kinds. A subtree of the vocabulary's trie
 * that has only such bytes is accepted as a whole. `kinds` is a bit set (token_trie.h). */
typedef struct loop {
    uint64_t kinds;
    uint32_t room;
    bool alone; /* no other thread accepts such bytes, nor what follows the repetition, if one token could exhaust it */
} loop;

/* Returns whether only the thread with this frame accepts bytes of these kinds. */
static bool is_alone(const whit_grammar *g, const whit_configuration *c, uint64_t kinds, uint32_t frame)
{
    const whit_byte_set *sets = WHIT_ITEMS(const whit_byte_set, &g->graph.sets);
    for (uint32_t i = 0; i < c->n_threads; i++) {
        whit_stack_thread thread = (WHIT_ITEMS(const whit_stack_thread, &g->bounded.threads))[c->first + i];
        const whit_byte_set *set = &sets[whit_automaton_at(&g->graph, thread.node)->a];
        if (thread.frame == frame) continue;
        for (int byte = 0; byte < 256; byte++)
            if (whit_byte_in(set, (uint8_t)byte) && kinds >> g->vocabulary->kind_of[byte] & 1) return false;
    }
    return true;
}

static loop loop_of(const whit_grammar *g, uint32_t configuration)
{
    const whit_state_pool *pool = &g->bounded;
    whit_configuration *c = whit_state_pool_at(pool, configuration);
    if (c->loop_known) return (loop){c->loop_kinds, c->loop_room, c->loop_alone};
    const whit_byte_set *sets = WHIT_ITEMS(const whit_byte_set, &g->graph.sets);
    loop best = {0};
    uint32_t frame = 0;
    bool in_quotes = false;
    for (uint32_t i = 0; i < c->n_threads && i < 64; i++) {
        whit_stack_thread thread = (WHIT_ITEMS(const whit_stack_thread, &pool->threads))[c->first + i];
        const whit_automaton_node *n = whit_automaton_at(&g->graph, thread.node);
        if (n->b != WHIT_AUTOMATON_RET || thread.frame == WHIT_MACHINE_BOTTOM) continue;
        const whit_stack_frame *f = whit_state_pool_frame(pool, thread.frame);
        const whit_automaton_node *owner = whit_automaton_at(&g->graph, f->node);
        if (owner->kind != WHIT_AUTOMATON_REPEAT || f->room == 0) continue;
        const whit_automaton_repetition *r =
            WHIT_ITEMS(const whit_automaton_repetition, &g->graph.repetitions) + owner->a;
        uint64_t outside = 0, inside = 0;
        for (int byte = 0; byte < 256; byte++) {
            bool in = whit_byte_in(&sets[n->a], (uint8_t)byte) && (r->loop[byte / 64] >> byte % 64 & 1);
            *(in ? &inside : &outside) |= UINT64_C(1) << g->vocabulary->kind_of[byte];
        }
        bool all = n->beside_all && r->takes_all;
        uint64_t kinds = inside & ~outside;
        if (all) kinds |= g->vocabulary->utf8_kinds;
        if (__builtin_popcountll(kinds) <= __builtin_popcountll(best.kinds)) continue;
        best = (loop){kinds, f->room == WHIT_MACHINE_MANY ? UINT32_MAX : f->room + 1, false};
        frame = thread.frame;
        in_quotes = r->in_quotes;
    }
    best.alone = best.kinds == g->vocabulary->string_kinds && c->n_threads < 64 &&
        (in_quotes || best.room >= g->vocabulary->longest_bytes) && is_alone(g, c, best.kinds, frame);
    c->loop_known = true;
    c->loop_alone = best.alone;
    c->loop_kinds = best.kinds;
    c->loop_room = best.room;
    return best;
}

static void set_tokens(const whit_grammar_vocabulary *v, uint32_t begin, uint32_t end, uint64_t *bits)
{
    for (uint32_t i = begin; i < end; i++) bits[v->order[i] / 64] |= UINT64_C(1) << v->order[i] % 64;
}

static void walk(whit_grammar *g, uint32_t configuration, uint64_t *bits)
{
    const whit_grammar_vocabulary *v = g->vocabulary;
    const whit_token_trie_node *nodes = v->nodes;
    loop begin = loop_of(g, configuration);
    g->path[0] = configuration;
    if (begin.alone) {
        uint32_t room = begin.room < v->longest_bytes ? begin.room : v->longest_bytes;
        const uint64_t *ready = v->strings + (size_t)room * v->n_words;
        for (uint32_t i = 0; i < v->n_words; i++) bits[i] |= ready[i];
    }
    for (uint32_t i = 1; i < v->n_nodes;) {
        const whit_token_trie_node *node = &nodes[i];
        if (begin.alone && node->string) {
            i = node->skip;
            continue;
        }
        uint32_t to = whit_state_pool_step_remembered(&g->bounded, g->path[node->depth - 1], node->byte);
        if (to == WHIT_MACHINE_DEAD) {
            if (g->bounded.failed) return;
            i = node->skip;
            continue;
        }
        if (node->skip == i + 1) { /* the node has no children */
            set_tokens(v, node->first_token, nodes[i + 1].first_token, bits);
            i++;
            continue;
        }
        loop l = loop_of(g, to);
        bool plain = (node->kinds & v->utf8_kinds) == 0 || node->whole;
        if (plain && (node->kinds & ~l.kinds) == 0 && node->height <= l.room && node->height < 255) {
            set_tokens(v, node->first_token, nodes[node->skip].first_token, bits);
            i = node->skip;
            continue;
        }
        set_tokens(v, node->first_token, nodes[i + 1].first_token, bits);
        g->path[node->depth] = to;
        i++;
    }
}

whit_status whit_grammar_mask(whit_grammar_state *s, const uint64_t **bits, whit_error *error)
{
    WHIT_NEED(bits);
    *bits = NULL;
    WHIT_NEED(s);
    whit_grammar *g = s->grammar;
    const whit_grammar_vocabulary *v = g->vocabulary;
    whit_state_pool *bounded = &g->bounded;
    if (bounded->rows.size_bytes > FULL_ROW_BYTES || whit_state_pool_n_frames(bounded) > (1 << 16) ||
        bounded->threads.size_bytes > (4u << 20))
        forget_masks(g);
    uint32_t at = whit_state_pool_import(bounded, &g->exact, s->now, v->longest_bytes + 1);
    uint32_t mask = bounded->failed ? 0 : whit_state_pool_at(bounded, at)->mask;
    if (mask && g->mask_owner[mask - 1] == at + 1) {
        *bits = g->masks + (size_t)(mask - 1) * v->n_words;
        return WHIT_OK;
    }
    mask = g->next_mask;
    uint64_t *own = g->masks + (size_t)mask * v->n_words;
    memset(own, 0, v->n_words * sizeof *own);
    g->mask_owner[mask] = 0;
    bounded->work_left = MOST_LOOKS;
    if (!bounded->failed) walk(g, at, own);
    if (bounded->failed) {
        whit_status status = fail_pool(bounded, error);
        forget_masks(g);
        return status;
    }
    if (whit_state_pool_at(bounded, at)->complete)
        for (uint32_t i = 0; i < v->n_words; i++) own[i] |= v->ends[i];
    uint64_t any = 0;
    for (uint32_t i = 0; i < v->n_words; i++) any |= own[i];
    if (!any)
        return whit_fail(
            error, WHIT_ERROR_UNSUPPORTED,
            "the model has no token that the grammar allows next: a character is missing in its vocabulary");
    g->mask_owner[mask] = at + 1;
    whit_state_pool_at(bounded, at)->mask = mask + 1;
    g->next_mask = (mask + 1) % g->n_masks;
    *bits = own;
    return WHIT_OK;
}
