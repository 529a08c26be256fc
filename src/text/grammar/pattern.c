/* SPDX-License-Identifier: MIT
 * Builds the syntax trees of regular expressions and GBNF, and converts them to a graph. */
#include "grammar/pattern.h"
#include "base/items.h"

#include <stdlib.h>

void whit_pattern_close(whit_pattern *syntax)
{
    whit_buf_free(&syntax->nodes);
    whit_buf_free(&syntax->ranges);
    *syntax = (whit_pattern){0};
}

uint32_t whit_pattern_add(whit_pattern *syntax, whit_pattern_kind kind, uint32_t a, uint32_t b)
{
    whit_pattern_node node = {kind, a, b, WHIT_PATTERN_NONE, WHIT_PATTERN_NONE, WHIT_PATTERN_NONE};
    uint32_t at = (uint32_t)(syntax->nodes.size_bytes / sizeof node);
    if (syntax->failed || at >= WHIT_AUTOMATON_MAX_NODES / 2 || !whit_buf_append(&syntax->nodes, &node, sizeof node)) {
        syntax->failed = true;
        return WHIT_PATTERN_NONE;
    }
    return at;
}

void whit_pattern_append(whit_pattern *syntax, uint32_t parent, uint32_t child)
{
    if (parent == WHIT_PATTERN_NONE || child == WHIT_PATTERN_NONE) {
        syntax->failed = true;
        return;
    }
    whit_pattern_node *p = whit_pattern_at(syntax, parent);
    if (p->last_child == WHIT_PATTERN_NONE)
        p->child = child;
    else
        whit_pattern_at(syntax, p->last_child)->sibling = child;
    p->last_child = child;
}

bool whit_pattern_count(const uint8_t *text, size_t n_bytes, size_t *at, uint32_t *count)
{
    size_t from = *at;
    uint64_t value = 0;
    for (; *at < n_bytes && text[*at] >= '0' && text[*at] <= '9'; ++*at)
        if (value < WHIT_AUTOMATON_UNBOUNDED) value = value * 10 + (text[*at] - '0');
    *count = value < WHIT_AUTOMATON_UNBOUNDED ? (uint32_t)value : WHIT_AUTOMATON_UNBOUNDED - 1;
    return *at > from;
}

static int by_first(const void *a, const void *b)
{
    const whit_code_range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

uint32_t whit_pattern_codes(whit_pattern *syntax, whit_code_range *ranges, size_t n, bool inverted)
{
    uint32_t begin = (uint32_t)(syntax->ranges.size_bytes / sizeof *ranges), count = 0, from = 0;
    if (n > 1) qsort(ranges, n, sizeof *ranges, by_first);
    for (size_t i = 0; i <= n && !syntax->failed; i++) {
        whit_code_range next = i < n ? ranges[i] : (whit_code_range){0x110000, 0x110000};
        if (inverted) {
            whit_code_range gap = {from, next.first - 1};
            if (next.first > from) {
                if (!whit_buf_append(&syntax->ranges, &gap, sizeof gap)) syntax->failed = true;
                count++;
            }
            if (next.last + 1 > from) from = next.last + 1;
            continue;
        }
        if (i == n) break;
        whit_code_range *last = count ? WHIT_ITEMS(whit_code_range, &syntax->ranges) + begin + count - 1 : NULL;
        if (last && next.first <= last->last + 1) {
            if (next.last > last->last) last->last = next.last;
            continue;
        }
        if (!whit_buf_append(&syntax->ranges, &next, sizeof next)) syntax->failed = true;
        count++;
    }
    return whit_pattern_add(syntax, WHIT_PATTERN_CODES, begin, count);
}

/* ---- JSON strings ---------------------------------------------------------------------------- */

static uint32_t escape(whit_automaton *graph, uint32_t code, uint32_t next)
{
    static const char letters[] = "\"\"\\\\b\bf\fn\nr\rt\t"; /* pairs: escape letter, character */
    char text[8] = {'\\'};
    size_t n = 2;
    for (size_t i = 0; i + 1 < sizeof letters; i += 2)
        if ((uint8_t)letters[i + 1] == code) text[1] = letters[i];
    if (!text[1]) {
        static const char hex[] = "0123456789abcdef";
        memcpy(text, "\\u00", 4);
        text[4] = hex[code >> 4];
        text[5] = hex[code & 15];
        n = 6;
    }
    return whit_automaton_text(graph, text, n, next);
}

uint32_t whit_automaton_json_code(whit_automaton *graph, const whit_code_range *ranges, size_t n, uint32_t next)
{
    static const whit_code_range plain[] = {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x10FFFF}};
    whit_buf kept = {.allocator = graph->allocator};
    uint32_t ways[40];
    size_t n_ways = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < 3; k++) {
            whit_code_range both = {ranges[i].first > plain[k].first ? ranges[i].first : plain[k].first,
                                    ranges[i].last < plain[k].last ? ranges[i].last : plain[k].last};
            if (both.first <= both.last && !whit_buf_append(&kept, &both, sizeof both)) graph->failed = true;
        }
        for (uint32_t code = ranges[i].first; code <= ranges[i].last && code <= '\\'; code++) {
            if (code == 0x20) code = '"';
            if (code == '#') code = '\\';
            if (code <= ranges[i].last && (code < 0x20 || code == '"' || code == '\\'))
                ways[n_ways++] = escape(graph, code, next);
        }
    }
    if (kept.size_bytes || n_ways == 0)
        ways[n_ways++] = whit_automaton_code(graph, WHIT_ITEMS(const whit_code_range, &kept),
                                             kept.size_bytes / sizeof(whit_code_range), next);
    whit_buf_free(&kept);
    return whit_automaton_split(graph, ways, n_ways);
}

static uint32_t hex_digit(whit_automaton *graph, uint32_t first, uint32_t last, uint32_t next)
{
    whit_byte_set set = {0};
    for (uint32_t d = first; d <= last; d++) {
        whit_byte_add(&set, (uint8_t) "0123456789abcdef"[d]);
        whit_byte_add(&set, (uint8_t) "0123456789ABCDEF"[d]);
    }
    return whit_automaton_set(graph, &set, next);
}

/* Accepts n_digits hexadecimal digits with a value from first to last. */
static uint32_t hex_between(whit_automaton *graph, uint32_t first, uint32_t last, uint32_t n_digits, uint32_t next)
{
    if (n_digits == 1) return hex_digit(graph, first, last, next);
    uint32_t ways[3], n_ways = 0, shift = 4 * (n_digits - 1), low = (1u << shift) - 1;
    while (first <= last) {
        uint32_t top = first >> shift, top_last = last >> shift, to = first | low;
        if ((first & low) == 0 && (last & low) != low && top < top_last) top_last--;
        if ((first & low) == 0 && (top < top_last || last >= to))
            to = top_last << shift | low; /* joins complete blocks of lower digits */
        else
            top_last = top;
        if (to > last) to = last, top_last = top;
        uint32_t inner = hex_between(graph, first & low, to & low, n_digits - 1, next);
        ways[n_ways++] = hex_digit(graph, top, top_last, inner);
        first = to + 1;
    }
    return whit_automaton_split(graph, ways, n_ways);
}

/* Returns whether a code point is in one of the ranges. */
static bool in_ranges(const whit_code_range *ranges, size_t n, uint32_t code)
{
    for (size_t i = 0; i < n; i++)
        if (code >= ranges[i].first && code <= ranges[i].last) return true;
    return false;
}

uint32_t whit_automaton_json_spelled(whit_automaton *graph, const whit_code_range *ranges, size_t n, uint32_t next)
{
    /* plain: characters that need no escape in a JSON string. units: characters of one escape \uXXXX, which excludes
     * surrogates. */
    static const whit_code_range plain[] = {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x10FFFF}},
                                 units[] = {{0, 0xD7FF}, {0xE000, 0xFFFF}};
    static const char letters[] = "\"\"\\\\//b\bf\fn\nr\rt\t"; /* pairs: escape letter, character */
    whit_buf kept = {.allocator = graph->allocator}, ways = {.allocator = graph->allocator};
    whit_byte_set set = {0};
    uint32_t escaped[2], n_escaped = 0, way;
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < 5; k++) {
            const whit_code_range *part = k < 3 ? &plain[k] : &units[k - 3];
            whit_code_range both = {ranges[i].first > part->first ? ranges[i].first : part->first,
                                    ranges[i].last < part->last ? ranges[i].last : part->last};
            if (both.first > both.last) continue;
            if (k >= 3) way = hex_between(graph, both.first, both.last, 4, next);
            if (k < 3 ? !whit_buf_append(&kept, &both, sizeof both) : !whit_buf_append(&ways, &way, sizeof way))
                graph->failed = true;
        }
    }
    for (size_t i = 0; i + 1 < sizeof letters; i += 2)
        if (in_ranges(ranges, n, (uint8_t)letters[i + 1])) whit_byte_add(&set, (uint8_t)letters[i]), any = true;
    if (any) escaped[n_escaped++] = whit_automaton_set(graph, &set, next);
    if (ways.size_bytes) {
        way = whit_automaton_split(graph, WHIT_ITEMS(const uint32_t, &ways), ways.size_bytes / sizeof way);
        escaped[n_escaped++] = whit_automaton_text(graph, "u", 1, way);
    }
    uint32_t both[2], n_both = 0;
    if (kept.size_bytes)
        both[n_both++] = whit_automaton_code(graph, WHIT_ITEMS(const whit_code_range, &kept),
                                             kept.size_bytes / sizeof(whit_code_range), next);
    if (n_escaped)
        both[n_both++] = whit_automaton_text(graph, "\\", 1, whit_automaton_split(graph, escaped, n_escaped));
    whit_buf_free(&kept);
    whit_buf_free(&ways);
    return whit_automaton_split(graph, both, n_both);
}

uint32_t whit_automaton_json_character(whit_automaton *graph, uint32_t next)
{
    static const whit_code_range all = {0, 0x10FFFF};
    return whit_automaton_json_spelled(graph, &all, 1, next);
}

/* ---- conversion to a graph ------------------------------------------------------------------- */

uint32_t whit_pattern_emit(const whit_pattern *syntax, uint32_t node, bool in_json, whit_automaton *graph,
                           uint32_t next)
{
    if (graph->failed || node == WHIT_PATTERN_NONE) return WHIT_AUTOMATON_NONE;
    const whit_pattern_node *n = whit_pattern_at(syntax, node);
    switch ((whit_pattern_kind)n->kind) {
    case WHIT_PATTERN_CODES: {
        const whit_code_range *ranges = WHIT_ITEMS(const whit_code_range, &syntax->ranges) + n->a;
        return (in_json ? whit_automaton_json_code : whit_automaton_code)(graph, ranges, n->b, next);
    }
    case WHIT_PATTERN_RULE: return whit_automaton_call(graph, n->a, next);
    case WHIT_PATTERN_REPEAT: {
        if (n->b == 0) return next;
        if (n->a == 0 && n->b == 1) {
            uint32_t ways[] = {whit_pattern_emit(syntax, n->child, in_json, graph, next), next};
            return whit_automaton_split(graph, ways, 2);
        }
        if (n->a == 1 && n->b == 1) return whit_pattern_emit(syntax, n->child, in_json, graph, next);
        uint32_t body = whit_pattern_emit(syntax, n->child, in_json, graph, WHIT_AUTOMATON_RET);
        return whit_automaton_repeat(graph, body, n->a, n->b, next);
    }
    case WHIT_PATTERN_AHEAD:
    case WHIT_PATTERN_NOT_AHEAD:
    case WHIT_PATTERN_END: graph->failed = true; return WHIT_AUTOMATON_NONE; /* only language.h supports these */
    case WHIT_PATTERN_ALL:
    case WHIT_PATTERN_ANY: break;
    }
    whit_buf parts = {.allocator = graph->allocator};
    for (uint32_t child = n->child; child != WHIT_PATTERN_NONE; child = whit_pattern_at(syntax, child)->sibling) {
        uint32_t part = n->kind == WHIT_PATTERN_ALL ? child : whit_pattern_emit(syntax, child, in_json, graph, next);
        if (!whit_buf_append(&parts, &part, sizeof part)) graph->failed = true;
    }
    uint32_t *part = WHIT_ITEMS(uint32_t, &parts), n_parts = (uint32_t)(parts.size_bytes / sizeof *part);
    if (n->kind == WHIT_PATTERN_ANY)
        next = whit_automaton_split(graph, part, n_parts);
    else
        while (n_parts) next = whit_pattern_emit(syntax, part[--n_parts], in_json, graph, next);
    whit_buf_free(&parts);
    return next;
}

static uint32_t times(uint32_t length, uint32_t n)
{
    uint64_t product = (uint64_t)length * n;
    if (length == 0 || n == 0) return 0;
    return length == WHIT_AUTOMATON_UNBOUNDED || n == WHIT_AUTOMATON_UNBOUNDED || product >= WHIT_AUTOMATON_UNBOUNDED
        ? WHIT_AUTOMATON_UNBOUNDED
        : (uint32_t)product;
}

static uint32_t plus(uint32_t a, uint32_t b)
{
    return a == WHIT_AUTOMATON_UNBOUNDED || b >= WHIT_AUTOMATON_UNBOUNDED - a ? WHIT_AUTOMATON_UNBOUNDED : a + b;
}

void whit_pattern_length(const whit_pattern *syntax, uint32_t node, uint32_t *min, uint32_t *max)
{
    const whit_pattern_node *n = whit_pattern_at(syntax, node);
    uint32_t low, high;
    *min = *max = 0;
    switch ((whit_pattern_kind)n->kind) {
    case WHIT_PATTERN_CODES: *min = *max = 1; return;
    case WHIT_PATTERN_AHEAD:
    case WHIT_PATTERN_NOT_AHEAD:
    case WHIT_PATTERN_END: return;
    case WHIT_PATTERN_RULE: *max = WHIT_AUTOMATON_UNBOUNDED; return;
    case WHIT_PATTERN_REPEAT:
        whit_pattern_length(syntax, n->child, &low, &high);
        *min = times(low, n->a);
        *max = times(high, n->b);
        return;
    case WHIT_PATTERN_ALL:
    case WHIT_PATTERN_ANY: break;
    }
    bool first = true;
    for (uint32_t child = n->child; child != WHIT_PATTERN_NONE; child = whit_pattern_at(syntax, child)->sibling) {
        whit_pattern_length(syntax, child, &low, &high);
        bool all = n->kind == WHIT_PATTERN_ALL;
        if (all)
            *min = plus(*min, low);
        else if (first || low < *min)
            *min = low;
        if (all)
            *max = plus(*max, high);
        else if (first || high > *max)
            *max = high;
        first = false;
    }
}
