/* SPDX-License-Identifier: MIT
 * Builds the automaton of an expression from its derivatives, and converts it to nodes of a graph. Code points that no
 * set distinguishes form a class, and one derivative per class suffices. */
#include "grammar/language.h"
#include "base/items.h"

#include <stdlib.h>

enum { STATES_MAX = 20000, STEPS_MAX = 1 << 20, CUTS_MAX = 1 << 13 };

/* A range of code points and the class of all of them. */
typedef struct stretch {
    uint32_t first, last, class;
} stretch;

typedef struct machine {
    whit_language *language;
    whit_buf states;  /* array of uint32_t: expression of each state */
    whit_buf numbers; /* array of uint32_t, indexed by expression: its state, plus 1; 0: it has no state yet */
    uint32_t *steps;  /* (n_states, n_classes) next state */
    uint32_t n_states, n_classes;
    uint32_t *representatives; /* (n_classes) a code point of each class */
    uint8_t *lives;            /* (n_states) 1 if a text can end after this state */
} machine;

/* ---- classes of code points -------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static bool is_in(const whit_language *l, const whit_language_node *n, uint32_t code)
{
    const whit_code_range *ranges = WHIT_ITEMS(const whit_code_range, &l->ranges) + n->a;
    for (uint32_t i = 0; i < n->n && ranges[i].first <= code; i++)
        if (code <= ranges[i].last) return true;
    return false;
}

/* Splits the code points at the bounds of all sets in the language's expressions, and numbers the ranges by the sets
 * that contain them. All sets count, so that derivatives never need a further split. */
static bool find_classes(machine *m)
{
    whit_language *l = m->language;
    whit_buf cuts = {.allocator = l->allocator}, marks = {.allocator = l->allocator};
    const whit_language_node *nodes = WHIT_ITEMS(const whit_language_node, &l->nodes);
    uint32_t n_nodes = (uint32_t)(l->nodes.size_bytes / sizeof *nodes), zero = 0;
    l->classes.size_bytes = 0;
    if (!whit_buf_append(&cuts, &zero, sizeof zero)) l->failed = true;
    for (uint32_t i = 0; i < n_nodes; i++) {
        if (nodes[i].kind != WHIT_LANGUAGE_IS_CODES) continue;
        if (!whit_buf_append(&marks, &i, sizeof i)) l->failed = true;
        for (uint32_t k = 0; k < nodes[i].n && !l->failed; k++) {
            whit_code_range range = (WHIT_ITEMS(const whit_code_range, &l->ranges))[nodes[i].a + k];
            uint32_t both[] = {range.first, range.last + 1};
            if (!whit_buf_append(&cuts, both, sizeof both)) l->failed = true;
        }
    }
    uint32_t *cut = WHIT_ITEMS(uint32_t, &cuts), n_cuts = (uint32_t)(cuts.size_bytes / sizeof *cut), kept = 0;
    uint32_t n_sets = (uint32_t)(marks.size_bytes / sizeof(uint32_t));
    if (n_cuts > CUTS_MAX || (uint64_t)n_cuts * n_sets > STEPS_MAX) l->failed = true;
    if (!l->failed) qsort(cut, n_cuts, sizeof *cut, by_value);
    for (uint32_t i = 0; i < n_cuts && !l->failed; i++)
        if ((kept == 0 || cut[kept - 1] != cut[i]) && cut[i] < 0x110000) cut[kept++] = cut[i];
    /* Each range gets a signature of the sets that contain it. Equal signatures are then confirmed set by set. */
    uint64_t *signatures = whit_zalloc_array(l->allocator, kept + 1, sizeof *signatures);
    if (!signatures) l->failed = true;
    for (uint32_t i = 0; i < kept && !l->failed; i++) {
        for (uint32_t k = 0; k < n_sets; k++)
            if (is_in(l, &nodes[(WHIT_ITEMS(const uint32_t, &marks))[k]], cut[i]))
                signatures[i] += (k + 1) * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)k << 7;
        stretch s = {cut[i], i + 1 < kept ? cut[i + 1] - 1 : 0x10FFFF, m->n_classes};
        for (uint32_t j = 0; j < i && s.class == m->n_classes; j++) {
            bool same = signatures[j] == signatures[i];
            for (uint32_t k = 0; k < n_sets && same; k++) {
                const whit_language_node *set = &nodes[(WHIT_ITEMS(const uint32_t, &marks))[k]];
                same = is_in(l, set, cut[i]) == is_in(l, set, cut[j]);
            }
            if (same) s.class = (WHIT_ITEMS(const stretch, &l->classes))[j].class;
        }
        m->n_classes += s.class == m->n_classes;
        if (!whit_buf_append(&l->classes, &s, sizeof s)) l->failed = true;
    }
    whit_free(l->allocator, signatures, (kept + 1) * sizeof *signatures);
    whit_buf_free(&cuts);
    whit_buf_free(&marks);
    m->representatives = whit_zalloc_array(l->allocator, m->n_classes + 1, sizeof *m->representatives);
    if (!m->representatives) l->failed = true;
    for (uint32_t i = kept; i-- > 0 && !l->failed;) {
        stretch s = (WHIT_ITEMS(const stretch, &l->classes))[i];
        m->representatives[s.class] = s.first;
    }
    return !l->failed;
}

/* ---- states ------------------------------------------------------------------------------------ */

static uint32_t state_of(machine *m, uint32_t node)
{
    whit_language *l = m->language;
    size_t wanted = ((size_t)node + 1) * sizeof(uint32_t);
    if (m->numbers.size_bytes < wanted && !whit_buf_append_zeros(&m->numbers, wanted - m->numbers.size_bytes))
        l->failed = true;
    if (l->failed) return 0;
    uint32_t *number = WHIT_ITEMS(uint32_t, &m->numbers) + node;
    if (*number) return *number - 1;
    if (m->n_states == STATES_MAX || (uint64_t)(m->n_states + 1) * m->n_classes > STEPS_MAX ||
        !whit_buf_append(&m->states, &node, sizeof node)) {
        l->failed = true;
        return 0;
    }
    *number = ++m->n_states;
    return *number - 1;
}

/* Finds all states that can be reached from `node`, and whether a text can end after each. Returns false on failure. */
static bool explore(machine *m, uint32_t node)
{
    whit_language *l = m->language;
    whit_buf steps = {.allocator = l->allocator};
    state_of(m, node);
    for (uint32_t s = 0; s < m->n_states && !l->failed; s++)
        for (uint32_t c = 0; c < m->n_classes && !l->failed; c++) {
            uint32_t from = (WHIT_ITEMS(const uint32_t, &m->states))[s];
            uint32_t to = state_of(m, whit_language_derive(l, from, m->representatives[c]));
            if (!whit_buf_append(&steps, &to, sizeof to)) l->failed = true;
        }
    m->lives = whit_zalloc(l->allocator, m->n_states + 1);
    if (!m->lives) l->failed = true;
    if (l->failed) {
        whit_buf_free(&steps);
        return false;
    }
    m->steps = whit_alloc(l->allocator, steps.size_bytes + 1);
    if (!m->steps)
        l->failed = true;
    else if (steps.size_bytes)
        memcpy(m->steps, steps.data, steps.size_bytes);
    whit_buf_free(&steps);
    bool more = !l->failed;
    for (uint32_t s = 0; s < m->n_states && !l->failed; s++)
        m->lives[s] = whit_language_at(l, (WHIT_ITEMS(const uint32_t, &m->states))[s]).has_empty;
    while (more) { /* states are numbered in the order of discovery, so that going backwards takes few rounds */
        more = false;
        for (uint32_t s = m->n_states; s-- > 0;)
            for (uint32_t c = 0; c < m->n_classes && !m->lives[s]; c++)
                if (m->lives[m->steps[(size_t)s * m->n_classes + c]]) m->lives[s] = 1, more = true;
    }
    return !l->failed;
}

/* ---- conversion to a graph --------------------------------------------------------------------- */

/* Collects the ranges of code points that lead from `state` to `to`. */
static void ranges_to(const machine *m, uint32_t state, uint32_t to, whit_buf *ranges)
{
    const stretch *all = WHIT_ITEMS(const stretch, &m->language->classes);
    size_t n = m->language->classes.size_bytes / sizeof *all;
    const uint32_t *steps = m->steps + (size_t)state * m->n_classes;
    ranges->size_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        if (steps[all[i].class] != to) continue;
        whit_code_range range = {all[i].first, all[i].last};
        whit_code_range *last = WHIT_ITEMS(whit_code_range, ranges) + ranges->size_bytes / sizeof range;
        if (ranges->size_bytes && last[-1].last + 1 == range.first)
            last[-1].last = range.last;
        else if (!whit_buf_append(ranges, &range, sizeof range))
            m->language->failed = true;
    }
}

static uint32_t write_codes(whit_language_form form, whit_automaton *graph, const whit_code_range *ranges, size_t n,
                            uint32_t next)
{
    if (form == WHIT_LANGUAGE_PLAIN) return whit_automaton_code(graph, ranges, n, next);
    return (form == WHIT_LANGUAGE_SPELLED ? whit_automaton_json_spelled : whit_automaton_json_code)(graph, ranges, n,
                                                                                                    next);
}

/* Defines the rule of a state. Steps back to the same state become a repetition, whose masks are computed faster. */
static uint32_t emit_state(const machine *m, uint32_t state, whit_language_form form, whit_automaton *graph,
                           const uint32_t *rules)
{
    whit_buf ways = {.allocator = graph->allocator}, ranges = {.allocator = graph->allocator};
    uint8_t *met = whit_zalloc(graph->allocator, m->n_states);
    uint32_t end = WHIT_AUTOMATON_RET, begin = WHIT_AUTOMATON_NONE;
    const uint32_t *steps = m->steps + (size_t)state * m->n_classes;
    if (!met) graph->failed = true;
    if (whit_language_at(m->language, (WHIT_ITEMS(const uint32_t, &m->states))[state]).has_empty &&
        !whit_buf_append(&ways, &end, sizeof end))
        graph->failed = true;
    for (uint32_t c = 0; c < m->n_classes && !graph->failed; c++) {
        uint32_t to = steps[c];
        if (met[to] || to == state || !m->lives[to]) continue;
        met[to] = 1;
        ranges_to(m, state, to, &ranges);
        uint32_t way = write_codes(form, graph, WHIT_ITEMS(const whit_code_range, &ranges),
                                   ranges.size_bytes / sizeof(whit_code_range),
                                   whit_automaton_call(graph, rules[to], WHIT_AUTOMATON_RET));
        if (!whit_buf_append(&ways, &way, sizeof way)) graph->failed = true;
    }
    if (!graph->failed) {
        begin = whit_automaton_split(graph, WHIT_ITEMS(const uint32_t, &ways), ways.size_bytes / sizeof end);
        ranges_to(m, state, state, &ranges);
        if (ranges.size_bytes) {
            uint32_t body = write_codes(form, graph, WHIT_ITEMS(const whit_code_range, &ranges),
                                        ranges.size_bytes / sizeof(whit_code_range), WHIT_AUTOMATON_RET);
            begin = whit_automaton_repeat(graph, body, 0, WHIT_AUTOMATON_UNBOUNDED, begin);
        }
    }
    whit_free(graph->allocator, met, m->n_states);
    whit_buf_free(&ways);
    whit_buf_free(&ranges);
    return begin;
}

uint32_t whit_language_emit(whit_language *l, uint32_t node, whit_language_form form, whit_automaton *graph,
                            uint32_t next, bool *empty)
{
    machine m = {.language = l, .states.allocator = l->allocator, .numbers.allocator = l->allocator};
    uint32_t *rules = NULL, begin = WHIT_AUTOMATON_NONE;
    const bool is_explored = !l->failed && find_classes(&m) && explore(&m, node);
    *empty = is_explored && !m.lives[0];
    if (is_explored && !*empty) {
        rules = whit_zalloc_array(l->allocator, m.n_states, sizeof *rules);
        if (!rules) l->failed = true;
        for (uint32_t s = 0; s < m.n_states && !l->failed; s++)
            if (m.lives[s]) rules[s] = whit_automaton_rule(graph);
        for (uint32_t s = 0; s < m.n_states && !l->failed && !graph->failed; s++)
            if (m.lives[s]) whit_automaton_define(graph, rules[s], emit_state(&m, s, form, graph, rules));
        if (!l->failed) begin = whit_automaton_call(graph, rules[0], next);
    }
    whit_free(l->allocator, rules, m.n_states * sizeof *rules);
    whit_free(l->allocator, m.lives, m.n_states + 1);
    whit_free(l->allocator, m.steps, (size_t)m.n_states * m.n_classes * sizeof *m.steps + 1);
    whit_free(l->allocator, m.representatives, (m.n_classes + 1) * sizeof *m.representatives);
    whit_buf_free(&m.states);
    whit_buf_free(&m.numbers);
    return begin;
}
