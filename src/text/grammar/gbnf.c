/* SPDX-License-Identifier: MIT
 * Compiles GBNF, the notation of llama.cpp's grammars, into a graph. A rule ends at the end of its line, unless a group
 * is open or an alternative must follow a `|`. `%json {...}` is replaced by the rule of that JSON Schema. */
#include "grammar/gbnf.h"

#include "base/items.h"
#include "base/utf8.h"
#include "grammar/schema.h"
#include "grammar/pattern.h"

enum { MOST_NAME_BYTES = 128, MOST_RULES = 65536, MOST_RANGES = 1024 };

typedef struct rule_name {
    const char *text;
    uint32_t n_bytes, first_line;
} rule_name;

typedef struct reader {
    const char *name;
    const uint8_t *text;
    size_t n, at;
    size_t line_at; /* position up to which `line` has counted the lines */
    uint32_t line;
    whit_automaton *graph;
    whit_pattern syntax;
    whit_buf names; /* array of rule_name, indexed by the graph's rules */
    uint32_t *slots, n_slots;
    whit_error *error;
    whit_status status;
} reader;

static uint32_t line_of(reader *r)
{
    for (; r->line_at < r->at && r->line_at < r->n; r->line_at++) r->line += r->text[r->line_at] == '\n';
    return r->line + 1;
}

static uint32_t refuse_text(reader *r, const char *what)
{
    if (r->status == WHIT_OK && (r->syntax.failed || r->graph->failed)) /* the position has no meaning */
        r->status = whit_fail(r->error, WHIT_ERROR_LIMIT,
                              "%s: the grammar needs more than %u nodes, or memory ran out: simplify it", r->name,
                              WHIT_AUTOMATON_MAX_NODES);
    if (r->status == WHIT_OK)
        r->status = whit_fail(r->error, WHIT_ERROR_FORMAT, "%s:%u: %s", r->name, line_of(r), what);
    return WHIT_PATTERN_NONE;
}

static void skip_space(reader *r, bool newlines)
{
    while (r->at < r->n) {
        uint8_t c = r->text[r->at];
        if (c == '#')
            while (r->at < r->n && r->text[r->at] != '\n') r->at++;
        else if (c == ' ' || c == '\t' || (newlines && (c == '\n' || c == '\r')))
            r->at++;
        else
            return;
    }
}

static bool next_is(reader *r, const char *text)
{
    size_t n = strlen(text);
    if (r->n - r->at < n || memcmp(r->text + r->at, text, n) != 0) return false;
    r->at += n;
    return true;
}

static bool is_name(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* ---- rules by name --------------------------------------------------------------------------- */

static uint32_t hash_name(const char *text, size_t n)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < n; i++) h = (h ^ (uint8_t)text[i]) * 16777619u;
    return h;
}

static uint32_t rule_named(reader *r, const char *text, size_t n)
{
    const rule_name *names = WHIT_ITEMS(const rule_name, &r->names);
    uint32_t at = hash_name(text, n) & (r->n_slots - 1);
    for (; r->slots[at]; at = (at + 1) & (r->n_slots - 1)) {
        const rule_name *known = &names[r->slots[at] - 1];
        if (known->n_bytes == n && memcmp(known->text, text, n) == 0) return r->slots[at] - 1;
    }
    /* The graph also numbers rules of schemas, so `names` may have gaps. */
    uint32_t rule = whit_automaton_rule(r->graph);
    if (rule >= MOST_RULES) return refuse_text(r, "the grammar has more than 65,536 rules, the limit");
    rule_name own = {text, (uint32_t)n, line_of(r)};
    if (r->names.size_bytes < (size_t)rule * sizeof own &&
        !whit_buf_append_zeros(&r->names, rule * sizeof own - r->names.size_bytes))
        r->graph->failed = true;
    if (!whit_buf_append(&r->names, &own, sizeof own)) r->graph->failed = true;
    r->slots[at] = rule + 1;
    return rule;
}

static bool read_name(reader *r, const char **text, size_t *n)
{
    size_t from = r->at;
    while (r->at < r->n && is_name(r->text[r->at])) r->at++;
    *text = (const char *)r->text + from;
    *n = r->at - from;
    if (*n > MOST_NAME_BYTES) refuse_text(r, "the rule's name has more than 128 bytes, the limit");
    return *n > 0;
}

/* ---- characters ------------------------------------------------------------------------------ */

static uint32_t read_character(reader *r)
{
    if (r->at >= r->n || r->text[r->at] == '\n')
        return refuse_text(r, "a literal lacks its closing quote on this line");
    if (!next_is(r, "\\")) {
        size_t length;
        uint32_t code = whit_utf8_decode(r->text + r->at, r->n - r->at, &length);
        r->at += length;
        if (code == WHIT_UTF8_INVALID) refuse_text(r, "these bytes are not UTF-8");
        return code;
    }
    uint8_t c = r->at < r->n ? r->text[r->at++] : 0;
    uint32_t n_hex = 0;
    if (c == 'x')
        n_hex = 2;
    else if (c == 'u')
        n_hex = 4;
    else if (c == 'U')
        n_hex = 8;
    uint32_t code = 0;
    for (uint32_t i = 0; i < n_hex; i++) {
        int digit = r->at < r->n ? whit_hex_digit(r->text[r->at++]) : -1;
        if (digit < 0) return refuse_text(r, "an escape needs hexadecimal digits");
        code = code << 4 | (uint32_t)digit;
    }
    if (n_hex) return code > 0x10FFFF ? refuse_text(r, "the escape is above 10FFFF, the last character") : code;
    switch (c) {
    case 't': return '\t';
    case 'r': return '\r';
    case 'n': return '\n';
    case '\\':
    case '"':
    case '[':
    case ']':
    case '-':
    case '^':
    case '.': return c;
    default: return refuse_text(r, "this escape is not known: write \\\\ for a backslash");
    }
}

static uint32_t read_literal(reader *r)
{
    uint32_t all = whit_pattern_add(&r->syntax, WHIT_PATTERN_ALL, 0, 0);
    while (r->status == WHIT_OK && !r->syntax.failed && !next_is(r, "\"")) {
        uint32_t code = read_character(r);
        whit_code_range range = {code, code};
        if (r->status == WHIT_OK)
            whit_pattern_append(&r->syntax, all, whit_pattern_codes(&r->syntax, &range, 1, false));
    }
    return all;
}

static uint32_t read_class(reader *r)
{
    whit_code_range ranges[MOST_RANGES];
    size_t n = 0;
    bool inverted = next_is(r, "^");
    while (r->status == WHIT_OK && !next_is(r, "]")) {
        if (n == MOST_RANGES) return refuse_text(r, "a class has more than 1,024 ranges, the limit");
        whit_code_range range;
        range.first = range.last = read_character(r);
        if (r->n - r->at >= 2 && r->text[r->at] == '-' && r->text[r->at + 1] != ']') {
            r->at++;
            range.last = read_character(r);
            if (r->status == WHIT_OK && range.last < range.first)
                return refuse_text(r, "a range ends before it begins");
        }
        ranges[n++] = range;
    }
    return r->status == WHIT_OK ? whit_pattern_codes(&r->syntax, ranges, n, inverted) : WHIT_PATTERN_NONE;
}

/* ---- the tree -------------------------------------------------------------------------------- */

/* Reads the schema after %json, up to its closing brace, and compiles it to a rule. */
static uint32_t read_schema(reader *r)
{
    skip_space(r, true);
    size_t from = r->at, depth = 0;
    bool in_string = false;
    if (r->at >= r->n || r->text[r->at] != '{')
        return refuse_text(r, "%json needs a schema in braces, as in %json {\"type\": \"object\"}");
    for (; r->at < r->n; r->at++) {
        uint8_t c = r->text[r->at];
        if (in_string && c == '\\')
            r->at++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && c == '{')
            depth++;
        else if (!in_string && c == '}' && --depth == 0)
            break;
    }
    if (r->at >= r->n) return refuse_text(r, "the schema after %json lacks its closing brace");
    r->at++;
    uint32_t rule;
    whit_status status =
        whit_json_schema_compile(r->graph, r->name, (const char *)r->text + from, r->at - from, &rule, r->error);
    if (status != WHIT_OK) {
        r->status = status;
        return WHIT_PATTERN_NONE;
    }
    return whit_pattern_add(&r->syntax, WHIT_PATTERN_RULE, rule, 0);
}

static uint32_t read_any(reader *r, uint32_t depth);

static uint32_t read_atom(reader *r, uint32_t depth)
{
    const char *name;
    size_t n;
    if (next_is(r, "\"")) return read_literal(r);
    if (next_is(r, "[")) return read_class(r);
    if (next_is(r, ".")) return whit_pattern_codes(&r->syntax, NULL, 0, true);
    if (next_is(r, "%json")) return read_schema(r);
    if (next_is(r, "(")) {
        skip_space(r, true);
        uint32_t inside = read_any(r, depth + 1);
        if (r->status == WHIT_OK && !next_is(r, ")")) return refuse_text(r, "a group lacks its )");
        return inside;
    }
    if (read_name(r, &name, &n)) {
        uint32_t rule = rule_named(r, name, n);
        return r->status == WHIT_OK ? whit_pattern_add(&r->syntax, WHIT_PATTERN_RULE, rule, 0) : WHIT_PATTERN_NONE;
    }
    return refuse_text(r,
                       r->at < r->n && r->text[r->at] == '<'
                           ? "tokens by name (<...>) are not supported: write their text as a literal"
                           : "expected a literal, a class, a rule or a group");
}

static uint32_t read_repeated(reader *r, uint32_t depth)
{
    uint32_t part = read_atom(r, depth);
    for (uint32_t n = 0; r->status == WHIT_OK; n++) {
        uint32_t min = 0, max = WHIT_AUTOMATON_UNBOUNDED;
        skip_space(r, depth > 0);
        if (next_is(r, "+")) {
            min = 1;
        } else if (next_is(r, "?")) {
            max = 1;
        } else if (next_is(r, "{")) {
            skip_space(r, depth > 0);
            bool has_min = whit_pattern_count(r->text, r->n, &r->at, &min);
            skip_space(r, depth > 0);
            if (!next_is(r, ","))
                max = has_min ? min : WHIT_AUTOMATON_NONE;
            else if (skip_space(r, depth > 0), !whit_pattern_count(r->text, r->n, &r->at, &max))
                max = WHIT_AUTOMATON_UNBOUNDED;
            skip_space(r, depth > 0);
            if (!next_is(r, "}") || max < min || (!has_min && max == WHIT_AUTOMATON_UNBOUNDED))
                return refuse_text(r, "a repetition must be {n}, {n,} or {n,m}");
        } else if (!next_is(r, "*")) {
            break;
        }
        if (n > 8) return refuse_text(r, "more than 8 repetitions follow each other: put the inner ones in a group");
        uint32_t repeat = whit_pattern_add(&r->syntax, WHIT_PATTERN_REPEAT, min, max);
        whit_pattern_append(&r->syntax, repeat, part);
        part = repeat;
    }
    return part;
}

static bool ends_here(const reader *r)
{
    return r->at >= r->n || strchr("|)\n\r", r->text[r->at]) != NULL;
}

static uint32_t read_any(reader *r, uint32_t depth)
{
    if (depth > WHIT_PATTERN_MAX_DEPTH) return refuse_text(r, "groups are nested more than 200 deep, the limit");
    uint32_t any = whit_pattern_add(&r->syntax, WHIT_PATTERN_ANY, 0, 0);
    do {
        uint32_t all = whit_pattern_add(&r->syntax, WHIT_PATTERN_ALL, 0, 0);
        skip_space(r, true);
        while (r->status == WHIT_OK && !r->syntax.failed && !ends_here(r)) {
            uint32_t part = read_repeated(r, depth);
            if (r->status != WHIT_OK) return WHIT_PATTERN_NONE;
            whit_pattern_append(&r->syntax, all, part);
            skip_space(r, depth > 0);
        }
        whit_pattern_append(&r->syntax, any, all);
    } while (r->status == WHIT_OK && !r->syntax.failed && next_is(r, "|"));
    return any;
}

static void read_rule(reader *r)
{
    const char *name;
    size_t n;
    if (!read_name(r, &name, &n)) {
        refuse_text(r, "expected a rule: name ::= ...");
        return;
    }
    uint32_t rule = rule_named(r, name, n);
    skip_space(r, false);
    if (r->status == WHIT_OK && !next_is(r, "::=")) refuse_text(r, "expected ::= after the rule's name");
    if (r->status != WHIT_OK) return;
    r->syntax.nodes.size_bytes = r->syntax.ranges.size_bytes = 0;
    uint32_t root = read_any(r, 0);
    if (r->status == WHIT_OK && r->at < r->n && r->text[r->at] == ')')
        refuse_text(r, "this ) has no (: write it in quotes for the character itself");
    if (r->status == WHIT_OK && r->syntax.failed) r->graph->failed = true;
    if (r->status != WHIT_OK || r->graph->failed) return;
    uint32_t begin = whit_pattern_emit(&r->syntax, root, false, r->graph, WHIT_AUTOMATON_RET);
    if ((WHIT_ITEMS(const uint32_t, &r->graph->rules))[rule] != WHIT_AUTOMATON_NONE)
        refuse_text(r, "this rule is defined already: remove one definition");
    else
        whit_automaton_define(r->graph, rule, begin);
}

/* Returns an error that names the rule, which is missing or left-recursive according to `what`. */
static whit_status name_rule(const reader *r, uint32_t rule, const char *what, whit_error *error)
{
    if ((size_t)(rule + 1) * sizeof(rule_name) > r->names.size_bytes) return WHIT_ERROR_FORMAT;
    const rule_name *name = WHIT_ITEMS(const rule_name, &r->names) + rule;
    if (!name->text) return WHIT_ERROR_FORMAT;
    return whit_fail(error, WHIT_ERROR_FORMAT, "%s:%u: rule %.*s %s", r->name, name->first_line, (int)name->n_bytes,
                     name->text, what);
}

whit_status whit_gbnf_compile(whit_automaton *graph, const char *name, const char *text, size_t n_bytes,
                              whit_error *error)
{
    reader r = {
        .name = name, .text = (const uint8_t *)text, .n = n_bytes, .graph = graph, .error = error, .n_slots = 1 << 18};
    if (n_bytes > WHIT_GRAMMAR_MAX_TEXT_BYTES)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: the grammar has %zu bytes, but at most %u are possible", name,
                         n_bytes, WHIT_GRAMMAR_MAX_TEXT_BYTES);
    r.slots = whit_zalloc_array(graph->allocator, r.n_slots, sizeof *r.slots);
    if (!r.slots) return whit_fail_memory(error, "a grammar", r.n_slots * sizeof *r.slots);
    r.names.allocator = r.syntax.nodes.allocator = r.syntax.ranges.allocator = graph->allocator;
    rule_named(&r, "root", 4); /* this makes "root" rule 0, wherever the text defines it */
    for (skip_space(&r, true); r.at < r.n && r.status == WHIT_OK && !graph->failed; skip_space(&r, true)) read_rule(&r);
    const uint32_t *rules = WHIT_ITEMS(const uint32_t, &graph->rules);
    uint32_t n_rules = (uint32_t)(graph->rules.size_bytes / sizeof *rules), bad = WHIT_AUTOMATON_NONE;
    if (r.status == WHIT_OK && !graph->failed)
        for (uint32_t rule = 0; rule < n_rules && r.status == WHIT_OK; rule++)
            if (rules[rule] == WHIT_AUTOMATON_NONE) r.status = name_rule(&r, rule, "is used but not defined", error);
    if (r.status == WHIT_OK) {
        r.status = whit_automaton_finish(graph, name, &bad, error);
        if (r.status == WHIT_ERROR_FORMAT && bad != WHIT_AUTOMATON_NONE)
            name_rule(&r, bad, "calls itself before it has written anything (left recursion)", error);
    }
    whit_free(graph->allocator, r.slots, r.n_slots * sizeof *r.slots);
    whit_buf_free(&r.names);
    whit_pattern_close(&r.syntax);
    return r.status;
}
