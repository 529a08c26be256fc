/* SPDX-License-Identifier: MIT
 * Compiles strings of JSON Schema. A single pattern is converted directly. Several patterns, lengths that a pattern
 * does not ensure, lookahead and complements are combined into one automaton (language.h). */
#include <stdio.h>

#include "grammar/schema_parts.h"
#include "base/items.h"

enum { LISTED_MAX = 20000, LANGUAGE_WORK_MAX = 12000000, PROPERTY_WORK = 200000 };

/* Limits of a text's length. If an automaton has too many states, the next limit is tried. */
static const uint32_t shorter[] = {WHIT_AUTOMATON_UNBOUNDED, 80, 24};

typedef struct constraints {
    uint32_t min, max;
    /* Arrays of uint32_t. patterns, formats: nodes of the schema document; fails: indices of items of the set. */
    whit_buf patterns, formats, fails;
    uint32_t by; /* node that the error names if the constraints cannot be enforced */
} constraints;

/* ---- patterns as expressions ------------------------------------------------------------------- */

bool whit_json_schema_open_language(whit_json_schema_compiler *c, whit_language *l)
{
    if (!whit_language_open(c->graph->allocator, l)) c->graph->failed = true;
    return !c->graph->failed;
}

void whit_json_schema_close_language(whit_json_schema_compiler *c, whit_language *l, uint32_t node)
{
    c->language_work += l->work;
    if (l->failed || c->language_work > LANGUAGE_WORK_MAX)
        whit_json_schema_refuse(c, node,
                                "the patterns, formats and lengths of this string are too large to combine: shorten or "
                                "remove some of them");
    whit_language_close(l);
}

/* Parses a pattern. If it is not supported, reports an error at its node and returns false. */
static bool read_pattern(whit_json_schema_compiler *c, uint32_t node, const char *text, size_t n, whit_pattern *syntax,
                         uint32_t *root)
{
    whit_error error;
    *syntax = (whit_pattern){.nodes.allocator = c->graph->allocator, .ranges.allocator = c->graph->allocator};
    whit_status status = whit_pattern_read("", text, n, syntax, root, &error);
    c->language_work += (uint64_t)syntax->n_properties * PROPERTY_WORK;
    if (c->language_work > LANGUAGE_WORK_MAX) {
        whit_json_schema_refuse(
            c, node,
            "the patterns of this schema are too large together (\\p{...} costs most): shorten or remove some of them");
        return false;
    }
    if (syntax->failed)
        c->graph->failed = true; /* the pattern is too large, or memory is exhausted */
    else if (status != WHIT_OK)
        whit_json_schema_refuse(c, node, "%s", error.message[0] == ':' ? error.message + 2 : error.message);
    return status == WHIT_OK && !syntax->failed;
}

static uint32_t expression_of(whit_json_schema_compiler *c, whit_language *l, uint32_t node, const char *text, size_t n)
{
    whit_pattern syntax;
    uint32_t root, result = WHIT_LANGUAGE_NONE;
    if (read_pattern(c, node, text, n, &syntax, &root)) result = whit_language_pattern(l, &syntax, root);
    whit_pattern_close(&syntax);
    return result;
}

uint32_t whit_json_schema_pattern(whit_json_schema_compiler *c, whit_language *l, uint32_t node)
{
    size_t n;
    const char *text = whit_json_string(&c->json, node, &n);
    if (text) return expression_of(c, l, node, text, n);
    whit_json_schema_refuse(c, node, "expected a regular expression");
    return WHIT_LANGUAGE_NONE;
}

static uint32_t format_expression(whit_json_schema_compiler *c, whit_language *l, uint32_t node,
                                  whit_json_schema_use use)
{
    const char *text = whit_json_schema_format(c, node, use);
    return text ? expression_of(c, l, node, text, strlen(text)) : WHIT_LANGUAGE_ALL;
}

uint32_t whit_json_schema_format_strings(whit_json_schema_compiler *c, whit_language *l, uint32_t format)
{
    return format_expression(c, l, format, WHIT_JSON_SCHEMA_STRICT);
}

static uint32_t add_literal(whit_json_schema_compiler *c, whit_language *l, uint32_t value)
{
    size_t n;
    const char *text = whit_json_string(&c->json, value, &n);
    return text ? whit_language_text(l, text, n) : WHIT_LANGUAGE_NONE;
}

static uint32_t listed(whit_json_schema_compiler *c, whit_language *l, uint32_t list)
{
    uint32_t result = WHIT_LANGUAGE_NONE, n = 0;
    for (uint32_t k = whit_json_first(&c->json, list); k != WHIT_JSON_NONE && !l->failed;
         k = whit_json_next(&c->json, list, k), n++) {
        if (n == LISTED_MAX) l->failed = true;
        l->work += n; /* each union copies the list of alternatives */
        result = whit_language_or(l, result, add_literal(c, l, k));
    }
    return result;
}

/* ---- schemas as expressions -------------------------------------------------------------------- */

static uint32_t strings_of(whit_json_schema_compiler *c, whit_language *l, uint32_t schema, uint32_t depth, bool exact);

/* Returns the expression of a list of schemas: allOf, anyOf or oneOf, according to `key`. */
static uint32_t join_list(whit_json_schema_compiler *c, whit_language *l, uint32_t list, const char *key,
                          uint32_t depth, bool exact)
{
    bool all = key[0] == 'a' && key[1] == 'l', one = key[0] == 'o';
    uint32_t result = all ? WHIT_LANGUAGE_ALL : WHIT_LANGUAGE_NONE, twice = WHIT_LANGUAGE_NONE;
    for (uint32_t k = whit_json_first(&c->json, list); k != WHIT_JSON_NONE && c->status == WHIT_OK;
         k = whit_json_next(&c->json, list, k)) {
        uint32_t part = strings_of(c, l, k, depth, exact || one);
        if (one) twice = whit_language_or(l, twice, whit_language_and(l, result, part));
        result = all ? whit_language_and(l, result, part) : whit_language_or(l, result, part);
    }
    return one ? whit_language_and(l, result, whit_language_not(l, twice)) : result;
}

static uint32_t lengths_of(whit_json_schema_compiler *c, whit_language *l, uint32_t schema)
{
    uint32_t min, max;
    whit_json_schema_item item = {.node = schema};
    if (!whit_json_schema_bounds(c, (whit_json_schema_set){&item, 1}, "minLength", "maxLength", &min, &max))
        return WHIT_LANGUAGE_NONE;
    if (min > max) return WHIT_LANGUAGE_NONE;
    return min || max != WHIT_AUTOMATON_UNBOUNDED ? whit_language_length(l, min, max) : WHIT_LANGUAGE_ALL;
}

static uint32_t keyword_strings(whit_json_schema_compiler *c, whit_language *l, uint32_t schema, uint32_t key,
                                uint32_t depth, bool exact)
{
    static const char *const lists[] = {"allOf", "anyOf", "oneOf"};
    const whit_json *json = &c->json;
    uint32_t value = key + 1;
    for (int i = 0; i < 3; i++)
        if (whit_json_is(json, key, lists[i])) return join_list(c, l, value, lists[i], depth, exact);
    if (whit_json_is(json, key, "$ref") || whit_json_is(json, key, "$dynamicRef")) {
        uint32_t to = whit_json_schema_reference(c, schema, whit_json_is(json, key, "$dynamicRef"));
        return to == WHIT_JSON_NONE ? WHIT_LANGUAGE_NONE : strings_of(c, l, to, depth, exact);
    }
    if (whit_json_is(json, key, "not")) return whit_language_not(l, strings_of(c, l, value, depth, true));
    if (whit_json_is(json, key, "if")) {
        uint32_t then = whit_json_get(json, schema, "then"), other = whit_json_get(json, schema, "else");
        uint32_t condition = strings_of(c, l, value, depth, true);
        uint32_t a = then == WHIT_JSON_NONE ? WHIT_LANGUAGE_ALL : strings_of(c, l, then, depth, exact);
        uint32_t b = other == WHIT_JSON_NONE ? WHIT_LANGUAGE_ALL : strings_of(c, l, other, depth, exact);
        return whit_language_or(l, whit_language_and(l, condition, a),
                                whit_language_and(l, whit_language_not(l, condition), b));
    }
    if (whit_json_is(json, key, "const")) return add_literal(c, l, value);
    if (whit_json_is(json, key, "enum")) return listed(c, l, value);
    if (whit_json_is(json, key, "pattern")) return whit_json_schema_pattern(c, l, value);
    if (!whit_json_is(json, key, "format")) return WHIT_LANGUAGE_ALL;
    bool beside = whit_json_get(json, schema, "pattern") != WHIT_JSON_NONE;
    if (exact && whit_json_schema_format(c, value, WHIT_JSON_SCHEMA_STRICT))
        whit_json_schema_refuse(
            c, value, "not with a format (also in if and oneOf) is not supported: use a pattern instead of the format");
    return format_expression(c, l, value, beside ? WHIT_JSON_SCHEMA_STRICT : WHIT_JSON_SCHEMA_WRITTEN);
}

/* Returns the expression of the strings that a schema accepts. `exact`: the result will be complemented, so that no
 * string may be missing. */
static uint32_t strings_of(whit_json_schema_compiler *c, whit_language *l, uint32_t schema, uint32_t depth, bool exact)
{
    if (whit_json_type_of(&c->json, schema) == WHIT_JSON_BOOL)
        return whit_json_bool(&c->json, schema, false) ? WHIT_LANGUAGE_ALL : WHIT_LANGUAGE_NONE;
    if (whit_json_type_of(&c->json, schema) != WHIT_JSON_OBJECT) {
        whit_json_schema_refuse(c, schema, "a schema must be an object, true or false");
        return WHIT_LANGUAGE_NONE;
    }
    if (depth > 64) {
        whit_json_schema_refuse(
            c, schema,
            "more than 64 schemas are nested here, or the schema refers to itself: shorten the chain of references");
        return WHIT_LANGUAGE_NONE;
    }
    if (!whit_json_schema_work(c, schema, 200) || !(whit_json_schema_types(c, schema) & WHIT_JSON_SCHEMA_STRING))
        return WHIT_LANGUAGE_NONE;
    uint32_t result = lengths_of(c, l, schema);
    for (uint32_t k = whit_json_first(&c->json, schema); k != WHIT_JSON_NONE && c->status == WHIT_OK && !l->failed;
         k = whit_json_next(&c->json, schema, k))
        result = whit_language_and(l, result, keyword_strings(c, l, schema, k, depth + 1, exact));
    return result;
}

uint32_t whit_json_schema_strings(whit_json_schema_compiler *c, whit_language *l, uint32_t schema)
{
    return strings_of(c, l, schema, 0, false);
}

/* ---- strings in a graph ------------------------------------------------------------------------ */

static uint32_t plain_string(whit_json_schema_compiler *c, uint32_t min, uint32_t max, uint32_t next)
{
    uint32_t body = whit_automaton_json_character(c->graph, WHIT_AUTOMATON_RET);
    uint32_t quote = whit_automaton_text(c->graph, "\"", 1, next);
    uint32_t content = whit_automaton_characters(c->graph, body, min, max, quote);
    return whit_automaton_text(c->graph, "\"", 1, content);
}

static uint32_t any_string(whit_json_schema_compiler *c, uint32_t next)
{
    if (!c->string_rule) { /* all strings without constraints share one rule */
        uint32_t rule = whit_automaton_rule(c->graph);
        whit_automaton_define(c->graph, rule, plain_string(c, 0, WHIT_AUTOMATON_UNBOUNDED, WHIT_AUTOMATON_RET));
        c->string_rule = rule + 1;
    }
    return whit_automaton_call(c->graph, c->string_rule - 1, next);
}

/* Appends a node to a list unless a node with the same text is in it. */
static void add_text(whit_json_schema_compiler *c, whit_buf *list, uint32_t node)
{
    size_t n, m;
    const char *text = whit_json_string(&c->json, node, &n);
    const uint32_t *known = WHIT_ITEMS(const uint32_t, list);
    for (size_t i = 0; text && i < list->size_bytes / sizeof node; i++) {
        const char *other = whit_json_string(&c->json, known[i], &m);
        if (other && n == m && memcmp(text, other, n) == 0) return;
    }
    if (!whit_buf_append(list, &node, sizeof node)) c->graph->failed = true;
}

static bool read_constraints(whit_json_schema_compiler *c, whit_json_schema_set set, constraints *out)
{
    const whit_allocator *allocator = c->graph->allocator;
    *out = (constraints){.by = WHIT_JSON_NONE,
                         .patterns.allocator = allocator,
                         .formats.allocator = allocator,
                         .fails.allocator = allocator};
    if (!whit_json_schema_bounds(c, set, "minLength", "maxLength", &out->min, &out->max)) return false;
    for (uint32_t i = 0; i < set.n; i++) {
        whit_json_schema_item item = set.items[i];
        if (item.kind == WHIT_JSON_SCHEMA_HOLDS) {
            uint32_t pattern = whit_json_schema_get(c, item.node, "pattern"),
                     format = whit_json_schema_get(c, item.node, "format");
            if (format != WHIT_JSON_NONE && whit_json_schema_format(c, format, WHIT_JSON_SCHEMA_STRICT))
                add_text(c, &out->formats, format), out->by = format;
            if (pattern != WHIT_JSON_NONE) add_text(c, &out->patterns, pattern), out->by = pattern;
        }
        bool pattern_fails = item.kind == WHIT_JSON_SCHEMA_KEY_FAILS &&
            (whit_json_is(&c->json, item.node - 1, "pattern") || whit_json_is(&c->json, item.node - 1, "enum"));
        bool unlike =
            item.kind == WHIT_JSON_SCHEMA_UNLIKE && whit_json_type_of(&c->json, item.node) == WHIT_JSON_STRING;
        if (pattern_fails || unlike) {
            if (!whit_buf_append(&out->fails, &i, sizeof i)) c->graph->failed = true;
            out->by = item.node;
        }
    }
    return c->status == WHIT_OK;
}

static void close_constraints(constraints *s)
{
    whit_buf_free(&s->patterns);
    whit_buf_free(&s->formats);
    whit_buf_free(&s->fails);
}

static size_t count_of(const whit_buf *list)
{
    return list->size_bytes / sizeof(uint32_t);
}

/* Converts one pattern or format whose texts all satisfy the length limits. Returns false if that is not possible. */
static bool write_pattern(whit_json_schema_compiler *c, const constraints *s, uint32_t next, uint32_t *begin)
{
    bool is_pattern = count_of(&s->patterns) == 1;
    uint32_t node = *(const uint32_t *)(is_pattern ? s->patterns.data : s->formats.data), root, shortest, longest;
    size_t n = 0;
    const char *text =
        is_pattern ? whit_json_string(&c->json, node, &n) : whit_json_schema_format(c, node, WHIT_JSON_SCHEMA_WRITTEN);
    *begin = WHIT_AUTOMATON_NONE;
    if (!text) {
        whit_json_schema_refuse(c, node, "expected a regular expression");
        return true;
    }
    whit_pattern syntax;
    bool fits = true;
    if (read_pattern(c, node, text, is_pattern ? n : strlen(text), &syntax, &root)) {
        whit_pattern_length(&syntax, root, &shortest, &longest);
        fits = !syntax.looks_ahead && shortest >= s->min && (s->max == WHIT_AUTOMATON_UNBOUNDED || longest <= s->max);
        if (fits) {
            uint32_t quote = whit_automaton_text(c->graph, "\"", 1, next);
            *begin = whit_automaton_text(c->graph, "\"", 1, whit_pattern_emit(&syntax, root, true, c->graph, quote));
        }
    }
    whit_pattern_close(&syntax);
    return fits;
}

/* Returns one expression for all constraints on a string, with at most `longest` code points. */
static uint32_t join_constraints(whit_json_schema_compiler *c, whit_json_schema_set set, const constraints *s,
                                 whit_language *l, uint32_t longest, whit_json_schema_use use)
{
    uint32_t max = s->max < longest ? s->max : longest, result = WHIT_LANGUAGE_ALL;
    if (s->min || max != WHIT_AUTOMATON_UNBOUNDED)
        result = s->min <= max ? whit_language_length(l, s->min, max) : WHIT_LANGUAGE_NONE;
    bool beside = count_of(&s->patterns) != 0;
    for (size_t i = 0; i < count_of(&s->patterns); i++)
        result =
            whit_language_and(l, result, whit_json_schema_pattern(c, l, (WHIT_ITEMS(const uint32_t, &s->patterns))[i]));
    for (size_t i = 0; i < count_of(&s->formats); i++)
        result = whit_language_and(l, result,
                                   format_expression(c, l, (WHIT_ITEMS(const uint32_t, &s->formats))[i],
                                                     beside ? use : WHIT_JSON_SCHEMA_WRITTEN));
    for (size_t i = 0; i < count_of(&s->fails) && c->status == WHIT_OK; i++) {
        whit_json_schema_item item = set.items[(WHIT_ITEMS(const uint32_t, &s->fails))[i]];
        bool is_list = whit_json_type_of(&c->json, item.node) == WHIT_JSON_ARRAY;
        uint32_t what;
        if (item.kind == WHIT_JSON_SCHEMA_UNLIKE)
            what = add_literal(c, l, item.node);
        else if (is_list)
            what = listed(c, l, item.node);
        else
            what = whit_json_schema_pattern(c, l, item.node);
        result = whit_language_and(l, result, whit_language_not(l, what));
    }
    return result;
}

static void write_name(whit_json_schema_compiler *c, whit_json_schema_set set, const constraints *s, whit_buf *name)
{
    const whit_buf *lists[] = {&s->patterns, &s->formats, &s->fails};
    whit_buf_printf(name, "string %u %u", s->min, s->max);
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < count_of(lists[k]); i++) {
            uint32_t at = (WHIT_ITEMS(const uint32_t, lists[k]))[i];
            size_t n = 0;
            const char *text = whit_json_string(&c->json, k == 2 ? set.items[at].node : at, &n);
            uint32_t list = k == 2 && !text ? set.items[at].node : 0; /* an enum has no text: its node identifies it */
            whit_buf_printf(name, " %d %u %u %zu ", k, k == 2 ? set.items[at].kind : 0, list, n);
            if (text) whit_buf_append(name, text, n);
        }
}

/* Defines the rule of a string's content. If a format is combined with a pattern, the strict form of the format is
 * used; if no string matches both, its loose form. */
static void define_joined(whit_json_schema_compiler *c, whit_json_schema_set set, const constraints *s, uint32_t rule)
{
    whit_json_schema_use use = WHIT_JSON_SCHEMA_STRICT;
    for (size_t i = 0; i < sizeof shorter / sizeof shorter[0]; i++) {
        whit_language l;
        bool empty = false, last = i + 1 == sizeof shorter / sizeof shorter[0];
        if (!whit_json_schema_open_language(c, &l)) return;
        uint32_t node = join_constraints(c, set, s, &l, shorter[i], use), begin = WHIT_AUTOMATON_NONE;
        if (c->status == WHIT_OK)
            begin = whit_language_emit(&l, node, WHIT_LANGUAGE_SHORTEST, c->graph, WHIT_AUTOMATON_RET, &empty);
        bool looser = empty && use == WHIT_JSON_SCHEMA_STRICT && count_of(&s->patterns) && count_of(&s->formats);
        if (looser) use = WHIT_JSON_SCHEMA_BESIDE, i--;
        if (empty && !looser) begin = whit_automaton_split(c->graph, NULL, 0);
        if (i && empty && !looser) l.failed = true; /* there may be longer strings that match */
        bool shorten = l.failed && !c->graph->failed && c->status == WHIT_OK && !last;
        if (shorten) l.failed = false;
        whit_json_schema_close_language(c, &l, s->by);
        if (shorten || looser) continue;
        if (c->status == WHIT_OK) whit_automaton_define(c->graph, rule, begin);
        return;
    }
}

static uint32_t write_string(whit_json_schema_compiler *c, whit_json_schema_set set, const constraints *s,
                             uint32_t next)
{
    uint32_t begin = WHIT_AUTOMATON_NONE, rule;
    size_t n_patterns = count_of(&s->patterns) + count_of(&s->formats), n_fails = count_of(&s->fails);
    if (s->min > s->max) return whit_automaton_split(c->graph, NULL, 0);
    if (n_patterns + n_fails == 0) {
        bool bounded = s->min || s->max != WHIT_AUTOMATON_UNBOUNDED;
        return bounded ? plain_string(c, s->min, s->max, next) : any_string(c, next);
    }
    if (n_patterns == 1 && n_fails == 0 && write_pattern(c, s, next, &begin)) return begin;
    if (c->status != WHIT_OK) return begin;
    whit_buf name = {.allocator = c->graph->allocator};
    write_name(c, set, s, &name);
    if (whit_json_schema_new_rule(c, &name, &rule)) define_joined(c, set, s, rule);
    whit_buf_free(&name);
    return whit_automaton_text(c->graph, "\"", 1,
                               whit_automaton_call(c->graph, rule, whit_automaton_text(c->graph, "\"", 1, next)));
}

uint32_t whit_json_schema_string(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t next)
{
    constraints s;
    uint32_t begin = WHIT_AUTOMATON_NONE;
    if (read_constraints(c, set, &s)) begin = write_string(c, set, &s, next);
    close_constraints(&s);
    return begin;
}
