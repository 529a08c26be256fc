/* SPDX-License-Identifier: MIT
 * Implements filters on text. Most of them first convert other values to str, as in Jinja. */
#include <math.h>
#include <stdio.h>

#include "template/builtin.h"
#include "template/format.h"
#include "template/strings.h"
#include "template/unicode.h"

static whit_status self_text(whit_machine *m, const whit_builtin_frame *call, const whit_text **text)
{
    return whit_machine_str(m, call->self, text);
}

/* Sets *text to the value that is filtered, for filters that call a str method in Jinja. Fails if it is not a str. */
static whit_status self_str(whit_machine *m, const whit_builtin_frame *call, const whit_text **text)
{
    if (call->self.kind == WHIT_DATUM_UNDEFINED) return whit_machine_raise_undefined(m, call->self);
    if (!whit_datum_is_str(call->self))
        return whit_machine_raise_type(m, "%s wants a str, not %s", call->builtin->name, whit_datum_type(call->self));
    *text = call->self.text;
    return WHIT_OK;
}

static whit_status change_case(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *text;
    WHIT_TRY(self_text(m, call, &text));
    return whit_string_change_case(m, text, (whit_casing)call->builtin->detail, result);
}

static whit_status trim(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *text, *characters = NULL;
    WHIT_TRY(self_text(m, call, &text));
    if (whit_builtin_is_given(call, 0)) WHIT_TRY(whit_builtin_want_text(m, call, 0, &characters));
    return whit_string_strip(m, text, characters, WHIT_SIDE_BOTH, result);
}

static whit_status string(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *text;
    WHIT_TRY(self_text(m, call, &text));
    *result = whit_datum_text(text);
    return WHIT_OK;
}

static whit_status safe(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *text;
    WHIT_TRY(self_text(m, call, &text));
    whit_builder b = whit_machine_build(m);
    b.markup = true;
    whit_builder_text(&b, text);
    return whit_machine_build_end(m, &b, result);
}

static whit_status escape(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    return whit_machine_escape_html(m, call->self, result);
}

static whit_status force_escape(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *text;
    WHIT_TRY(self_text(m, call, &text));
    whit_text plain = *text;
    plain.markup = false;
    return whit_machine_escape_html(m, whit_datum_text(&plain), result);
}

static whit_status replace_text(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *text, *from, *to;
    int64_t limit = -1;
    WHIT_TRY(self_text(m, call, &text));
    WHIT_TRY(whit_machine_str(m, call->values[0], &from));
    WHIT_TRY(whit_machine_str(m, call->values[1], &to));
    if (whit_builtin_is_given(call, 2)) WHIT_TRY(whit_builtin_want_int(m, call, 2, -1, &limit));
    whit_text plain = *text;
    plain.markup = false;
    return whit_string_replace(m, &plain, from, to, limit, result);
}

static whit_status center(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *text;
    int64_t width;
    WHIT_TRY(self_text(m, call, &text));
    WHIT_TRY(whit_builtin_want_int(m, call, 0, 80, &width));
    return whit_string_pad(m, text, width, ' ', WHIT_SIDE_BOTH, result);
}

static whit_status indent(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *text = NULL, *by = NULL;
    int64_t width = 4;
    WHIT_TRY(self_str(m, call, &text));
    if (call->given[0] && whit_datum_is_str(call->values[0]))
        by = call->values[0].text;
    else
        WHIT_TRY(whit_builtin_want_int(m, call, 0, 4, &width));
    bool first = whit_builtin_is_true(call, 1), blank = whit_builtin_is_true(call, 2);
    whit_datum lines, whole;
    whit_builder padded = whit_machine_build(m), b = whit_machine_build(m);
    whit_builder_text(&padded, text);
    whit_builder_str(&padded, "\n"); /* so that an empty last line counts too */
    WHIT_TRY(whit_machine_build_end(m, &padded, &whole));
    WHIT_TRY(whit_string_split_lines(m, whole.text, false, &lines));
    b.markup = text->markup;
    for (size_t i = 0; i < lines.list->n && !b.failed; i++) {
        const whit_text *line = lines.list->items[i].text;
        if (i) whit_builder_str(&b, "\n");
        if (i ? blank || line->n_bytes > 0 : first) {
            if (by)
                whit_builder_text(&b, by);
            else
                whit_builder_repeat(&b, ' ', width > 0 ? (size_t)width : 0, false);
        }
        whit_builder_text(&b, line);
    }
    return whit_machine_build_end(m, &b, result);
}

static whit_status truncate_text(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    static const whit_text dots = {.bytes = "...", .n_bytes = 3, .n_points = 3};
    const whit_text *text, *end = &dots;
    int64_t length, leeway = 5;
    size_t n;
    if (!whit_datum_length(call->self, &n))
        return whit_machine_raise_type(m, "object of type '%s' has no len()", whit_datum_type(call->self));
    WHIT_TRY(self_text(m, call, &text));
    WHIT_TRY(whit_builtin_want_int(m, call, 0, 255, &length));
    if (call->given[2]) WHIT_TRY(whit_builtin_want_text(m, call, 2, &end));
    if (whit_builtin_is_given(call, 3)) WHIT_TRY(whit_builtin_want_int(m, call, 3, 5, &leeway));
    if (length < (int64_t)end->n_points || leeway < 0 || length > INT32_MAX || leeway > INT32_MAX)
        return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "truncate: expected length >= %zu and leeway >= 0",
                                  end->n_points);
    if ((int64_t)n <= length + leeway) {
        *result = call->self;
        return WHIT_OK;
    }
    if (!whit_datum_is_str(call->self)) return whit_machine_raise_type(m, "truncate wants a str");
    size_t cut = whit_text_offset(text, (size_t)length - end->n_points);
    if (!whit_builtin_is_true(call, 1)) {
        static const whit_text space = {.bytes = " ", .n_bytes = 1, .n_points = 1};
        size_t word = whit_text_find_last(text, &space, 0, cut);
        if (word != SIZE_MAX) cut = word;
    }
    whit_builder b = whit_machine_build(m);
    b.markup = text->markup;
    whit_builder_slice(&b, text, 0, cut);
    whit_builder_text(&b, end);
    return whit_machine_build_end(m, &b, result);
}

static bool is_word(uint32_t point)
{
    return point == '_' || whit_point_is_alpha(point) || whit_point_is_numeric(point);
}

static whit_status word_count(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *text;
    int64_t n = 0;
    bool inside = false;
    WHIT_TRY(self_text(m, call, &text));
    WHIT_TRY(whit_machine_spend(m, text->n_bytes / 16));
    for (size_t at = 0; at < text->n_bytes;) {
        bool word = is_word(whit_text_point(text, at, &at));
        n += word && !inside;
        inside = word;
    }
    *result = whit_datum_int(n);
    return WHIT_OK;
}

static whit_status quote_url(whit_machine *m, whit_datum value, bool in_query, whit_builder *b)
{
    const whit_text *text;
    WHIT_TRY(whit_machine_str(m, value, &text));
    for (size_t i = 0; i < text->n_bytes && !b->failed; i++) {
        unsigned char c = (unsigned char)text->bytes[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            (c && strchr("_.-~", c)) || (c == '/' && !in_query);
        char hex[4] = "+";
        if (!plain && !(in_query && c == ' ')) snprintf(hex, sizeof hex, "%%%02X", c);
        if (plain)
            whit_builder_slice(b, text, i, i + 1);
        else
            whit_builder_bytes(b, hex, strlen(hex), text->n_spans && whit_text_is_user(text, i));
    }
    return whit_machine_spend(m, text->n_bytes / 16);
}

static whit_status url_encode(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    whit_builder b = whit_machine_build(m);
    whit_datum self = call->self;
    whit_list list;
    if (whit_datum_is_str(self) || !whit_datum_is_iterable(self)) {
        WHIT_TRY(quote_url(m, self, false, &b));
        return whit_machine_build_end(m, &b, result);
    }
    if (self.kind == WHIT_DATUM_DICT)
        self = (whit_datum){.kind = WHIT_DATUM_VIEW, .detail = WHIT_VIEW_ITEMS, .dict = self.dict};
    WHIT_TRY(whit_machine_items(m, self, &list));
    for (size_t i = 0; i < list.n; i++) {
        whit_list pair;
        WHIT_TRY(whit_machine_items(m, list.items[i], &pair));
        if (pair.n != 2) return whit_machine_raise_type(m, "urlencode wants pairs");
        if (i) whit_builder_str(&b, "&");
        WHIT_TRY(quote_url(m, pair.items[0], true, &b));
        whit_builder_str(&b, "=");
        WHIT_TRY(quote_url(m, pair.items[1], true, &b));
    }
    return whit_machine_build_end(m, &b, result);
}

/* Decodes the HTML entity at `at`, if it is a decimal number below 0xD800 or one of the common names. Returns its size
 * in bytes; 0 if there is no such entity. (MarkupSafe's unescape knows more names.) */
static size_t unescape(const whit_text *text, size_t at, uint32_t *point)
{
    static const struct {
        const char *name;
        uint32_t point;
    } entities[] = {
        {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&nbsp;", 0xA0},
    };
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++) {
        size_t n = strlen(entities[i].name);
        if (n > text->n_bytes - at || memcmp(text->bytes + at, entities[i].name, n)) continue;
        *point = entities[i].point;
        return n;
    }
    unsigned number;
    int n = 0;
    char digits[12] = {0};
    memcpy(digits, text->bytes + at, text->n_bytes - at < 11 ? text->n_bytes - at : 11);
    if (sscanf(digits, "&#%7u;%n", &number, &n) == 1 && n && number && number < 0xD800) {
        *point = number;
        return (size_t)n;
    }
    return 0;
}

static whit_status strip_tags(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *text;
    whit_builder b = whit_machine_build(m);
    WHIT_TRY(self_text(m, call, &text));
    WHIT_TRY(whit_machine_spend(m, text->n_bytes / 16));
    for (size_t at = 0; at < text->n_bytes && !b.failed;) {
        bool is_comment = text->n_bytes - at >= 4 && memcmp(text->bytes + at, "<!--", 4) == 0;
        const char *end = NULL;
        if (is_comment)
            end = memmem(text->bytes + at, text->n_bytes - at, "-->", 3);
        else if (text->bytes[at] == '<')
            end = memchr(text->bytes + at, '>', text->n_bytes - at);
        if (end) {
            at = (size_t)(end - text->bytes) + (is_comment ? 3 : 1);
            continue;
        }
        whit_builder_slice(&b, text, at, at + 1);
        at++;
    }
    whit_datum stripped, words;
    WHIT_TRY(whit_machine_build_end(m, &b, &stripped));
    WHIT_TRY(whit_string_split(m, stripped.text, NULL, -1, false, &words));
    static const whit_text space = {.bytes = " ", .n_bytes = 1, .n_points = 1};
    WHIT_TRY(whit_string_join(m, &space, words.list, false, &stripped));
    whit_builder plain = whit_machine_build(m);
    for (size_t at = 0; at < stripped.text->n_bytes && !plain.failed;) {
        uint32_t point;
        size_t n = stripped.text->bytes[at] == '&' ? unescape(stripped.text, at, &point) : 0;
        if (n)
            whit_builder_point(&plain, point, stripped.text->n_spans && whit_text_is_user(stripped.text, at));
        else
            whit_builder_slice(&plain, stripped.text, at, at + 1);
        at += n ? n : 1;
    }
    return whit_machine_build_end(m, &plain, result);
}

static whit_status format(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *text;
    const whit_arguments *a = call->arguments;
    whit_datum values;
    WHIT_TRY(self_text(m, call, &text));
    if (a->n_positional && a->n_named)
        return whit_machine_raise_type(m, "format cannot take positional and keyword arguments at once");
    if (!a->n_named) {
        WHIT_TRY(whit_machine_new_tuple(m, a->positional, a->n_positional, &values));
        return whit_print_percent(m, text, values, result);
    }
    if (!whit_datum_dict(m->pool, &values)) return whit_machine_raise_memory(m);
    for (size_t i = 0; i < a->n_named; i++)
        if (!whit_dict_set(m->pool, values.dict, whit_datum_text(a->named[i].name), a->named[i].value))
            return whit_machine_raise_memory(m);
    return whit_print_percent(m, text, values, result);
}

static whit_status join_items(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    static const whit_text nothing = {.bytes = ""};
    const whit_text *separator = &nothing;
    whit_list list;
    if (call->given[0]) WHIT_TRY(whit_machine_str(m, call->values[0], &separator));
    WHIT_TRY(whit_machine_items(m, call->self, &list));
    if (whit_builtin_is_given(call, 1)) {
        whit_datum selected;
        WHIT_TRY(whit_machine_new_list(m, list.items, list.n, &selected));
        for (size_t i = 0; i < list.n; i++)
            WHIT_TRY(whit_machine_select_attribute(m, list.items[i], call->values[1], NULL, &selected.list->items[i]));
        list = *selected.list;
    }
    whit_text plain = *separator;
    plain.markup = false;
    return whit_string_join(m, &plain, &list, false, result);
}

const whit_builtin whit_text_filters[] = {
    {"capitalize", "", change_case, WHIT_CAPITALIZE},
    {"center", "width?", center, 0},
    {"e", "", escape, 0},
    {"escape", "", escape, 0},
    {"forceescape", "", force_escape, 0},
    {"format", "*", format, 0},
    {"indent", "width? first? blank?", indent, 0},
    {"join", "d? attribute?", join_items, 0},
    {"lower", "", change_case, WHIT_LOWER},
    {"replace", "old new count?", replace_text, 0},
    {"safe", "", safe, 0},
    {"string", "", string, 0},
    {"striptags", "", strip_tags, 0},
    {"title", "", change_case, WHIT_TITLE_FILTER},
    {"trim", "chars?", trim, 0},
    {"truncate", "length? killwords? end? leeway?", truncate_text, 0},
    {"upper", "", change_case, WHIT_UPPER},
    {"urlencode", "", url_encode, 0},
    {"wordcount", "", word_count, 0},
    {NULL, NULL, NULL, 0},
};
