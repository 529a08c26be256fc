/* SPDX-License-Identifier: MIT
 * Builds the graph of a grammar. */
#include "grammar/automaton.h"
#include "base/items.h"

enum { N_SET_SLOTS = 1 << 12 };

static uint32_t add_node(whit_automaton *graph, whit_automaton_kind kind, uint32_t a, uint32_t b)
{
    whit_automaton_node node = {.a = a, .b = b, .kind = (uint8_t)kind, .height = UINT16_MAX};
    uint32_t at = whit_automaton_n_nodes(graph);
    if (graph->failed || b == WHIT_AUTOMATON_NONE || at >= WHIT_AUTOMATON_MAX_NODES ||
        !whit_buf_append(&graph->nodes, &node, sizeof node)) {
        graph->failed = true;
        return WHIT_AUTOMATON_NONE;
    }
    return at;
}

whit_status whit_automaton_open(const whit_allocator *allocator, whit_automaton *graph, whit_error *error)
{
    *graph = (whit_automaton){.allocator = allocator, .n_set_slots = N_SET_SLOTS};
    whit_buf *const bufs[] = {&graph->nodes, &graph->edges, &graph->sets, &graph->repetitions, &graph->rules};
    for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++) bufs[i]->allocator = allocator;
    graph->set_slots = whit_zalloc_array(allocator, graph->n_set_slots, sizeof *graph->set_slots);
    if (!graph->set_slots || add_node(graph, WHIT_AUTOMATON_END, 0, 0) != WHIT_AUTOMATON_RET) {
        whit_automaton_close(graph);
        return whit_fail_memory(error, "a grammar", graph->n_set_slots * sizeof *graph->set_slots);
    }
    return WHIT_OK;
}

void whit_automaton_close(whit_automaton *graph)
{
    whit_buf_free(&graph->nodes);
    whit_buf_free(&graph->edges);
    whit_buf_free(&graph->sets);
    whit_buf_free(&graph->repetitions);
    whit_buf_free(&graph->rules);
    whit_free(graph->allocator, graph->set_slots, graph->n_set_slots * sizeof *graph->set_slots);
    *graph = (whit_automaton){0};
}

/* ---- sets of bytes --------------------------------------------------------------------------- */

static uint32_t hash_set(const whit_byte_set *set)
{
    uint64_t h = 0;
    for (int i = 0; i < 4; i++) h = (h ^ set->bits[i]) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
    return (uint32_t)(h >> 20);
}

static bool grow_slots(whit_automaton *graph)
{
    uint32_t n = graph->n_set_slots * 2;
    uint32_t *slots = whit_zalloc_array(graph->allocator, n, sizeof *slots);
    if (!slots) return false;
    const whit_byte_set *sets = WHIT_ITEMS(const whit_byte_set, &graph->sets);
    for (uint32_t i = 0; i < graph->sets.size_bytes / sizeof *sets; i++) {
        uint32_t at = hash_set(&sets[i]) & (n - 1);
        while (slots[at]) at = (at + 1) & (n - 1);
        slots[at] = i + 1;
    }
    whit_free(graph->allocator, graph->set_slots, graph->n_set_slots * sizeof *slots);
    graph->set_slots = slots;
    graph->n_set_slots = n;
    return true;
}

static uint32_t intern_set(whit_automaton *graph, const whit_byte_set *set)
{
    uint32_t mask = graph->n_set_slots - 1, at = hash_set(set) & mask;
    for (; graph->set_slots[at]; at = (at + 1) & mask)
        if (memcmp(WHIT_ITEMS(const whit_byte_set, &graph->sets) + graph->set_slots[at] - 1, set, sizeof *set) == 0)
            return graph->set_slots[at] - 1;
    uint32_t id = (uint32_t)(graph->sets.size_bytes / sizeof *set);
    if (!whit_buf_append(&graph->sets, set, sizeof *set)) {
        graph->failed = true;
        return 0;
    }
    graph->set_slots[at] = id + 1;
    if (id * 2 > graph->n_set_slots && !grow_slots(graph)) graph->failed = true;
    return id;
}

uint32_t whit_automaton_set(whit_automaton *graph, const whit_byte_set *set, uint32_t next)
{
    return add_node(graph, WHIT_AUTOMATON_BYTES, intern_set(graph, set), next);
}

uint32_t whit_automaton_text(whit_automaton *graph, const void *text, size_t n_bytes, uint32_t next)
{
    for (size_t i = n_bytes; i-- > 0 && next != WHIT_AUTOMATON_NONE;) {
        whit_byte_set set = {0};
        whit_byte_add(&set, ((const uint8_t *)text)[i]);
        next = whit_automaton_set(graph, &set, next);
    }
    return next;
}

/* ---- choices, rules, repetitions ------------------------------------------------------------- */

uint32_t whit_automaton_split(whit_automaton *graph, const uint32_t *ways, size_t n)
{
    if (n == 1) return ways[0];
    for (size_t i = 0; i < n; i++)
        if (ways[i] == WHIT_AUTOMATON_NONE) graph->failed = true;
    uint32_t first = (uint32_t)(graph->edges.size_bytes / sizeof *ways);
    if (n && !whit_buf_append(&graph->edges, ways, n * sizeof *ways)) graph->failed = true;
    return add_node(graph, WHIT_AUTOMATON_SPLIT, first, (uint32_t)n);
}

uint32_t whit_automaton_rule(whit_automaton *graph)
{
    uint32_t undefined = WHIT_AUTOMATON_NONE, rule = (uint32_t)(graph->rules.size_bytes / sizeof undefined);
    if (!whit_buf_append(&graph->rules, &undefined, sizeof undefined)) graph->failed = true;
    return rule;
}

void whit_automaton_define(whit_automaton *graph, uint32_t rule, uint32_t begin)
{
    if (begin == WHIT_AUTOMATON_NONE || graph->failed)
        graph->failed = true;
    else
        (WHIT_ITEMS(uint32_t, &graph->rules))[rule] = begin;
}

uint32_t whit_automaton_call(whit_automaton *graph, uint32_t rule, uint32_t next)
{
    return add_node(graph, WHIT_AUTOMATON_CALL, rule, next);
}

uint32_t whit_automaton_repeat(whit_automaton *graph, uint32_t body, uint32_t min, uint32_t max, uint32_t next)
{
    if (min == 1 && max == 1 && next == WHIT_AUTOMATON_RET) return body;
    whit_automaton_repetition repetition = {.body = body, .min = min, .max = max};
    uint32_t id = (uint32_t)(graph->repetitions.size_bytes / sizeof repetition);
    if (body == WHIT_AUTOMATON_NONE || !whit_buf_append(&graph->repetitions, &repetition, sizeof repetition))
        graph->failed = true;
    return add_node(graph, WHIT_AUTOMATON_REPEAT, id, next);
}

uint32_t whit_automaton_characters(whit_automaton *graph, uint32_t body, uint32_t min, uint32_t max, uint32_t quote)
{
    uint32_t begin = whit_automaton_repeat(graph, body, min, max, quote);
    if (begin != WHIT_AUTOMATON_NONE)
        (WHIT_ITEMS(whit_automaton_repetition, &graph->repetitions))[whit_automaton_at(graph, begin)->a].in_quotes =
            true;
    return begin;
}

/* ---- code points ----------------------------------------------------------------------------- */

static uint32_t byte_range(whit_automaton *graph, uint32_t first, uint32_t last, uint32_t next)
{
    whit_byte_set set = {0};
    for (uint32_t byte = first; byte <= last; byte++) whit_byte_add(&set, (uint8_t)byte);
    return whit_automaton_set(graph, &set, next);
}

/* Appends to `ways` the UTF-8 sequences for the values first to last: a byte with the marker bits `lead` and the
 * value's top bits, and n_more continuation bytes with six bits each. The range is split where a complete block of
 * continuation bytes begins or ends. */
static void continuation_ways(whit_automaton *graph, uint32_t lead, uint32_t n_more, uint32_t first, uint32_t last,
                              uint32_t next, whit_buf *ways)
{
    /* Each round of the loop takes the largest part that begins at `first` and needs no further split. */
    uint32_t shift = 6 * n_more, block = (1u << shift) - 1;
    while (first <= last) {
        uint32_t top = first >> shift, low = first & block, high;
        uint32_t top_last = top;
        if (low == 0 && (last & block) == block)
            high = block, top_last = last >> shift;
        else if (low == 0 && last >> shift > top)
            high = block, top_last = (last >> shift) - 1;
        else
            high = last >> shift > top ? block : last & block;
        uint32_t way = next;
        if (n_more) {
            whit_buf inner = {.allocator = graph->allocator};
            continuation_ways(graph, 0x80, n_more - 1, low, high, next, &inner);
            way = whit_automaton_split(graph, WHIT_ITEMS(const uint32_t, &inner), inner.size_bytes / sizeof way);
            whit_buf_free(&inner);
        }
        way = byte_range(graph, lead | top, lead | top_last, way);
        if (!whit_buf_append(ways, &way, sizeof way)) graph->failed = true;
        if (graph->failed) return;
        first = ((top_last + 1) << shift);
        if (n_more == 0) first = top_last + 1;
    }
}

uint32_t whit_automaton_code(whit_automaton *graph, const whit_code_range *ranges, size_t n, uint32_t next)
{
    static const struct {
        uint32_t first, last, n_more, lead;
    } lengths[] = {
        {0x80, 0x7FF, 1, 0xC0}, {0x800, 0xD7FF, 2, 0xE0}, {0xE000, 0xFFFF, 2, 0xE0}, {0x10000, 0x10FFFF, 3, 0xF0}};
    whit_buf ways = {.allocator = graph->allocator};
    whit_byte_set ascii = {0};
    bool any_ascii = false;
    for (size_t i = 0; i < n && !graph->failed; i++) {
        for (uint32_t code = ranges[i].first; code <= ranges[i].last && code < 0x80; code++)
            whit_byte_add(&ascii, (uint8_t)code), any_ascii = true;
        for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
            uint32_t first = ranges[i].first > lengths[k].first ? ranges[i].first : lengths[k].first;
            uint32_t last = ranges[i].last < lengths[k].last ? ranges[i].last : lengths[k].last;
            if (first <= last) continuation_ways(graph, lengths[k].lead, lengths[k].n_more, first, last, next, &ways);
        }
    }
    uint32_t way = any_ascii ? whit_automaton_set(graph, &ascii, next) : WHIT_AUTOMATON_NONE;
    if (way != WHIT_AUTOMATON_NONE && ranges[n - 1].first <= 0x80 && ranges[n - 1].last >= 0x10FFFF)
        (WHIT_ITEMS(whit_automaton_node, &graph->nodes))[way].beside_all = true;
    if (any_ascii && !whit_buf_append(&ways, &way, sizeof way)) graph->failed = true;
    uint32_t begin = whit_automaton_split(graph, WHIT_ITEMS(const uint32_t, &ways), ways.size_bytes / sizeof way);
    whit_buf_free(&ways);
    return begin;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* Builds the texts words[0..n), which share their first `depth` bytes. A loop skips the further bytes that all of them
 * share, so that the recursion is only as deep as the number of branches on one path, at most one per two words. */
static uint32_t words_from(whit_automaton *graph, const whit_automaton_word *words, size_t n, size_t depth,
                           uint32_t next, uint32_t level)
{
    if (level > 4096) graph->failed = true;
    if (graph->failed) return WHIT_AUTOMATON_NONE;
    size_t common = depth; /* the words are sorted, so the prefix that the first and the last share is shared by all */
    const whit_automaton_word *last = &words[n - 1];
    while (common < words[0].n_bytes && common < last->n_bytes && words[0].text[common] == last->text[common]) common++;
    uint32_t branch = next;
    if (n > 1) {
        whit_buf ways = {.allocator = graph->allocator};
        size_t i = 0;
        if (words[0].n_bytes == common) {
            if (!whit_buf_append(&ways, &next, sizeof next)) graph->failed = true;
            i = 1;
        }
        while (i < n && !graph->failed) {
            size_t end = i + 1;
            while (end < n && words[end].text[common] == words[i].text[common]) end++;
            uint32_t way = words_from(graph, words + i, end - i, common, next, level + 1);
            if (!whit_buf_append(&ways, &way, sizeof way)) graph->failed = true;
            i = end;
        }
        branch = whit_automaton_split(graph, WHIT_ITEMS(const uint32_t, &ways), ways.size_bytes / sizeof next);
        whit_buf_free(&ways);
    } else {
        common = words[0].n_bytes;
    }
    return whit_automaton_text(graph, words[0].text + depth, common - depth, branch);
}

uint32_t whit_automaton_words(whit_automaton *graph, const whit_automaton_word *words, size_t n, uint32_t next)
{
    return n ? words_from(graph, words, n, 0, next, 0) : whit_automaton_split(graph, NULL, 0);
}
