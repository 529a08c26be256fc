/* SPDX-License-Identifier: MIT
 * Compiles numbers of JSON Schema. Bounds are decimals, which are compared digit by digit.
 *
 * Programs that read JSON round numbers to doubles. A number that satisfies an inclusive bound still satisfies it after
 * rounding. But a number close to an exclusive bound may be rounded to the bound itself; numbers with a fraction are
 * therefore limited by the next double inside the bound. */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "base/bounds.h"
#include "grammar/number.h"
#include "grammar/schema_parts.h"

typedef struct bound {
    whit_decimal value;
    uint32_t node; /* node of the bound; WHIT_JSON_NONE: no bound */
    bool out;
    char text[32]; /* the digits of `value` if the bound was moved to the next double */
} bound;

typedef struct limits {
    bound low, high;
    whit_number_form form;
    uint32_t step_node;
} limits;

static void tighten(bound *b, bool low, const whit_decimal *value, uint32_t node, bool out)
{
    int order;
    if (b->node == WHIT_JSON_NONE)
        order = low ? 1 : -1;
    else
        order = whit_decimal_compare(value, &b->value);
    if (order == 0) b->out |= out;
    if (low ? order > 0 : order < 0) *b = (bound){.value = *value, .node = node, .out = out};
}

/* Reads minimum, exclusiveMinimum, maximum and exclusiveMaximum of one schema. In draft 4 the exclusive ones are
 * booleans that apply to the others. */
static bool read_bounds(whit_json_schema_compiler *c, uint32_t schema, limits *l)
{
    static const char *const keys[] = {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"};
    for (int k = 0; k < 4; k++) {
        uint32_t node = whit_json_schema_get(c, schema, keys[k]);
        bool out = k & 1, low = k < 2;
        whit_decimal value;
        if (node == WHIT_JSON_NONE || whit_json_type_of(&c->json, node) == WHIT_JSON_BOOL) continue;
        if (!whit_decimal_of_node(&c->json, node, &value))
            return whit_json_schema_refuse(c, node, "expected a number"), false;
        if (!out) out = whit_json_bool(&c->json, whit_json_schema_get(c, schema, keys[k + 1]), false);
        tighten(low ? &l->low : &l->high, low, &value, node, out);
    }
    return true;
}

/* Replaces l's step by the least common multiple of this step and the steps so far. */
static bool add_step(whit_json_schema_compiler *c, uint32_t node, limits *l)
{
    whit_decimal value;
    uint32_t step, decimals;
    if (!whit_decimal_of_node(&c->json, node, &value) || value.n == 0 || value.negative)
        return whit_json_schema_refuse(c, node, "expected a number above 0"), false;
    if (!whit_decimal_step(&value, WHIT_NUMBER_STEP_MAX, &step, &decimals) || decimals > 15)
        return whit_json_schema_refuse(
                   c, node, "multipleOf is supported up to %u (without its decimal point), with at most 15 decimals",
                   WHIT_NUMBER_STEP_MAX),
               false;
    uint64_t a = step, b = l->form.step;
    if (b == 0) b = 1, l->form.decimals = 0;
    while (decimals < l->form.decimals && a <= WHIT_NUMBER_STEP_MAX) a *= 10, decimals++;
    while (l->form.decimals < decimals && b <= WHIT_NUMBER_STEP_MAX) b *= 10, l->form.decimals++;
    uint64_t both = l->form.step ? a / whit_common_divisor(a, b) * b : a;
    if (a > WHIT_NUMBER_STEP_MAX || b > WHIT_NUMBER_STEP_MAX || both > WHIT_NUMBER_STEP_MAX) {
        if (l->form.step)
            return whit_json_schema_refuse(
                       c, node, "the least common multiple of two multipleOf exceeds %u, the limit: give only one",
                       WHIT_NUMBER_STEP_MAX),
                   false;
        both = step;
    }
    if (!l->form.step) l->form.decimals = decimals;
    l->form.step = (uint32_t)both;
    l->step_node = node;
    return true;
}

/* Adds to the limits a failed keyword, or a bound next to an excluded number. A failed bound becomes a bound on the
 * other side, a failed multipleOf becomes no_multiple. */
static bool read_failure(whit_json_schema_compiler *c, whit_json_schema_item item, limits *l)
{
    bool key = item.kind == WHIT_JSON_SCHEMA_KEY_FAILS;
    bool low = item.kind == WHIT_JSON_SCHEMA_ABOVE, high = item.kind == WHIT_JSON_SCHEMA_BELOW, out = true;
    whit_decimal value;
    if (key) {
        bool min = whit_json_is(&c->json, item.node - 1, "minimum"),
             max = whit_json_is(&c->json, item.node - 1, "maximum");
        high = min || whit_json_is(&c->json, item.node - 1, "exclusiveMinimum");
        low = max || whit_json_is(&c->json, item.node - 1, "exclusiveMaximum");
        out = min || max;
        if (whit_json_is(&c->json, item.node - 1, "multipleOf")) {
            if (l->form.step)
                return whit_json_schema_refuse(
                           c, item.node,
                           "multipleOf together with not multipleOf (or a oneOf of them) is not supported: remove one"),
                       false;
            l->form.no_multiple = add_step(c, item.node, l);
            return l->form.no_multiple;
        }
    }
    if (!low && !high) return true;
    if (!whit_decimal_of_node(&c->json, item.node, &value))
        return whit_json_schema_refuse(c, item.node, "expected a number"), false;
    tighten(low ? &l->low : &l->high, low, &value, item.node, out);
    return true;
}

static bool read_limits(whit_json_schema_compiler *c, whit_json_schema_set set, limits *l)
{
    for (uint32_t i = 0; i < set.n; i++) {
        if (set.items[i].kind != WHIT_JSON_SCHEMA_HOLDS) continue;
        uint32_t schema = set.items[i].node, step = whit_json_schema_get(c, schema, "multipleOf");
        if (!read_bounds(c, schema, l)) return false;
        if (step != WHIT_JSON_NONE && !add_step(c, step, l)) return false;
        if (!whit_json_is(&c->json, whit_json_schema_get(c, schema, "format"), "int32")) continue;
        static const char *const ends[] = {"-2147483648", "2147483647"};
        for (int k = 0; k < 2; k++) {
            whit_decimal value;
            whit_decimal_read(ends[k], strlen(ends[k]), &value);
            tighten(k ? &l->high : &l->low, k == 0, &value, schema, false);
        }
    }
    if (l->form.step && l->form.decimals == 0) l->form.integers = true;
    for (uint32_t i = 0; i < set.n; i++)
        if (set.items[i].kind != WHIT_JSON_SCHEMA_HOLDS && !read_failure(c, set.items[i], l)) return false;
    if (l->form.no_multiple && !l->form.integers) { /* two more decimals distinguish such numbers from multiples */
        if (l->form.step > WHIT_NUMBER_STEP_MAX / 100 || l->form.decimals > 13)
            return whit_json_schema_refuse(
                       c, l->step_node,
                       "not multipleOf is supported up to %u (without its decimal point), with at most 13 decimals",
                       WHIT_NUMBER_STEP_MAX / 100),
                   false;
        l->form.step *= 100;
        l->form.decimals += 2;
    }
    return true;
}

/* Moves an exclusive bound other than 0 to the next double inside the range. Only for numbers with a fraction. */
static void move_inside(const whit_json *json, bound *b, bool low)
{
    double value;
    if (b->node == WHIT_JSON_NONE || !b->out || b->value.n == 0 || !whit_json_f64(json, b->node, &value)) return;
    double inside = nextafter(value, low ? DBL_MAX : -DBL_MAX);
    if (inside == value) return;
    int n = snprintf(b->text, sizeof b->text, "%.16e", inside);
    for (int i = 0; i < n; i++) /* replace the decimal separator of the locale */
        if (!strchr("0123456789+-e", b->text[i])) b->text[i] = '.';
    if (whit_decimal_read(b->text, (size_t)n, &b->value)) b->out = false;
}

/* Accepts the numbers between the bounds, of both signs, except -0. */
static uint32_t write_range(whit_json_schema_compiler *c, const limits *l, uint32_t next)
{
    static const whit_decimal zero = {0};
    uint32_t ways[2], n_ways = 0;
    bool has_low = l->low.node != WHIT_JSON_NONE, has_high = l->high.node != WHIT_JSON_NONE;
    const whit_decimal *low = &l->low.value, *high = &l->high.value;
    bool simple = !l->form.step && !l->form.fraction;
    if (!has_high || (!high->negative && (high->n || !l->high.out))) {
        bool from_zero = !has_low || low->negative || low->n == 0;
        whit_number_range r = {.low = has_low && !low->negative ? *low : zero, .has_high = has_high};
        r.low_out = has_low && !low->negative && l->low.out;
        if (has_high) r.high = *high, r.high_out = l->high.out;
        ways[n_ways++] = simple && from_zero && !has_high && !r.low_out
            ? whit_number_any(c->graph, l->form.integers, false, next)
            : whit_number_between(c->graph, &r, &l->form, next);
    }
    if (!has_low || low->negative) {
        whit_number_range r = {.low = has_high && high->negative ? *high : zero, .has_high = has_low};
        r.low_out = has_high && high->negative ? l->high.out : true;
        if (has_low) r.high = *low, r.high_out = l->low.out;
        r.low.negative = r.high.negative = false;
        ways[n_ways++] = whit_automaton_text(c->graph, "-", 1, whit_number_between(c->graph, &r, &l->form, next));
    }
    return whit_automaton_split(c->graph, ways, n_ways);
}

/* Appends a name that distinguishes this language of numbers from others. */
static void write_name(const limits *l, whit_buf *name)
{
    whit_buf_printf(name, "number %d %d %u %u %d", l->form.fraction, l->form.integers, l->form.step, l->form.decimals,
                    l->form.no_multiple);
    for (int k = 0; k < 2; k++) {
        const bound *b = k ? &l->high : &l->low;
        if (b->node == WHIT_JSON_NONE) {
            whit_buf_append_str(name, " none");
            continue;
        }
        whit_buf_printf(name, " %d %d %lld ", b->out, b->value.negative, (long long)b->value.point);
        for (size_t i = 0; i < b->value.n; i++) {
            char digit = whit_decimal_digit(&b->value, i);
            whit_buf_append(name, &digit, 1);
        }
    }
}

static uint32_t rule_of(whit_json_schema_compiler *c, const limits *l)
{
    whit_buf name = {.allocator = c->graph->allocator};
    uint32_t rule;
    write_name(l, &name);
    if (whit_json_schema_new_rule(c, &name, &rule))
        whit_automaton_define(c->graph, rule, write_range(c, l, WHIT_AUTOMATON_RET));
    whit_buf_free(&name);
    return rule;
}

uint32_t whit_json_schema_number(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t types, uint32_t next)
{
    limits l = {.low.node = WHIT_JSON_NONE, .high.node = WHIT_JSON_NONE};
    l.form.integers = !(types & WHIT_JSON_SCHEMA_REAL);
    if (!read_limits(c, set, &l)) return WHIT_AUTOMATON_NONE;
    l.form.fraction = !(types & WHIT_JSON_SCHEMA_INTEGER);
    if (l.form.fraction && l.form.integers) return whit_automaton_split(c->graph, NULL, 0);
    if (l.form.fraction && l.form.step)
        return whit_json_schema_refuse(
            c, l.step_node,
            "multipleOf is not supported where an integer is excluded: allow integers, or remove multipleOf");
    bool has_low = l.low.node != WHIT_JSON_NONE, has_high = l.high.node != WHIT_JSON_NONE;
    int64_t far = l.form.integers || l.form.step ? 40 : 100;
    if (has_low && !l.low.value.negative && l.low.value.n && l.low.value.point > far)
        return whit_json_schema_refuse(
            c, l.low.node, "the bound has more than %d digits before its decimal point, the limit: leave it out",
            (int)far);
    if (has_high && l.high.value.negative && l.high.value.point > far)
        return whit_json_schema_refuse(
            c, l.high.node, "the bound has more than %d digits before its decimal point, the limit: leave it out",
            (int)far);
    if (!has_low && !has_high && !l.form.step && !l.form.fraction)
        return whit_number_any(c->graph, l.form.integers, true, next);
    if (!l.form.integers) {
        move_inside(&c->json, &l.low, true);
        move_inside(&c->json, &l.high, false);
    }
    if (has_low && has_high) {
        int order = whit_decimal_compare(&l.low.value, &l.high.value);
        if (order > 0 || (order == 0 && (l.low.out || l.high.out))) return whit_automaton_split(c->graph, NULL, 0);
    }
    return whit_automaton_call(c->graph, rule_of(c, &l), next);
}
