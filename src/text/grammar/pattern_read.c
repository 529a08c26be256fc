/* SPDX-License-Identifier: MIT
 * Parses the regular expressions of JSON Schema's `pattern`: the regular subset of ECMA-262. */
#include "grammar/pattern.h"

#include "base/items.h"
#include "base/utf8.h"
#include "grammar/pattern_property.h"

enum { MOST_RANGES = 1024, MOST_PROPERTIES = 16 };

typedef struct class
{
    whit_code_range ranges[MOST_RANGES];
    size_t n;
} class;

typedef struct reader {
    const char *name;
    const uint8_t *text;
    size_t n, at;
    whit_pattern *syntax;
    whit_error *error;
    whit_status status;
    class one; /* the class being read; not a local variable, because groups nest and thread stacks are small */
} reader;

static uint32_t refuse_pattern(reader *r, const char *what)
{
    if (r->status == WHIT_OK && r->syntax->failed) /* the position where reading stopped has no meaning */
        r->status = whit_fail(r->error, WHIT_ERROR_LIMIT, "%s: the pattern is too large, or memory ran out: shorten it",
                              r->name);
    if (r->status == WHIT_OK)
        r->status = whit_fail(r->error, WHIT_ERROR_UNSUPPORTED, "%s: at character %zu of the pattern: %s", r->name,
                              r->at + 1, what);
    return WHIT_PATTERN_NONE;
}

static bool add_range(reader *r, class *c, uint32_t first, uint32_t last)
{
    if (c->n == MOST_RANGES) return refuse_pattern(r, "a class has more than 1,024 ranges, the limit"), false;
    c->ranges[c->n++] = (whit_code_range){first, last};
    return true;
}

static uint32_t next_code(reader *r)
{
    size_t length;
    uint32_t code = whit_utf8_decode(r->text + r->at, r->n - r->at, &length);
    if (code == WHIT_UTF8_INVALID) refuse_pattern(r, "these bytes are not UTF-8");
    r->at += length;
    return code;
}

static bool next_is(reader *r, const char *text)
{
    size_t n = strlen(text);
    if (r->n - r->at < n || memcmp(r->text + r->at, text, n) != 0) return false;
    r->at += n;
    return true;
}

/* Adds the characters of \d, \w, \s or their complements, as ECMA-262 defines them. Returns false for another
 * letter. */
static bool add_named(reader *r, class *c, uint8_t letter)
{
    static const whit_code_range digits[] = {{'0', '9'}}, words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
                                 spaces[] = {{9, 13},          {32, 32},         {0xA0, 0xA0},     {0x1680, 0x1680},
                                             {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                                             {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
    uint8_t lower = letter | 32;
    const whit_code_range *ranges = NULL;
    if (lower == 'd')
        ranges = digits;
    else if (lower == 'w')
        ranges = words;
    else if (lower == 's')
        ranges = spaces;
    size_t n = 10;
    if (lower == 'd')
        n = 1;
    else if (lower == 'w')
        n = 4;
    if (!ranges) return false;
    if (letter == lower) {
        for (size_t i = 0; i < n; i++) add_range(r, c, ranges[i].first, ranges[i].last);
        return true;
    }
    uint32_t from = 0;
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].first > from) add_range(r, c, from, ranges[i].first - 1);
        from = ranges[i].last + 1;
    }
    return add_range(r, c, from, 0x10FFFF);
}

/* Adds the characters of a Unicode property. Reads its braces and name, which follow \p or \P. */
static bool add_property(reader *r, class *c, bool inverted)
{
    whit_buf found = {.allocator = r->syntax->nodes.allocator};
    size_t from = r->at + 1, end = from;
    while (end < r->n && r->text[end] != '}') end++;
    if (++r->syntax->n_properties > MOST_PROPERTIES)
        return refuse_pattern(r, "the pattern has more than 16 Unicode properties (\\p{...}), the limit"), false;
    bool known = r->at < r->n && r->text[r->at] == '{' && end < r->n &&
        whit_pattern_property((const char *)r->text + from, end - from, &found);
    if (!known) {
        whit_buf_free(&found);
        r->at--;
        return refuse_pattern(r, "this Unicode property is not supported; general categories such as \\p{L} are"),
               false;
    }
    r->at = end + 1;
    const whit_code_range *ranges = WHIT_ITEMS(const whit_code_range, &found);
    size_t n = found.size_bytes / sizeof *ranges;
    uint32_t next = 0;
    for (size_t i = 0; i < n && r->status == WHIT_OK; i++) {
        if (!inverted)
            add_range(r, c, ranges[i].first, ranges[i].last);
        else if (ranges[i].first > next)
            add_range(r, c, next, ranges[i].first - 1);
        next = ranges[i].last + 1;
    }
    if (inverted && next <= 0x10FFFF) add_range(r, c, next, 0x10FFFF);
    whit_buf_free(&found);
    return r->status == WHIT_OK;
}

static uint32_t read_hex(reader *r, uint32_t n_digits)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < n_digits; i++) {
        int digit = r->at < r->n ? whit_hex_digit(r->text[r->at++]) : -1;
        if (digit < 0) return refuse_pattern(r, "expected hexadecimal digits, up to 10FFFF, in this escape"), 0;
        value = value * 16 + (uint32_t)digit;
    }
    return value;
}

static uint32_t read_braced(reader *r)
{
    uint32_t value = 0;
    while (r->at < r->n && r->text[r->at] != '}' && value <= 0x10FFFF) value = value * 16 + read_hex(r, 1);
    if (!next_is(r, "}") || value > 0x10FFFF)
        refuse_pattern(r, "expected hexadecimal digits, up to 10FFFF, in this escape");
    return value;
}

/* Reads an escape, after its backslash. Returns its code point, or WHIT_UTF8_INVALID if it was a class of characters,
 * which was added to *c. */
static uint32_t read_escape(reader *r, class *c, bool in_class)
{
    if (r->at == r->n)
        return refuse_pattern(r, "the pattern ends after a backslash: write \\\\ for the character itself"), 0;
    uint8_t letter = r->text[r->at];
    if (letter >= 0x80) return next_code(r);
    r->at++;
    if (add_named(r, c, letter)) return WHIT_UTF8_INVALID;
    if (letter == 'p' || letter == 'P') {
        add_property(r, c, letter == 'P');
        return WHIT_UTF8_INVALID;
    }
    switch (letter) {
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'v': return '\v';
    case 'f': return '\f';
    case '0': return 0;
    case 'x': return read_hex(r, 2);
    case 'u':
        if (next_is(r, "{")) return read_braced(r);
        uint32_t code = read_hex(r, 4);
        if (code >= 0xD800 && code < 0xDC00 && next_is(r, "\\u"))
            code = 0x10000 + ((code - 0xD800) << 10) + ((read_hex(r, 4) - 0xDC00) & 0x3FF);
        return code;
    case 'b':
        if (in_class) return '\b';
        break;
    default:
        if (!((letter | 32) >= 'a' && (letter | 32) <= 'z') && !(letter >= '0' && letter <= '9')) return letter;
    }
    r->at--;
    const char *what = "this escape is not supported";
    if (letter >= '1' && letter <= '9')
        what = "references to groups (\\1) are not supported: write the group again";
    else if (letter == 'b' || letter == 'B')
        what = "word boundaries (\\b, \\B) are not supported: leave them out";
    return refuse_pattern(r, what);
}

static uint32_t read_class(reader *r)
{
    class *c = &r->one;
    bool inverted = next_is(r, "^");
    c->n = 0;
    while (r->status == WHIT_OK && !next_is(r, "]")) {
        if (r->at == r->n) return refuse_pattern(r, "a class lacks its ]");
        uint32_t first = next_is(r, "\\") ? read_escape(r, c, true) : next_code(r), last = first;
        if (first == WHIT_UTF8_INVALID) continue;
        if (r->n - r->at >= 2 && r->text[r->at] == '-' && r->text[r->at + 1] != ']') {
            r->at++;
            last = next_is(r, "\\") ? read_escape(r, c, true) : next_code(r);
            if (last == WHIT_UTF8_INVALID || last < first)
                return refuse_pattern(r, "a range of the class ends before its first character");
        }
        add_range(r, c, first, last);
    }
    return r->status == WHIT_OK ? whit_pattern_codes(r->syntax, c->ranges, c->n, inverted) : WHIT_PATTERN_NONE;
}

static uint32_t one_code(reader *r, uint32_t code)
{
    whit_code_range range = {code, code};
    return whit_pattern_codes(r->syntax, &range, 1, false);
}

static uint32_t read_any(reader *r, uint32_t depth);

static uint32_t read_atom(reader *r, uint32_t depth)
{
    static const whit_code_range ends[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
    if (next_is(r, "(?<=") || next_is(r, "(?<!"))
        return refuse_pattern(r, "looking back, (?<=...) and (?<!...), is not supported");
    bool is_ahead = next_is(r, "(?="), not_ahead = !is_ahead && next_is(r, "(?!");
    if (is_ahead || not_ahead) {
        uint32_t ahead = whit_pattern_add(r->syntax, is_ahead ? WHIT_PATTERN_AHEAD : WHIT_PATTERN_NOT_AHEAD, 0, 0);
        uint32_t what = read_any(r, depth + 1);
        r->syntax->looks_ahead = true;
        if (r->status == WHIT_OK && !next_is(r, ")")) return refuse_pattern(r, "a group lacks its )");
        if (r->status == WHIT_OK) whit_pattern_append(r->syntax, ahead, what);
        return r->syntax->failed ? WHIT_PATTERN_NONE : ahead;
    }
    if (depth && next_is(r, "$")) {
        r->syntax->looks_ahead = true;
        return whit_pattern_add(r->syntax, WHIT_PATTERN_END, 0, 0);
    }
    if (next_is(r, "(?<")) {
        while (r->at < r->n && r->text[r->at] != '>') r->at++;
        r->at += r->at < r->n;
    } else if (!next_is(r, "(?:") && !next_is(r, "(")) {
        whit_code_range all[3];
        if (next_is(r, "[")) return read_class(r);
        if (next_is(r, ".")) {
            memcpy(all, ends, sizeof all);
            return whit_pattern_codes(r->syntax, all, 3, true);
        }
        if (next_is(r, "\\")) {
            r->one.n = 0;
            uint32_t code = read_escape(r, &r->one, false);
            if (r->status != WHIT_OK) return WHIT_PATTERN_NONE;
            return code == WHIT_UTF8_INVALID ? whit_pattern_codes(r->syntax, r->one.ranges, r->one.n, false)
                                             : one_code(r, code);
        }
        if (strchr("^$", r->text[r->at]))
            return refuse_pattern(r, "^ and $ are supported only at the beginning and end: leave this one out");
        if (strchr("*+?{}", r->text[r->at]))
            return refuse_pattern(r, "nothing precedes this quantifier: write \\ before it for the character itself");
        uint32_t code = next_code(r);
        return r->status == WHIT_OK ? one_code(r, code) : WHIT_PATTERN_NONE;
    } else if (next_is(r, "?")) {
        return refuse_pattern(r, "flags, (?i) and the like, are not supported");
    }
    uint32_t inside = read_any(r, depth + 1);
    if (r->status == WHIT_OK && !next_is(r, ")")) return refuse_pattern(r, "a group lacks its )");
    return inside;
}

static uint32_t read_repeated(reader *r, uint32_t depth)
{
    uint32_t atom = read_atom(r, depth), min, max;
    if (r->status != WHIT_OK) return WHIT_PATTERN_NONE;
    if (next_is(r, "*")) {
        min = 0, max = WHIT_AUTOMATON_UNBOUNDED;
    } else if (next_is(r, "+")) {
        min = 1, max = WHIT_AUTOMATON_UNBOUNDED;
    } else if (next_is(r, "?")) {
        min = 0, max = 1;
    } else if (next_is(r, "{")) {
        if (!whit_pattern_count(r->text, r->n, &r->at, &min))
            return refuse_pattern(r, "expected {n}, {n,} or {n,m}, with n up to m");
        max = min;
        if (next_is(r, ",") && !whit_pattern_count(r->text, r->n, &r->at, &max)) max = WHIT_AUTOMATON_UNBOUNDED;
        if (!next_is(r, "}") || max < min) return refuse_pattern(r, "expected {n}, {n,} or {n,m}, with n up to m");
    } else {
        return atom;
    }
    next_is(r, "?"); /* a lazy quantifier matches the same texts */
    uint32_t repeat = whit_pattern_add(r->syntax, WHIT_PATTERN_REPEAT, min, max);
    whit_pattern_append(r->syntax, repeat, atom);
    return r->syntax->failed ? WHIT_PATTERN_NONE : repeat;
}

static uint32_t anything(reader *r)
{
    uint32_t repeat = whit_pattern_add(r->syntax, WHIT_PATTERN_REPEAT, 0, WHIT_AUTOMATON_UNBOUNDED);
    whit_pattern_append(r->syntax, repeat, whit_pattern_codes(r->syntax, NULL, 0, true));
    return repeat;
}

/* Reads alternatives. At the top level, where depth is 0, any text is added before and after an alternative that is not
 * anchored there. */
static uint32_t read_any(reader *r, uint32_t depth)
{
    if (depth > WHIT_PATTERN_MAX_DEPTH) return refuse_pattern(r, "groups are nested more than 200 deep, the limit");
    uint32_t any = whit_pattern_add(r->syntax, WHIT_PATTERN_ANY, 0, 0);
    do {
        uint32_t all = whit_pattern_add(r->syntax, WHIT_PATTERN_ALL, 0, 0);
        bool open_end = depth == 0;
        if (depth == 0 && !next_is(r, "^")) whit_pattern_append(r->syntax, all, anything(r));
        while (r->status == WHIT_OK && r->at < r->n && r->text[r->at] != '|' && r->text[r->at] != ')') {
            if (depth == 0 && r->text[r->at] == '$' && (r->at + 1 == r->n || r->text[r->at + 1] == '|')) {
                open_end = false;
                r->at++;
                break;
            }
            uint32_t part = read_repeated(r, depth);
            if (r->status == WHIT_OK) whit_pattern_append(r->syntax, all, part);
            if (r->syntax->failed) return WHIT_PATTERN_NONE;
        }
        if (r->status != WHIT_OK) return WHIT_PATTERN_NONE;
        if (open_end) whit_pattern_append(r->syntax, all, anything(r));
        whit_pattern_append(r->syntax, any, all);
    } while (next_is(r, "|"));
    return any;
}

whit_status whit_pattern_read(const char *name, const char *text, size_t n_bytes, whit_pattern *syntax, uint32_t *root,
                              whit_error *error)
{
    reader r = {.name = name, .text = (const uint8_t *)text, .n = n_bytes, .syntax = syntax, .error = error};
    *root = WHIT_PATTERN_NONE;
    uint32_t any = read_any(&r, 0);
    if (r.status == WHIT_OK && r.at < r.n) refuse_pattern(&r, "this ) has no (: write \\) for the character itself");
    if (r.status == WHIT_OK && syntax->failed)
        r.status =
            whit_fail(error, WHIT_ERROR_LIMIT, "%s: the pattern is too large, or memory ran out: shorten it", name);
    if (r.status == WHIT_OK) *root = any;
    return r.status;
}
