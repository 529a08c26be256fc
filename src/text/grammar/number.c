/* SPDX-License-Identifier: MIT
 * Builds the graph of the numbers between two bounds, digit by digit.
 *
 * A place in a number consists of the number of digits on this side of the point, the order of the digits so far
 * relative to the digits of each bound, and the remainder by the step. Before the point a shorter number is smaller, so
 * digits are compared from the left, and lengths at the end of the integer part. Each place becomes one node, built
 * when it is first reached. */
#include "grammar/number.h"
#include "base/items.h"

enum {
    DIGITS = 16,
    DIGITS_MAX = 40,
    EXPONENT_MAX = 99,
    PLACES_MAX = 1 << 19,
    FIRST_SLOTS = 1 << 8,
    EXACT_WHOLE = 9,
    EXACT_DECIMALS = 6,
    EXACT_MULTIPLE = 15
};

typedef enum order { LESS = 0, EQUAL = 1, MORE = 2 } order;

typedef struct place {
    bool fraction;
    uint8_t n;         /* number of digits so far before the point or, if `fraction`, after it */
    uint8_t low, high; /* order of the digits so far relative to each bound's digits */
    uint32_t rest;
} place;

typedef struct builder {
    whit_automaton *graph;
    const whit_number_range *range;
    const whit_number_form *form;
    uint32_t n_whole, n_decimals; /* largest number of digits before and after the point */
    uint32_t next;
    uint64_t *keys; /* (n_slots) hash table of places, packed; 0: free */
    uint32_t *nodes;
    uint32_t n_slots, n_places;
} builder;

/* ---- digits, and numbers without bounds -------------------------------------------------------- */

static uint32_t one_digit(whit_automaton *graph, uint32_t first, uint32_t last, uint32_t next)
{
    whit_byte_set set = {0};
    for (uint32_t d = first; d <= last; d++) whit_byte_add(&set, (uint8_t)('0' + d));
    return whit_automaton_set(graph, &set, next);
}

static uint32_t many_digits(whit_automaton *graph, uint32_t min, uint32_t max, uint32_t next)
{
    return max ? whit_automaton_repeat(graph, one_digit(graph, 0, 9, WHIT_AUTOMATON_RET), min, max, next) : next;
}

static uint32_t either(whit_automaton *graph, uint32_t a, uint32_t b)
{
    uint32_t ways[] = {a, b};
    return whit_automaton_split(graph, ways, 2);
}

static uint32_t letter_e(whit_automaton *graph, uint32_t next)
{
    whit_byte_set set = {0};
    whit_byte_add(&set, 'e');
    whit_byte_add(&set, 'E');
    return whit_automaton_set(graph, &set, next);
}

uint32_t whit_number_any(whit_automaton *graph, bool integers, bool negative, uint32_t next)
{
    if (!integers) {
        whit_byte_set sign = {0};
        whit_byte_add(&sign, '+');
        whit_byte_add(&sign, '-');
        uint32_t exponent = many_digits(graph, 1, 2, next);
        exponent = letter_e(graph, either(graph, whit_automaton_set(graph, &sign, exponent), exponent));
        next = either(graph, exponent, next);
        next = either(graph, whit_automaton_text(graph, ".", 1, many_digits(graph, 1, DIGITS, next)), next);
    }
    uint32_t natural = either(graph, whit_automaton_text(graph, "0", 1, next),
                              one_digit(graph, 1, 9, many_digits(graph, 0, DIGITS - 1, next)));
    return negative ? either(graph, whit_automaton_text(graph, "-", 1, natural), natural) : natural;
}

/* ---- plain numbers ----------------------------------------------------------------------------- */

/* Returns the number of digits before the point; a number below 1 has one digit there, 0. */
static int64_t whole_digits(const whit_decimal *d)
{
    return d->n && d->point > 0 ? d->point : 1;
}

static char whole_digit(const whit_decimal *d, uint32_t i)
{
    return d->n && d->point > 0 ? whit_decimal_digit(d, i) : '0';
}

static char decimal_digit(const whit_decimal *d, uint32_t i)
{
    int64_t at = d->point + i;
    return d->n == 0 || at < 0 ? '0' : whit_decimal_digit(d, (size_t)at);
}

static int64_t n_decimals_of(const whit_decimal *d)
{
    return d->n && (int64_t)d->n > d->point ? (int64_t)d->n - d->point : 0;
}

static uint32_t at_place(builder *b, place p);

/* Compares an integer part of n digits with that of a bound: by length, and if these are equal by the digits
 * (`so_far`). */
static order compare_whole(const whit_decimal *bound, uint32_t n, uint8_t so_far)
{
    int64_t length = whole_digits(bound);
    if (n < length) return LESS;
    return n > length ? MORE : (order)so_far;
}

static uint8_t compare_digit(uint8_t so_far, char digit, char bound)
{
    if (so_far != EQUAL) return so_far;
    if (digit < bound) return LESS;
    if (digit > bound) return MORE;
    return EQUAL;
}

/* Returns whether the number may end after `n` decimals, with these orders relative to the bounds and this
 * remainder. */
static bool may_end(const builder *b, uint8_t low, uint8_t high, uint32_t n, uint32_t rest)
{
    const whit_number_range *r = b->range;
    const whit_number_form *f = b->form;
    if (low == LESS || (r->has_high && high == MORE)) return false;
    if (low == EQUAL && (r->low_out || n_decimals_of(&r->low) > n)) return false;
    if (high == EQUAL && r->high_out && n_decimals_of(&r->high) <= n) return false;
    if (f->fraction) return rest != 0;
    if (!f->step) return true;
    uint64_t scaled = rest;
    for (uint32_t i = n; i < f->decimals; i++) scaled = scaled * 10 % f->step;
    return (scaled == 0) != f->no_multiple;
}

/* Adds to `ways` the digits that may follow at a place. Digits that lead to the same place share an alternative. */
static void add_digits(builder *b, place p, whit_buf *ways)
{
    const whit_number_range *r = b->range;
    place to[10];
    bool ok[10];
    for (uint32_t d = 0; d < 10; d++) {
        char digit = (char)('0' + d);
        place t = {.fraction = p.fraction, .n = (uint8_t)(p.n + 1)};
        char low = p.fraction ? decimal_digit(&r->low, p.n) : whole_digit(&r->low, p.n);
        char high = p.fraction ? decimal_digit(&r->high, p.n) : whole_digit(&r->high, p.n);
        t.low = compare_digit(p.low, digit, low);
        t.high = r->has_high ? compare_digit(p.high, digit, high) : LESS;
        t.rest = b->form->step ? (uint32_t)(((uint64_t)p.rest * 10 + d) % b->form->step) : 0;
        if (b->form->fraction) t.rest = p.fraction && (p.rest || d); /* the rest is 1 once a decimal was not 0 */
        ok[d] = !p.fraction || (t.low != LESS && t.high != MORE);
        to[d] = t;
    }
    for (uint32_t d = 0; d < 10; d++) {
        whit_byte_set set = {0};
        if (!ok[d]) continue;
        for (uint32_t k = d; k < 10; k++) {
            if (!ok[k] || to[k].low != to[d].low || to[k].high != to[d].high || to[k].rest != to[d].rest) continue;
            whit_byte_add(&set, (uint8_t)('0' + k));
            if (k > d) ok[k] = false;
        }
        uint32_t way = whit_automaton_set(b->graph, &set, at_place(b, to[d]));
        if (!whit_buf_append(ways, &way, sizeof way)) b->graph->failed = true;
    }
}

static uint32_t make_place(builder *b, place p)
{
    whit_automaton *g = b->graph;
    uint8_t low = p.low, high = p.high;
    if (!p.fraction) {
        low = (uint8_t)compare_whole(&b->range->low, p.n, p.low);
        high = b->range->has_high ? (uint8_t)compare_whole(&b->range->high, p.n, p.high) : LESS;
    }
    uint32_t n_written = p.fraction ? p.n : 0;
    bool loose = p.fraction && low == MORE && high == LESS && !b->form->step && (!b->form->fraction || p.rest);
    if (loose) return many_digits(g, p.n ? 0 : 1, b->n_decimals - p.n, b->next);
    whit_buf ways = {.allocator = g->allocator};
    bool first = p.fraction && p.n == 0; /* at least one digit must follow the point */
    if (!first && may_end(b, low, high, n_written, p.rest) && !whit_buf_append(&ways, &b->next, sizeof b->next))
        g->failed = true;
    if (!p.fraction && b->n_decimals && low != LESS && high != MORE) {
        place after = {.fraction = true, .low = low, .high = high, .rest = p.rest};
        uint32_t way = whit_automaton_text(g, ".", 1, at_place(b, after));
        if (!whit_buf_append(&ways, &way, sizeof way)) g->failed = true;
    }
    if (p.n < (p.fraction ? b->n_decimals : b->n_whole)) add_digits(b, p, &ways);
    uint32_t node = whit_automaton_split(g, WHIT_ITEMS(const uint32_t, &ways), ways.size_bytes / sizeof node);
    whit_buf_free(&ways);
    return node;
}

static bool grow_places(builder *b)
{
    uint32_t n = b->n_slots ? b->n_slots * 2 : FIRST_SLOTS;
    const whit_allocator *allocator = b->graph->allocator;
    uint64_t *keys = whit_zalloc_array(allocator, n, sizeof *keys);
    uint32_t *nodes = whit_zalloc_array(allocator, n, sizeof *nodes);
    for (uint32_t i = 0; keys && nodes && i < b->n_slots; i++) {
        if (!b->keys[i]) continue;
        uint32_t at = (uint32_t)(b->keys[i] * 0x9E3779B97F4A7C15u >> 40) & (n - 1);
        while (keys[at]) at = (at + 1) & (n - 1);
        keys[at] = b->keys[i];
        nodes[at] = b->nodes[i];
    }
    if (!keys || !nodes) {
        whit_free(allocator, keys, n * sizeof *keys);
        whit_free(allocator, nodes, n * sizeof *nodes);
        b->graph->failed = true;
        return false;
    }
    whit_free(allocator, b->keys, b->n_slots * sizeof *keys);
    whit_free(allocator, b->nodes, b->n_slots * sizeof *nodes);
    b->keys = keys;
    b->nodes = nodes;
    b->n_slots = n;
    return true;
}

static uint32_t *slot_of_place(builder *b, uint64_t key)
{
    uint32_t at = (uint32_t)(key * 0x9E3779B97F4A7C15u >> 40) & (b->n_slots - 1);
    while (b->keys[at] && b->keys[at] != key) at = (at + 1) & (b->n_slots - 1);
    b->keys[at] = key;
    return &b->nodes[at];
}

static uint32_t at_place(builder *b, place p)
{
    uint64_t key = (uint64_t)p.rest << 16 | (uint64_t)p.n << 8 | (uint64_t)p.low << 4 | (uint64_t)p.high << 2 |
        (uint64_t)p.fraction << 1 | 1;
    if (b->graph->failed || b->n_places > PLACES_MAX) b->graph->failed = true;
    if (b->graph->failed) return WHIT_AUTOMATON_NONE;
    if (b->n_places * 2 >= b->n_slots && !grow_places(b)) return WHIT_AUTOMATON_NONE;
    uint32_t known = *slot_of_place(b, key);
    if (known) return known - 1;
    b->n_places++;
    uint32_t node = make_place(b, p); /* the recursion is as deep as the number has digits */
    if (!b->graph->failed) *slot_of_place(b, key) = node + 1;
    return node;
}

static uint32_t plain_number(builder *b)
{
    const whit_number_range *r = b->range;
    whit_automaton *g = b->graph;
    uint32_t ways[10], n_ways = 0;
    for (uint32_t d = 0; d < 10; d++) {
        place p = {.n = 1};
        p.low = compare_digit(EQUAL, (char)('0' + d), whole_digit(&r->low, 0));
        p.high = r->has_high ? compare_digit(EQUAL, (char)('0' + d), whole_digit(&r->high, 0)) : LESS;
        p.rest = b->form->step ? d % b->form->step : 0;
        if (d == 0) { /* after the integer part 0 only a point may follow */
            uint32_t n_whole = b->n_whole;
            b->n_whole = 0;
            ways[n_ways++] = one_digit(g, 0, 0, make_place(b, p));
            b->n_whole = n_whole;
        } else {
            ways[n_ways++] = one_digit(g, d, d, at_place(b, p));
        }
    }
    return whit_automaton_split(g, ways, n_ways);
}

/* ---- numbers with an exponent ------------------------------------------------------------------ */

/* Accepts the integers from first to last, 0 to 99; a single digit may have a leading zero. */
static uint32_t two_digits(whit_automaton *g, uint32_t first, uint32_t last, uint32_t next)
{
    uint32_t ways[4], n_ways = 0;
    if (first < 10) {
        uint32_t unit = one_digit(g, first, last < 9 ? last : 9, next);
        ways[n_ways++] = unit;
        ways[n_ways++] = one_digit(g, 0, 0, unit);
    }
    uint32_t from = first < 10 ? 10 : first;
    if (from <= last && from / 10 == last / 10) {
        ways[n_ways++] = one_digit(g, from / 10, from / 10, one_digit(g, from % 10, last % 10, next));
    } else if (from <= last) {
        uint32_t begin = from % 10 ? from / 10 + 1 : from / 10;
        uint32_t end = last % 10 == 9 ? last / 10 : last / 10 - 1;
        uint32_t inner[3], n_inner = 0;
        if (from % 10) inner[n_inner++] = one_digit(g, from / 10, from / 10, one_digit(g, from % 10, 9, next));
        if (begin <= end) inner[n_inner++] = one_digit(g, begin, end, one_digit(g, 0, 9, next));
        if (last % 10 != 9) inner[n_inner++] = one_digit(g, last / 10, last / 10, one_digit(g, 0, last % 10, next));
        ways[n_ways++] = whit_automaton_split(g, inner, n_inner);
    }
    return whit_automaton_split(g, ways, n_ways);
}

/* Accepts "e" and an exponent from first to last. */
static uint32_t exponent_between(whit_automaton *g, int64_t first, int64_t last, uint32_t next)
{
    uint32_t ways[3], n_ways = 0;
    if (first < -EXPONENT_MAX) first = -EXPONENT_MAX;
    if (last > EXPONENT_MAX) last = EXPONENT_MAX;
    if (first > last) return whit_automaton_split(g, NULL, 0);
    if (last >= 0) {
        uint32_t digits = two_digits(g, first > 0 ? (uint32_t)first : 0, (uint32_t)last, next);
        ways[n_ways++] = digits;
        ways[n_ways++] = whit_automaton_text(g, "+", 1, digits);
    }
    if (first < 0)
        ways[n_ways++] =
            whit_automaton_text(g, "-", 1, two_digits(g, last < 0 ? (uint32_t)-last : 1, (uint32_t)-first, next));
    return letter_e(g, whit_automaton_split(g, ways, n_ways));
}

/* Accepts the exponent of a number d1.d2d3... after its n digits. `low` and `high` are the orders of these digits
 * relative to the digits of the two bounds. */
static uint32_t exponent_for(const builder *b, uint32_t n, uint8_t low, uint8_t high)
{
    const whit_number_range *r = b->range;
    int64_t first = -EXPONENT_MAX, last = EXPONENT_MAX;
    if (r->low.n) first = r->low.point - 1 + !(low == MORE || (low == EQUAL && n >= r->low.n));
    if (r->has_high) last = r->high.point - 1 - (high == MORE);
    return exponent_between(b->graph, first, last, b->next);
}

/* Accepts the rest of a number after n digits. `low` and `high` are the orders of these digits relative to the digits
 * of the two bounds. */
static uint32_t scientific_digits(const builder *b, uint32_t n, uint8_t low, uint8_t high)
{
    const whit_number_range *r = b->range;
    whit_automaton *g = b->graph;
    uint32_t end = exponent_for(b, n, low, high), ways[12], n_ways = 0;
    if (g->failed) return WHIT_AUTOMATON_NONE;
    if (low != EQUAL && high != EQUAL) {
        if (n > 1) return many_digits(g, 0, n <= DIGITS ? DIGITS + 1 - n : 0, end);
        return either(g, end, whit_automaton_text(g, ".", 1, many_digits(g, 1, DIGITS, end)));
    }
    uint32_t more[10], n_more = 0;
    for (uint32_t d = 0; d < 10 && n <= DIGITS; d++) {
        char digit = (char)('0' + d);
        uint8_t l = compare_digit(low, digit, whit_decimal_digit(&r->low, n));
        uint8_t h = compare_digit(high, digit, whit_decimal_digit(&r->high, n));
        uint32_t last = d;
        while (last < 9 && compare_digit(low, (char)('1' + last), whit_decimal_digit(&r->low, n)) == l && l != EQUAL &&
               compare_digit(high, (char)('1' + last), whit_decimal_digit(&r->high, n)) == h && h != EQUAL)
            last++;
        more[n_more++] = one_digit(g, d, last, scientific_digits(b, n + 1, l, h));
        d = last;
    }
    ways[n_ways++] = end;
    if (n_more) {
        uint32_t after = whit_automaton_split(g, more, n_more);
        ways[n_ways++] = n == 1 ? whit_automaton_text(g, ".", 1, after) : after;
    }
    return whit_automaton_split(g, ways, n_ways);
}

static uint32_t scientific_number(const builder *b)
{
    const whit_number_range *r = b->range;
    whit_automaton *g = b->graph;
    uint32_t ways[10], n_ways = 0;
    if (r->low.n == 0 && !r->low_out) { /* 0 may have any exponent */
        uint32_t end = exponent_between(g, -EXPONENT_MAX, EXPONENT_MAX, b->next);
        uint32_t zeros = whit_automaton_repeat(g, one_digit(g, 0, 0, WHIT_AUTOMATON_RET), 1, DIGITS, end);
        ways[n_ways++] = one_digit(g, 0, 0, either(g, end, whit_automaton_text(g, ".", 1, zeros)));
    }
    if (r->has_high && r->high.n == 0) return whit_automaton_split(g, ways, n_ways);
    for (uint32_t d = 1; d < 10; d++) {
        uint8_t low = r->low.n ? compare_digit(EQUAL, (char)('0' + d), whit_decimal_digit(&r->low, 0)) : MORE;
        uint8_t high = r->has_high ? compare_digit(EQUAL, (char)('0' + d), whit_decimal_digit(&r->high, 0)) : LESS;
        ways[n_ways++] = one_digit(g, d, d, scientific_digits(b, 1, low, high));
    }
    return whit_automaton_split(g, ways, n_ways);
}

/* ---- plain numbers and numbers with an exponent ----------------------------------------------- */

uint32_t whit_number_between(whit_automaton *graph, const whit_number_range *range, const whit_number_form *form,
                             uint32_t next)
{
    builder b = {.graph = graph, .range = range, .form = form, .next = next};
    int64_t low = whole_digits(&range->low), high = range->has_high ? whole_digits(&range->high) : INT64_MAX;
    int64_t longest = low < DIGITS ? DIGITS : low + 1;
    if (range->has_high && high <= DIGITS_MAX) longest = high;
    b.n_whole = (uint32_t)(longest < DIGITS_MAX ? longest : DIGITS_MAX);
    if (!form->integers) {
        int64_t most = n_decimals_of(&range->low), other = range->has_high ? n_decimals_of(&range->high) : 0;
        if (other > most) most = other;
        if (most < DIGITS)
            b.n_decimals = DIGITS;
        else if (most < DIGITS_MAX)
            b.n_decimals = (uint32_t)most;
        else
            b.n_decimals = DIGITS_MAX;
        if (form->step && !form->no_multiple) b.n_decimals = form->decimals; /* further decimals would be zeros */
    }
    /* With more digits than this, a reader of doubles could take such a number for an integer or a multiple. */
    if (form->fraction || (form->no_multiple && !form->integers)) {
        if (b.n_whole > EXACT_WHOLE) b.n_whole = EXACT_WHOLE;
        if (form->fraction) b.n_decimals = EXACT_DECIMALS;
    }
    /* Each digit position has a place per remainder, so a larger step allows fewer digits. */
    uint32_t fits = form->step ? 40000 / form->step : DIGITS_MAX;
    /* A double represents every number with EXACT_MULTIPLE digits. */
    if (form->step && fits > EXACT_MULTIPLE) fits = EXACT_MULTIPLE;
    if (fits < 5) fits = 5;
    if (b.n_whole > fits) b.n_whole = fits;
    uint32_t begin = plain_number(&b);
    if (!form->integers && !form->step && !form->fraction) begin = either(graph, begin, scientific_number(&b));
    whit_free(graph->allocator, b.keys, b.n_slots * sizeof *b.keys);
    whit_free(graph->allocator, b.nodes, b.n_slots * sizeof *b.nodes);
    return graph->failed ? WHIT_AUTOMATON_NONE : begin;
}
