/* SPDX-License-Identifier: MIT
 * Translates Oniguruma's Ruby syntax to PCRE2's. Most of a pattern is copied. These parts have another meaning in
 * PCRE2; the table shows their meaning in Oniguruma:
 *
 *     \s \S       White_Space; PCRE2's \s also contains U+180E
 *     \w \W \b \B Alphabetic, M, Nd, Pc; PCRE2's \w (with UCP) lacks marks
 *     \h \H \v \Q \h is a hexadecimal digit, \v the vertical tab, \Q the letter Q
 *     (?m)        the dot matches a newline, like PCRE2's (?s); ^ and $ always match at the beginning and end of a line
 *     {n,m}+ {,n} {n,m}+ repeats the repetition; {,n} is from zero
 *     {n}?        n repetitions or none
 *     a(?i)b|c    means a(?i:b|c); this is refused
 *     \p{Han}     the characters of the script; PCRE2's \p{Han} also contains characters that scripts share
 *     [:alpha:]   the sets that Oniguruma defines
 *     [a[bc]]     the union of the classes; negated sets inside classes become alternatives */
#include "tokenizer/regex.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"

#define MAX_GROUPS 200

#define SPACE "\\p{Z}\\t-\\r\\x{85}"
#define WORD                                                                                                           \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}"                                        \
    "\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}"
#define HEX "0-9a-fA-F"

typedef struct translator {
    const uint8_t *pattern;
    size_t n, at;
    whit_buf *out;
    const whit_allocator *allocator;
    whit_error *error;
    size_t atom; /* where the last atom begins in `out` */
    size_t groups[MAX_GROUPS];
    size_t n_groups;
    size_t branch;                      /* where an alternative begins in the pattern */
    bool option_inside[MAX_GROUPS + 1]; /* indexed by the depth of groups: an option was set inside an alternative */
} translator;

static whit_status refuse_syntax(const translator *t, const char *what)
{
    return whit_fail(t->error, WHIT_ERROR_UNSUPPORTED, "pattern '%.*s', at byte %zu: %s",
                     (int)(t->n < 120 ? t->n : 120), (const char *)t->pattern, t->at, what);
}

static whit_status need_memory(const translator *t, bool ok)
{
    return ok ? WHIT_OK : whit_fail_memory(t->error, "the tokenizer's regular expression", t->out->size_bytes);
}

static uint8_t peek(const translator *t, size_t ahead)
{
    return t->n - t->at > ahead ? t->pattern[t->at + ahead] : 0;
}

/* Puts `before` and `after` around the last atom of `out`. */
static bool wrap_atom(translator *t, const char *before, const char *after)
{
    size_t n = strlen(before), size = t->out->size_bytes;
    if (!whit_buf_append_zeros(t->out, n)) return false;
    memmove(t->out->data + t->atom + n, t->out->data + t->atom, size - t->atom);
    memcpy(t->out->data + t->atom, before, n);
    return whit_buf_append_str(t->out, after);
}

/* Returns the short name of the general category with this long name, since PCRE2 10.42 does not know long names. */
static const char *category_of(const uint8_t *name, size_t n)
{
    static const struct {
        const char *name, *category;
    } names[] = {
        {"letter", "L"},
        {"mark", "M"},
        {"number", "N"},
        {"punctuation", "P"},
        {"punct", "P"},
        {"symbol", "S"},
        {"separator", "Z"},
        {"other", "C"},
        {"uppercaseletter", "Lu"},
        {"lowercaseletter", "Ll"},
        {"titlecaseletter", "Lt"},
        {"modifierletter", "Lm"},
        {"otherletter", "Lo"},
        {"nonspacingmark", "Mn"},
        {"spacingmark", "Mc"},
        {"enclosingmark", "Me"},
        {"decimalnumber", "Nd"},
        {"digit", "Nd"},
        {"letternumber", "Nl"},
        {"othernumber", "No"},
        {"connectorpunctuation", "Pc"},
        {"dashpunctuation", "Pd"},
        {"mathsymbol", "Sm"},
        {"currencysymbol", "Sc"},
        {"modifiersymbol", "Sk"},
        {"othersymbol", "So"},
        {"spaceseparator", "Zs"},
        {"lineseparator", "Zl"},
        {"paragraphseparator", "Zp"},
        {"control", "Cc"},
        {"cntrl", "Cc"},
        {"format", "Cf"},
        {"unassigned", "Cn"},
        {"alpha", "Alphabetic"},
        {"lower", "Lowercase"},
        {"upper", "Uppercase"},
        {"space", "White_Space"},
    };
    char plain[40];
    size_t length = 0;
    for (size_t i = 0; i < n && length + 1 < sizeof plain; i++)
        if (name[i] != '_' && name[i] != '-' && name[i] != ' ')
            plain[length++] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] | 0x20 : name[i]);
    plain[length] = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(plain, names[i].name) == 0) return names[i].category;
    return NULL;
}

/* Translates \p{...} or \P{...}; t->at is the position of the p. */
static whit_status translate_property(translator *t, whit_buf *out)
{
    bool negated = t->pattern[t->at] == 'P';
    t->at++;
    if (peek(t, 0) != '{') {
        if (t->at >= t->n) return refuse_syntax(t, "a property has no name: write \\p{L} and the like");
        return need_memory(t, whit_buf_printf(out, "\\%c%c", negated ? 'P' : 'p', t->pattern[t->at++]));
    }
    const uint8_t *name = t->pattern + t->at + 1;
    const uint8_t *end = memchr(name, '}', t->n - t->at - 1);
    if (!end || end - name > 64) return refuse_syntax(t, "a property's name lacks its }");
    size_t n = (size_t)(end - name);
    t->at += n + 2;
    if (n && name[0] == '^') {
        negated = !negated;
        name++;
        n--;
    }
    const char *category = category_of(name, n);
    char script[80];
    bool is_script = false;
    if (!category && n > 1 && !(n == 2 && strchr("CLMNPSZ", name[0])) && !memchr(name, 0, n)) {
        snprintf(script, sizeof script, "sc:%.*s", (int)n, (const char *)name);
        WHIT_TRY(whit_regex_has_property(script, t->allocator, &is_script, t->error));
    }
    whit_buf_printf(out, "\\%c{", negated ? 'P' : 'p');
    if (category || is_script)
        whit_buf_append_str(out, category ? category : script);
    else
        whit_buf_append(out, name, n);
    return need_memory(t, whit_buf_append(out, "}", 1));
}

/* Translates escapes that are single characters, or that both dialects understand in the same way. t->at is the
 * position after the backslash. */
static whit_status translate_common_escape(translator *t, whit_buf *out)
{
    uint8_t c = t->pattern[t->at];
    bool ok;
    if (c == 'p' || c == 'P') return translate_property(t, out);
    if (c == 'u') {
        if (t->n - t->at < 5) return refuse_syntax(t, "\\u needs four hexadecimal digits");
        ok = whit_buf_printf(out, "\\x{%.4s}", (const char *)t->pattern + t->at + 1);
        t->at += 5;
        return need_memory(t, ok);
    }
    t->at++;
    if (c == 'v') return need_memory(t, whit_buf_append_str(out, "\\x0B"));
    if (c >= 0x80 || c == 'Q' || c == 'E' || c == 'y' || c == 'Y' || c == 'i' || c == 'I' || c == 'j')
        return need_memory(t, whit_buf_append(out, &c, 1)); /* such an escape means the letter itself */
    if (c == 'C' || c == 'g' || c == 'M') return refuse_syntax(t, "this escape is not supported by whit");
    whit_buf_append(out, "\\", 1);
    return need_memory(t, whit_buf_append(out, &c, 1));
}

/* ---- classes ------------------------------------------------------------------------------- */

typedef struct class_parts {
    whit_buf items;       /* items that can be written directly in the class */
    const char *minus[8]; /* sets whose complement belongs to the class */
    size_t n_minus;
    whit_buf minus_texts[4]; /* items of nested negated classes, whose complement belongs to the class */
    size_t n_minus_texts;
} class_parts;

static whit_status read_class(translator *t, class_parts *parts, bool *negated, int depth);

static whit_status add_minus(translator *t, class_parts *parts, const char *set)
{
    if (parts->n_minus == 8)
        return refuse_syntax(t, "a class has more than 8 negated sets (\\D, \\S, \\W, \\P), the limit");
    parts->minus[parts->n_minus++] = set;
    return WHIT_OK;
}

static whit_status read_class_escape(translator *t, class_parts *parts)
{
    static const struct {
        char letter;
        const char *set;
    } sets[] = {{'s', SPACE}, {'w', WORD}, {'h', HEX}};
    if (++t->at >= t->n) return refuse_syntax(t, "the pattern ends after a backslash, which escapes nothing");
    uint8_t c = t->pattern[t->at];
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        if ((c | 0x20) != sets[i].letter || !((c | 0x20) >= 'a')) continue;
        t->at++;
        if (c == (uint8_t)sets[i].letter) return need_memory(t, whit_buf_append_str(&parts->items, sets[i].set));
        return add_minus(t, parts, sets[i].set);
    }
    return translate_common_escape(t, &parts->items);
}

/* Reads [:name:] or [:^name:], as in Oniguruma 6.9.8; t->at is the position of its '['. */
static whit_status read_posix_class(translator *t, class_parts *parts)
{
    static const struct {
        const char *name, *set;
    } classes[] = {
        {"alnum", "\\p{Alphabetic}\\p{Nd}"},
        {"alpha", "\\p{Alphabetic}"},
        {"ascii", "\\x00-\\x7F"},
        {"blank", "\\p{Zs}\\t"},
        {"cntrl", "\\p{Cc}"},
        {"digit", "\\p{Nd}"},
        {"lower", "\\p{Lowercase}"},
        {"punct", "\\p{P}"},
        {"space", SPACE},
        {"upper", "\\p{Uppercase}"},
        {"word", WORD},
        {"xdigit", HEX},
    };
    const uint8_t *name = t->pattern + t->at + 2, *stop = t->pattern + t->n;
    const uint8_t *end = memmem(name, (size_t)(stop - name), ":]", 2);
    if (!end) return refuse_syntax(t, "a POSIX class lacks its :]");
    const bool negated = *name == '^';
    name += negated;
    const size_t n = (size_t)(end - name);
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (strlen(classes[i].name) != n || memcmp(classes[i].name, name, n) != 0) continue;
        t->at = (size_t)(end - t->pattern) + 2;
        return negated ? add_minus(t, parts, classes[i].set)
                       : need_memory(t, whit_buf_append_str(&parts->items, classes[i].set));
    }
    char what[80];
    snprintf(what, sizeof what, "the class [:%.*s:] is not supported", (int)(n < 20 ? n : 20), (const char *)name);
    return refuse_syntax(t, what);
}

static whit_status read_nested_class(translator *t, class_parts *parts, int depth)
{
    if (depth > 4) return refuse_syntax(t, "classes are nested more than 4 deep, the limit");
    class_parts inner = {.items = {.allocator = t->allocator}};
    bool negated;
    whit_status status = read_class(t, &inner, &negated, depth + 1);
    if (status == WHIT_OK && (inner.n_minus || inner.n_minus_texts))
        status = refuse_syntax(t, "a negated set within a nested class is not supported");
    if (status == WHIT_OK && !negated)
        status = need_memory(t, whit_buf_append(&parts->items, inner.items.data, inner.items.size_bytes));
    if (status == WHIT_OK && negated && parts->n_minus_texts == 4)
        status = refuse_syntax(t, "a class has more than 4 negated classes in it, the limit");
    if (status == WHIT_OK && negated)
        parts->minus_texts[parts->n_minus_texts++] = inner.items;
    else
        whit_buf_free(&inner.items);
    for (size_t i = 0; i < inner.n_minus_texts; i++) whit_buf_free(&inner.minus_texts[i]);
    return status;
}

/* Reads a class. t->at is the position of its '[', and afterwards the position after its ']'. */
static whit_status read_class(translator *t, class_parts *parts, bool *negated, int depth)
{
    t->at++;
    *negated = peek(t, 0) == '^';
    t->at += *negated;
    for (bool first = true;; first = false) {
        if (t->at >= t->n) return refuse_syntax(t, "a class lacks its ]");
        uint8_t c = t->pattern[t->at];
        if (c == ']' && !first) break;
        if (c == '\\') {
            WHIT_TRY(read_class_escape(t, parts));
        } else if (c == '[' && peek(t, 1) == ':') {
            WHIT_TRY(read_posix_class(t, parts));
        } else if (c == '[') {
            WHIT_TRY(read_nested_class(t, parts, depth));
        } else if (c == '&' && peek(t, 1) == '&') {
            return refuse_syntax(t, "the intersection of classes (&&) is not supported");
        } else {
            if (c == ']') whit_buf_append(&parts->items, "\\", 1);
            WHIT_TRY(need_memory(t, whit_buf_append(&parts->items, &c, 1)));
            t->at++;
        }
    }
    t->at++;
    return WHIT_OK;
}

/* Writes a class that consists of items and complements of sets as (?:[items]|[^set]), or, if it is negated, as
 * (?:(?![items])[set]). */
static bool write_class(whit_buf *out, const class_parts *parts, bool negated)
{
    const whit_buf *items = &parts->items;
    size_t n_sets = parts->n_minus + parts->n_minus_texts;
    if (n_sets == 0) {
        whit_buf_append_str(out, negated ? "[^" : "[");
        whit_buf_append(out, items->data, items->size_bytes);
        return whit_buf_append(out, "]", 1);
    }
    whit_buf_append_str(out, "(?:");
    if (items->size_bytes) {
        whit_buf_append_str(out, negated ? "(?![" : "[");
        whit_buf_append(out, items->data, items->size_bytes);
        whit_buf_append_str(out, negated ? "])" : "]|");
    }
    for (size_t i = 0; i < n_sets; i++) {
        bool last = i + 1 == n_sets;
        const char *begin = "(?=[";
        if (!negated)
            begin = "[^";
        else if (last)
            begin = "[";
        whit_buf_append_str(out, begin);
        if (i < parts->n_minus)
            whit_buf_append_str(out, parts->minus[i]);
        else
            whit_buf_append(out, parts->minus_texts[i - parts->n_minus].data,
                            parts->minus_texts[i - parts->n_minus].size_bytes);
        const char *end = "]|";
        if (last)
            end = "]";
        else if (negated)
            end = "])";
        whit_buf_append_str(out, end);
    }
    return whit_buf_append(out, ")", 1);
}

static whit_status translate_class(translator *t)
{
    class_parts parts = {.items = {.allocator = t->allocator}};
    bool negated = false;
    t->atom = t->out->size_bytes;
    whit_status status = read_class(t, &parts, &negated, 0);
    if (status == WHIT_OK) status = need_memory(t, write_class(t->out, &parts, negated));
    whit_buf_free(&parts.items);
    for (size_t i = 0; i < parts.n_minus_texts; i++) whit_buf_free(&parts.minus_texts[i]);
    return status;
}

/* ---- outside classes ----------------------------------------------------------------------- */

static whit_status translate_escape(translator *t)
{
    static const struct {
        char letter;
        const char *text;
    } escapes[] = {
        {'s', "[" SPACE "]"},
        {'S', "[^" SPACE "]"},
        {'w', "[" WORD "]"},
        {'W', "[^" WORD "]"},
        {'h', "[" HEX "]"},
        {'H', "[^" HEX "]"},
        {'b', "(?:(?<=[" WORD "])(?![" WORD "])|(?<![" WORD "])(?=[" WORD "]))"},
        {'B', "(?:(?<=[" WORD "])(?=[" WORD "])|(?<![" WORD "])(?![" WORD "]))"},
    };
    if (++t->at >= t->n) return refuse_syntax(t, "the pattern ends after a backslash, which escapes nothing");
    t->atom = t->out->size_bytes;
    for (size_t i = 0; i < sizeof escapes / sizeof escapes[0]; i++)
        if (t->pattern[t->at] == (uint8_t)escapes[i].letter) {
            t->at++;
            return need_memory(t, whit_buf_append_str(t->out, escapes[i].text));
        }
    return translate_common_escape(t, t->out);
}

static whit_status translate_group(translator *t)
{
    const bool begins = t->at == t->branch;
    if (t->n_groups == MAX_GROUPS) return refuse_syntax(t, "groups are nested more than 200 deep, the limit");
    t->groups[t->n_groups++] = t->out->size_bytes;
    t->option_inside[t->n_groups] = false;
    t->at++;
    whit_buf_append(t->out, "(", 1);
    if (peek(t, 0) == '*') return refuse_syntax(t, "'(*' is not supported");
    t->branch = t->at;
    if (peek(t, 0) != '?') return need_memory(t, !t->out->failed);
    t->at++;
    whit_buf_append(t->out, "?", 1);
    uint8_t c = peek(t, 0);
    t->branch = t->at + 1;
    if (c && strchr(":=!>#", c)) return need_memory(t, !t->out->failed);
    if (c == '<') {
        t->at++;
        while (peek(t, 0) != '=' && peek(t, 0) != '!' && t->branch < t->n && t->pattern[t->branch] != '>') t->branch++;
        t->branch++; /* moves past the '=' or '!', or past the group's name */
        return need_memory(t, whit_buf_append(t->out, "<", 1));
    }
    if (!c || !strchr("imx-", c))
        return refuse_syntax(t,
                             "this kind of group is not supported: (...), (?:...), (?=...), (?!...) and options are");
    for (; (c = peek(t, 0)) && strchr("imx-", c); t->at++)
        whit_buf_append(t->out, c == 'm' ? "s" : (const char *)&c, 1);
    if (c != ':' && c != ')')
        return refuse_syntax(t,
                             "this kind of group is not supported: (...), (?:...), (?=...), (?!...) and options are");
    if (c == ')' && !begins) t->option_inside[t->n_groups - 1] = true;
    if (c == ':' || begins) t->branch = t->at + 1;
    return need_memory(t, !t->out->failed);
}

/* Translates a quantifier {n,m}; otherwise the brace is a literal. */
static whit_status translate_repeat(translator *t)
{
    size_t at = t->at + 1, start = at;
    while (at < t->n && ((t->pattern[at] >= '0' && t->pattern[at] <= '9') || t->pattern[at] == ',')) at++;
    bool repeat = at < t->n && t->pattern[at] == '}' && at > start && !(at == start + 1 && t->pattern[start] == ',');
    if (!repeat) {
        t->atom = t->out->size_bytes;
        t->at++;
        return need_memory(t, whit_buf_append_str(t->out, "\\{"));
    }
    whit_buf_append_str(t->out, t->pattern[start] == ',' ? "{0" : "{");
    whit_buf_append(t->out, t->pattern + start, at - start + 1);
    t->at = at + 1;
    if (peek(t, 0) == '?' && !memchr(t->pattern + start, ',', at - start)) {
        t->at++;
        return need_memory(t, wrap_atom(t, "(?:", ")?"));
    }
    if (peek(t, 0) == '+') {
        t->at++;
        return need_memory(t, wrap_atom(t, "(?:", ")+"));
    }
    return need_memory(t, !t->out->failed);
}

whit_status whit_regex_translate(const uint8_t *pattern, size_t n_bytes, whit_buf *out, whit_error *error)
{
    translator t = {.pattern = pattern, .n = n_bytes, .out = out, .allocator = out->allocator, .error = error};
    while (t.at < n_bytes) {
        uint8_t c = pattern[t.at];
        if (c == '\\') {
            WHIT_TRY(translate_escape(&t));
        } else if (c == '[') {
            WHIT_TRY(translate_class(&t));
        } else if (c == '(') {
            WHIT_TRY(translate_group(&t));
        } else if (c == '{') {
            WHIT_TRY(translate_repeat(&t));
        } else {
            size_t length;
            if (whit_utf8_decode(pattern + t.at, n_bytes - t.at, &length) == WHIT_UTF8_INVALID)
                return refuse_syntax(&t, "the pattern is not UTF-8");
            if (c == '|' && t.option_inside[t.n_groups])
                return refuse_syntax(
                    &t, "an option like (?i) within an alternative reaches over the next ones: write (?i:...)");
            if (c == '|') t.branch = t.at + 1;
            if (c == ')' && t.n_groups)
                t.atom = t.groups[--t.n_groups];
            else if (c == 0 || !strchr("*+?|", c))
                t.atom = out->size_bytes;
            WHIT_TRY(need_memory(&t, whit_buf_append(out, pattern + t.at, length)));
            t.at += length;
        }
    }
    return WHIT_OK;
}
