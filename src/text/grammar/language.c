/* SPDX-License-Identifier: MIT
 * Builds expressions of regular languages in a normal form, and their derivatives. */
#include "grammar/language.h"

#include <stdlib.h>

#include "base/items.h"
#include "base/utf8.h"

enum { FIRST_SLOTS = 1 << 8, NODES_MAX = 1 << 18, DEPTH_MAX = 400, UNROLL_MAX = 8, WORK_MAX = 2500000 };

/* ---- nodes, each of which is stored once ------------------------------------------------------- */

static uint32_t hash_words(const uint32_t *words, size_t n, uint32_t hash)
{
    for (size_t i = 0; i < n; i++) hash = (hash ^ words[i]) * 16777619u, hash ^= hash >> 13;
    return hash;
}

static const uint32_t *content_of(const whit_language *l, const whit_language_node *n, size_t *count)
{
    bool lists = n->kind == WHIT_LANGUAGE_IS_OR || n->kind == WHIT_LANGUAGE_IS_AND;
    *count = 0;
    if (n->kind == WHIT_LANGUAGE_IS_CODES) {
        *count = 2 * (size_t)n->n;
        return WHIT_ITEMS(const uint32_t, &l->ranges) + 2 * (size_t)n->a;
    }
    if (lists) *count = n->n;
    return lists ? WHIT_ITEMS(const uint32_t, &l->children) + n->a : NULL;
}

static uint32_t hash_node(const whit_language *l, const whit_language_node *n)
{
    size_t count;
    const uint32_t *content = content_of(l, n, &count);
    uint32_t own[] = {n->kind, content ? n->n : n->a, content ? 0 : n->b, n->n};
    return hash_words(content, count, hash_words(own, 4, 2166136261u));
}

static bool same_node(const whit_language *l, const whit_language_node *x, const whit_language_node *y)
{
    size_t n, m;
    if (x->kind != y->kind || x->n != y->n) return false;
    const uint32_t *a = content_of(l, x, &n), *b = content_of(l, y, &m);
    if (!a || !b) return x->a == y->a && x->b == y->b;
    return n == m && memcmp(a, b, n * sizeof *a) == 0;
}

static bool grow_slots(whit_language *l)
{
    uint32_t n = l->n_slots ? l->n_slots * 2 : FIRST_SLOTS;
    uint32_t *slots = whit_zalloc_array(l->allocator, n, sizeof *slots);
    if (!slots) {
        l->failed = true;
        return false;
    }
    const whit_language_node *nodes = WHIT_ITEMS(const whit_language_node, &l->nodes);
    for (uint32_t i = 0; i < l->nodes.size_bytes / sizeof *nodes; i++) {
        uint32_t at = hash_node(l, &nodes[i]) & (n - 1);
        while (slots[at]) at = (at + 1) & (n - 1);
        slots[at] = i + 1;
    }
    whit_free(l->allocator, l->slots, l->n_slots * sizeof *slots);
    l->slots = slots;
    l->n_slots = n;
    return true;
}

/* Returns the index of a node with this content. If it existed before, the ranges or children that the caller has
 * appended for it are removed again. */
static uint32_t keep_node(whit_language *l, whit_language_node node)
{
    uint32_t n = (uint32_t)(l->nodes.size_bytes / sizeof node);
    if (l->failed || (n * 2 >= l->n_slots && !grow_slots(l))) return WHIT_LANGUAGE_NONE;
    uint32_t mask = l->n_slots - 1, at = hash_node(l, &node) & mask;
    for (; l->slots[at]; at = (at + 1) & mask) {
        const whit_language_node *known = WHIT_ITEMS(const whit_language_node, &l->nodes) + l->slots[at] - 1;
        if (!same_node(l, known, &node)) continue;
        if (node.kind == WHIT_LANGUAGE_IS_CODES) l->ranges.size_bytes = node.a * sizeof(whit_code_range);
        if (node.kind == WHIT_LANGUAGE_IS_OR || node.kind == WHIT_LANGUAGE_IS_AND)
            l->children.size_bytes = node.a * sizeof(uint32_t);
        return l->slots[at] - 1;
    }
    if (n >= NODES_MAX || !whit_buf_append(&l->nodes, &node, sizeof node)) {
        l->failed = true;
        return WHIT_LANGUAGE_NONE;
    }
    l->slots[at] = n + 1;
    return n;
}

bool whit_language_open(const whit_allocator *allocator, whit_language *l)
{
    *l = (whit_language){.allocator = allocator};
    whit_buf *const bufs[] = {&l->nodes, &l->children, &l->ranges, &l->classes};
    for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++) bufs[i]->allocator = allocator;
    keep_node(l, (whit_language_node){.kind = WHIT_LANGUAGE_IS_NONE});
    keep_node(l, (whit_language_node){.kind = WHIT_LANGUAGE_IS_EMPTY, .has_empty = true});
    keep_node(l, (whit_language_node){.kind = WHIT_LANGUAGE_IS_NOT, .a = WHIT_LANGUAGE_NONE, .has_empty = true});
    return !l->failed;
}

void whit_language_close(whit_language *l)
{
    whit_buf_free(&l->nodes);
    whit_buf_free(&l->children);
    whit_buf_free(&l->ranges);
    whit_buf_free(&l->classes);
    whit_free(l->allocator, l->slots, l->n_slots * sizeof *l->slots);
    *l = (whit_language){0};
}

/* ---- building expressions ---------------------------------------------------------------------- */

static int by_first(const void *a, const void *b)
{
    const whit_code_range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

uint32_t whit_language_codes(whit_language *l, const whit_code_range *ranges, size_t n)
{
    uint32_t first = (uint32_t)(l->ranges.size_bytes / sizeof *ranges), kept = 0;
    if (l->failed || n == 0) return WHIT_LANGUAGE_NONE;
    if (!whit_buf_append(&l->ranges, ranges, n * sizeof *ranges)) {
        l->failed = true;
        return WHIT_LANGUAGE_NONE;
    }
    whit_code_range *own = WHIT_ITEMS(whit_code_range, &l->ranges) + first;
    if (n > 1) qsort(own, n, sizeof *own, by_first);
    for (size_t i = 0; i < n; i++) {
        if (kept && own[i].first <= own[kept - 1].last + 1) {
            if (own[i].last > own[kept - 1].last) own[kept - 1].last = own[i].last;
        } else {
            own[kept++] = own[i];
        }
    }
    l->ranges.size_bytes = (first + kept) * sizeof *own;
    return keep_node(l, (whit_language_node){.kind = WHIT_LANGUAGE_IS_CODES, .a = first, .n = kept});
}

uint32_t whit_language_text(whit_language *l, const char *text, size_t n_bytes)
{
    whit_buf codes = {.allocator = l->allocator};
    for (size_t at = 0, length; at < n_bytes; at += length) {
        uint32_t code = whit_utf8_decode((const uint8_t *)text + at, n_bytes - at, &length);
        if (code == WHIT_UTF8_INVALID) l->failed = true;
        if (!whit_buf_append(&codes, &code, sizeof code)) l->failed = true;
        if (l->failed) break;
    }
    uint32_t result = WHIT_LANGUAGE_EMPTY;
    for (size_t i = codes.size_bytes / sizeof(uint32_t); i-- > 0 && !l->failed;) {
        uint32_t code = (WHIT_ITEMS(const uint32_t, &codes))[i];
        whit_code_range range = {code, code};
        result = whit_language_then(l, whit_language_codes(l, &range, 1), result);
    }
    whit_buf_free(&codes);
    return result;
}

uint32_t whit_language_then(whit_language *l, uint32_t a, uint32_t b)
{
    if (l->failed || a == WHIT_LANGUAGE_NONE || b == WHIT_LANGUAGE_NONE) return WHIT_LANGUAGE_NONE;
    if (a == WHIT_LANGUAGE_EMPTY) return b;
    if (b == WHIT_LANGUAGE_EMPTY) return a;
    whit_language_node x = whit_language_at(l, a);
    if (a == WHIT_LANGUAGE_ALL && b == WHIT_LANGUAGE_ALL) return a;
    /* Concatenations are nested to the right; long ones are rebuilt by a loop instead of recursion. */
    if (x.kind == WHIT_LANGUAGE_IS_THEN) {
        whit_buf parts = {.allocator = l->allocator};
        for (; x.kind == WHIT_LANGUAGE_IS_THEN; a = x.b, x = whit_language_at(l, a))
            if (!whit_buf_append(&parts, &x.a, sizeof x.a)) l->failed = true;
        b = whit_language_then(l, a, b);
        l->work += parts.size_bytes / sizeof a;
        for (size_t i = parts.size_bytes / sizeof a; i-- > 0;)
            b = whit_language_then(l, (WHIT_ITEMS(const uint32_t, &parts))[i], b);
        whit_buf_free(&parts);
        return b;
    }
    return keep_node(l,
                     (whit_language_node){.kind = WHIT_LANGUAGE_IS_THEN,
                                          .a = a,
                                          .b = b,
                                          .has_empty = x.has_empty && whit_language_at(l, b).has_empty});
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Appends the operands of a node to the list: its children if it is of the same kind, else the node itself. */
static void append_parts(whit_language *l, whit_language_kind kind, uint32_t node, whit_buf *list)
{
    whit_language_node n = whit_language_at(l, node);
    const uint32_t *parts = n.kind == kind ? WHIT_ITEMS(const uint32_t, &l->children) + n.a : &node;
    if (!whit_buf_append(list, parts, (n.kind == kind ? n.n : 1) * sizeof node)) l->failed = true;
}

/* Builds a union or intersection from the listed operands: sorts them, and removes duplicates and the operand without
 * effect (`neutral`). If an operand makes the others irrelevant (`decides`), the result is that operand. */
static uint32_t keep_list(whit_language *l, whit_language_kind kind, whit_buf *list, uint32_t neutral, uint32_t decides)
{
    uint32_t *parts = WHIT_ITEMS(uint32_t, list), n = (uint32_t)(list->size_bytes / sizeof *parts), kept = 0;
    bool is_or = kind == WHIT_LANGUAGE_IS_OR, has_empty = !is_or;
    if (l->failed) return WHIT_LANGUAGE_NONE;
    if (n > 1) qsort(parts, n, sizeof *parts, by_number);
    for (uint32_t i = 0; i < n; i++) {
        if (parts[i] == decides) return decides;
        if (parts[i] == neutral || (kept && parts[kept - 1] == parts[i])) continue;
        parts[kept++] = parts[i];
    }
    for (uint32_t i = 0; i < kept; i++) {
        whit_language_node part = whit_language_at(l, parts[i]);
        has_empty = is_or ? has_empty || part.has_empty : has_empty && part.has_empty;
        if (part.kind == WHIT_LANGUAGE_IS_NOT && /* an operand and its complement are both listed */
            bsearch(&part.a, parts, kept, sizeof *parts, by_number))
            return decides;
    }
    if (kept == 0) return neutral;
    if (kept == 1) return parts[0];
    uint32_t first = (uint32_t)(l->children.size_bytes / sizeof *parts);
    if (!whit_buf_append(&l->children, parts, kept * sizeof *parts)) l->failed = true;
    return keep_node(l, (whit_language_node){.kind = (uint8_t)kind, .a = first, .n = kept, .has_empty = has_empty});
}

static uint32_t join_languages(whit_language *l, whit_language_kind kind, uint32_t a, uint32_t b)
{
    bool is_or = kind == WHIT_LANGUAGE_IS_OR;
    whit_buf list = {.allocator = l->allocator};
    if (l->failed) return WHIT_LANGUAGE_NONE;
    append_parts(l, kind, a, &list);
    append_parts(l, kind, b, &list);
    uint32_t neutral = is_or ? WHIT_LANGUAGE_NONE : WHIT_LANGUAGE_ALL;
    uint32_t absorbing = is_or ? WHIT_LANGUAGE_ALL : WHIT_LANGUAGE_NONE;
    uint32_t result = keep_list(l, kind, &list, neutral, absorbing);
    whit_buf_free(&list);
    return result;
}

uint32_t whit_language_or(whit_language *l, uint32_t a, uint32_t b)
{
    if (a == WHIT_LANGUAGE_NONE || a == b) return b;
    if (b == WHIT_LANGUAGE_NONE) return a;
    return join_languages(l, WHIT_LANGUAGE_IS_OR, a, b);
}

uint32_t whit_language_and(whit_language *l, uint32_t a, uint32_t b)
{
    if (a == WHIT_LANGUAGE_NONE || b == WHIT_LANGUAGE_NONE) return WHIT_LANGUAGE_NONE;
    if (a == WHIT_LANGUAGE_ALL || a == b) return b;
    if (b == WHIT_LANGUAGE_ALL) return a;
    return join_languages(l, WHIT_LANGUAGE_IS_AND, a, b);
}

uint32_t whit_language_not(whit_language *l, uint32_t a)
{
    if (l->failed) return WHIT_LANGUAGE_NONE;
    whit_language_node n = whit_language_at(l, a);
    if (n.kind == WHIT_LANGUAGE_IS_NOT) return n.a;
    return keep_node(l, (whit_language_node){.kind = WHIT_LANGUAGE_IS_NOT, .a = a, .has_empty = !n.has_empty});
}

uint32_t whit_language_repeat(whit_language *l, uint32_t a, uint32_t min, uint32_t max)
{
    if (l->failed) return WHIT_LANGUAGE_NONE;
    whit_language_node n = whit_language_at(l, a);
    if (max == 0 || a == WHIT_LANGUAGE_EMPTY) return WHIT_LANGUAGE_EMPTY;
    if (a == WHIT_LANGUAGE_NONE) return min ? WHIT_LANGUAGE_NONE : WHIT_LANGUAGE_EMPTY;
    if (n.has_empty) min = 0;
    if (min == 1 && max == 1) return a;
    if (a == WHIT_LANGUAGE_ALL) return a;
    if (min == 0 && max == WHIT_AUTOMATON_UNBOUNDED) {
        if (n.kind == WHIT_LANGUAGE_IS_REPEAT && n.b == 0 && n.n == max) return a;
        const whit_code_range *r = WHIT_ITEMS(const whit_code_range, &l->ranges) + n.a;
        if (n.kind == WHIT_LANGUAGE_IS_CODES && n.n == 1 && r->first == 0 && r->last == 0x10FFFF)
            return WHIT_LANGUAGE_ALL;
    }
    return keep_node(
        l, (whit_language_node){.kind = WHIT_LANGUAGE_IS_REPEAT, .a = a, .b = min, .n = max, .has_empty = min == 0});
}

uint32_t whit_language_length(whit_language *l, uint32_t min, uint32_t max)
{
    static const whit_code_range any = {0, 0x10FFFF};
    return whit_language_repeat(l, whit_language_codes(l, &any, 1), min, max);
}

/* ---- patterns ---------------------------------------------------------------------------------- */

static bool looks_ahead(const whit_pattern *syntax, uint32_t node)
{
    const whit_pattern_node *n = whit_pattern_at(syntax, node);
    if (n->kind == WHIT_PATTERN_AHEAD || n->kind == WHIT_PATTERN_NOT_AHEAD || n->kind == WHIT_PATTERN_END) return true;
    for (uint32_t child = n->child; child != WHIT_PATTERN_NONE; child = whit_pattern_at(syntax, child)->sibling)
        if (looks_ahead(syntax, child)) return true;
    return false;
}

/* Returns the language of a pattern node's texts followed by `rest`, the language of everything after the node.
 * Lookahead in the node constrains `rest`. */
static uint32_t follow_with(whit_language *l, const whit_pattern *syntax, uint32_t node, uint32_t rest)
{
    if (l->failed || node == WHIT_PATTERN_NONE || ++l->work > WORK_MAX) {
        l->failed = true;
        return WHIT_LANGUAGE_NONE;
    }
    const whit_pattern_node *n = whit_pattern_at(syntax, node);
    uint32_t result = WHIT_LANGUAGE_NONE;
    switch ((whit_pattern_kind)n->kind) {
    case WHIT_PATTERN_CODES:
        return whit_language_then(
            l, whit_language_codes(l, WHIT_ITEMS(const whit_code_range, &syntax->ranges) + n->a, n->b), rest);
    case WHIT_PATTERN_RULE: l->failed = true; return result;
    case WHIT_PATTERN_AHEAD: return whit_language_and(l, follow_with(l, syntax, n->child, WHIT_LANGUAGE_ALL), rest);
    case WHIT_PATTERN_NOT_AHEAD:
        return whit_language_and(l, whit_language_not(l, follow_with(l, syntax, n->child, WHIT_LANGUAGE_ALL)), rest);
    case WHIT_PATTERN_END: return whit_language_at(l, rest).has_empty ? WHIT_LANGUAGE_EMPTY : result;
    case WHIT_PATTERN_ANY:
        for (uint32_t child = n->child; child != WHIT_PATTERN_NONE; child = whit_pattern_at(syntax, child)->sibling)
            result = whit_language_or(l, result, follow_with(l, syntax, child, rest));
        return result;
    case WHIT_PATTERN_REPEAT: {
        if (!looks_ahead(syntax, n->child)) {
            uint32_t body = follow_with(l, syntax, n->child, WHIT_LANGUAGE_EMPTY);
            return whit_language_then(l, whit_language_repeat(l, body, n->a, n->b), rest);
        }
        if (n->b > UNROLL_MAX) { /* with lookahead, the repetition must be unrolled */
            l->failed = true;
            return result;
        }
        result = rest;
        for (uint32_t i = n->b; i-- > 0;) {
            uint32_t once = follow_with(l, syntax, n->child, result);
            result = i >= n->a ? whit_language_or(l, once, rest) : once;
        }
        return result;
    }
    case WHIT_PATTERN_ALL: break;
    }
    whit_buf parts = {.allocator = l->allocator};
    for (uint32_t child = n->child; child != WHIT_PATTERN_NONE; child = whit_pattern_at(syntax, child)->sibling)
        if (!whit_buf_append(&parts, &child, sizeof child)) l->failed = true;
    for (size_t i = parts.size_bytes / sizeof(uint32_t); i-- > 0 && !l->failed;)
        rest = follow_with(l, syntax, (WHIT_ITEMS(const uint32_t, &parts))[i], rest);
    whit_buf_free(&parts);
    return rest;
}

uint32_t whit_language_pattern(whit_language *l, const whit_pattern *syntax, uint32_t root)
{
    return follow_with(l, syntax, root, WHIT_LANGUAGE_EMPTY);
}

/* ---- derivatives ------------------------------------------------------------------------------- */

static bool has_code(const whit_language *l, const whit_language_node *n, uint32_t code)
{
    const whit_code_range *ranges = WHIT_ITEMS(const whit_code_range, &l->ranges) + n->a;
    uint32_t low = 0, high = n->n;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (ranges[middle].last < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n->n && ranges[low].first <= code;
}

static uint32_t derive(whit_language *l, uint32_t node, uint32_t code, uint32_t depth)
{
    if (l->failed || depth > DEPTH_MAX || ++l->work > WORK_MAX) {
        l->failed = true;
        return WHIT_LANGUAGE_NONE;
    }
    whit_language_node n = whit_language_at(l, node);
    switch ((whit_language_kind)n.kind) {
    case WHIT_LANGUAGE_IS_NONE:
    case WHIT_LANGUAGE_IS_EMPTY: return WHIT_LANGUAGE_NONE;
    case WHIT_LANGUAGE_IS_CODES: return has_code(l, &n, code) ? WHIT_LANGUAGE_EMPTY : WHIT_LANGUAGE_NONE;
    case WHIT_LANGUAGE_IS_THEN: {
        uint32_t first = whit_language_then(l, derive(l, n.a, code, depth + 1), n.b);
        if (!whit_language_at(l, n.a).has_empty) return first;
        return whit_language_or(l, first, derive(l, n.b, code, depth + 1));
    }
    case WHIT_LANGUAGE_IS_NOT: return whit_language_not(l, derive(l, n.a, code, depth + 1));
    case WHIT_LANGUAGE_IS_REPEAT: {
        uint32_t max = n.n == WHIT_AUTOMATON_UNBOUNDED ? n.n : n.n - 1;
        uint32_t again = whit_language_repeat(l, n.a, n.b ? n.b - 1 : 0, max);
        return whit_language_then(l, derive(l, n.a, code, depth + 1), again);
    }
    case WHIT_LANGUAGE_IS_OR:
    case WHIT_LANGUAGE_IS_AND: break;
    }
    bool is_or = n.kind == WHIT_LANGUAGE_IS_OR;
    whit_buf list = {.allocator = l->allocator};
    for (uint32_t i = 0; i < n.n && !l->failed; i++) {
        uint32_t part = derive(l, (WHIT_ITEMS(const uint32_t, &l->children))[n.a + i], code, depth + 1);
        append_parts(l, (whit_language_kind)n.kind, part, &list);
    }
    uint32_t neutral = is_or ? WHIT_LANGUAGE_NONE : WHIT_LANGUAGE_ALL;
    uint32_t absorbing = is_or ? WHIT_LANGUAGE_ALL : WHIT_LANGUAGE_NONE;
    uint32_t result = keep_list(l, (whit_language_kind)n.kind, &list, neutral, absorbing);
    whit_buf_free(&list);
    return result;
}

uint32_t whit_language_derive(whit_language *l, uint32_t node, uint32_t code)
{
    return derive(l, node, code, 0);
}

bool whit_language_matches(whit_language *l, uint32_t node, const char *text, size_t n_bytes)
{
    for (size_t at = 0, length; at < n_bytes && !l->failed; at += length) {
        uint32_t code = whit_utf8_decode((const uint8_t *)text + at, n_bytes - at, &length);
        if (code == WHIT_UTF8_INVALID) l->failed = true;
        node = derive(l, node, code, 0);
    }
    return !l->failed && whit_language_at(l, node).has_empty;
}
