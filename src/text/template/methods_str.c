/* SPDX-License-Identifier: MIT
 * Implements the methods of str. */
#include "template/builtin.h"
#include "template/format.h"
#include "template/strings.h"
#include "template/unicode.h"

static whit_status change_case(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    return whit_string_change_case(m, call->self.text, (whit_casing)call->builtin->detail, result);
}

static whit_status strip(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *characters = NULL;
    if (whit_builtin_is_given(call, 0)) WHIT_TRY(whit_builtin_want_text(m, call, 0, &characters));
    return whit_string_strip(m, call->self.text, characters, call->builtin->detail, result);
}

static whit_status split_text(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *separator = NULL;
    int64_t limit;
    if (whit_builtin_is_given(call, 0)) WHIT_TRY(whit_builtin_want_text(m, call, 0, &separator));
    WHIT_TRY(whit_builtin_want_int(m, call, 1, -1, &limit));
    return whit_string_split(m, call->self.text, separator, limit, call->builtin->detail, result);
}

static whit_status split_lines(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    return whit_string_split_lines(m, call->self.text, whit_builtin_is_true(call, 0), result);
}

static whit_status partition(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *text = call->self.text, *separator;
    bool from_right = call->builtin->detail;
    WHIT_TRY(whit_builtin_want_text(m, call, 0, &separator));
    if (!separator->n_bytes) return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "empty separator");
    size_t n = text->n_bytes;
    size_t at = from_right ? whit_text_find_last(text, separator, 0, n) : whit_text_find(text, separator, 0, n);
    size_t end = at == SIZE_MAX ? 0 : at + separator->n_bytes;
    if (at == SIZE_MAX) at = end = from_right ? 0 : n;
    whit_datum parts[3];
    WHIT_TRY(whit_machine_slice_text(m, text, 0, at, &parts[0]));
    WHIT_TRY(whit_machine_slice_text(m, text, at, end, &parts[1]));
    WHIT_TRY(whit_machine_slice_text(m, text, end, n, &parts[2]));
    return whit_machine_new_tuple(m, parts, 3, result);
}

static whit_status join_items(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    whit_list list;
    WHIT_TRY(whit_machine_items(m, call->values[0], &list));
    return whit_string_join(m, call->self.text, &list, true, result);
}

static whit_status replace_text(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *from, *to;
    int64_t limit;
    WHIT_TRY(whit_builtin_want_text(m, call, 0, &from));
    WHIT_TRY(whit_builtin_want_text(m, call, 1, &to));
    WHIT_TRY(whit_builtin_want_int(m, call, 2, -1, &limit));
    if (call->self.text->markup) {
        whit_datum escaped;
        WHIT_TRY(whit_machine_escape_html(m, call->values[1], &escaped));
        to = escaped.text;
    }
    return whit_string_replace(m, call->self.text, from, to, limit, result);
}

/* Converts the optional arguments start and stop (parameters i and i + 1) to a range of bytes. *valid is false if start
 * is after stop or after the end of the text. */
static whit_status search_range(whit_machine *m, const whit_builtin_frame *call, size_t i, size_t *begin, size_t *end,
                                bool *valid)
{
    const whit_text *text = call->self.text;
    int64_t n = (int64_t)text->n_points, bounds[2] = {0, n};
    for (size_t k = 0; k < 2; k++) {
        if (whit_builtin_is_given(call, i + k)) WHIT_TRY(whit_builtin_want_int(m, call, i + k, bounds[k], &bounds[k]));
        if (bounds[k] < 0) bounds[k] = bounds[k] + n < 0 ? 0 : bounds[k] + n;
    }
    if (bounds[1] > n) bounds[1] = n;
    *valid = bounds[0] <= bounds[1];
    *begin = *valid ? whit_text_offset(text, (size_t)bounds[0]) : 0;
    *end = *valid ? whit_text_offset(text, (size_t)bounds[1]) : 0;
    return whit_machine_spend(m, 1 + text->n_bytes / 64);
}

enum { FROM_RIGHT = 1, MUST_FIND = 2 };

static whit_status find_text(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *needle;
    size_t begin, end, at = SIZE_MAX;
    bool valid;
    WHIT_TRY(whit_builtin_want_text(m, call, 0, &needle));
    WHIT_TRY(search_range(m, call, 1, &begin, &end, &valid));
    if (valid)
        at = call->builtin->detail & FROM_RIGHT ? whit_text_find_last(call->self.text, needle, begin, end)
                                                : whit_text_find(call->self.text, needle, begin, end);
    if (at == SIZE_MAX && (call->builtin->detail & MUST_FIND))
        return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "substring not found");
    *result = whit_datum_int(at == SIZE_MAX ? -1 : (int64_t)whit_text_index(call->self.text, at));
    return WHIT_OK;
}

static whit_status count(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *needle, *text = call->self.text;
    size_t begin, end;
    bool valid;
    int64_t n = 0;
    WHIT_TRY(whit_builtin_want_text(m, call, 0, &needle));
    WHIT_TRY(search_range(m, call, 1, &begin, &end, &valid));
    if (valid && !needle->n_bytes) n = (int64_t)(whit_text_index(text, end) - whit_text_index(text, begin)) + 1;
    while (valid && needle->n_bytes && (begin = whit_text_find(text, needle, begin, end)) != SIZE_MAX) {
        begin += needle->n_bytes;
        n++;
    }
    *result = whit_datum_int(n);
    return WHIT_OK;
}

static whit_status begins_or_ends(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *text = call->self.text;
    bool at_end = call->builtin->detail, valid, yes = false;
    size_t begin, end;
    whit_list options = {&call->values[0], 1};
    if (call->values[0].kind == WHIT_DATUM_TUPLE) options = *call->values[0].list;
    WHIT_TRY(search_range(m, call, 1, &begin, &end, &valid));
    for (size_t i = 0; i < options.n && !yes; i++) {
        if (!whit_datum_is_str(options.items[i]))
            return whit_machine_raise_type(m, "%s first arg must be str or a tuple of str, not %s", call->builtin->name,
                                           whit_datum_type(options.items[i]));
        const whit_text *part = options.items[i].text;
        yes = valid && part->n_bytes <= end - begin &&
            memcmp(text->bytes + (at_end ? end - part->n_bytes : begin), part->bytes, part->n_bytes) == 0;
    }
    *result = whit_datum_bool(yes);
    return WHIT_OK;
}

static whit_status remove_affix(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *text = call->self.text, *affix;
    bool at_end = call->builtin->detail;
    WHIT_TRY(whit_builtin_want_text(m, call, 0, &affix));
    size_t n = text->n_bytes, k = affix->n_bytes;
    if (k > n || memcmp(text->bytes + (at_end ? n - k : 0), affix->bytes, k)) k = 0;
    size_t begin = at_end ? 0 : k;
    return whit_machine_slice_text(m, text, begin, at_end ? n - k : n, result);
}

static whit_status pad(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    int64_t width;
    uint32_t fill = ' ';
    WHIT_TRY(whit_builtin_want_int(m, call, 0, 0, &width));
    if (call->given[1]) {
        const whit_text *text;
        size_t next;
        WHIT_TRY(whit_builtin_want_text(m, call, 1, &text));
        if (text->n_points != 1)
            return whit_machine_raise_type(m, "the fill character must be exactly one character long");
        fill = whit_text_point(text, 0, &next);
    }
    return whit_string_pad(m, call->self.text, width, fill, call->builtin->detail, result);
}

static whit_status zero_fill(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *text = call->self.text;
    int64_t width;
    WHIT_TRY(whit_builtin_want_int(m, call, 0, 0, &width));
    size_t sign = text->n_bytes && (text->bytes[0] == '-' || text->bytes[0] == '+');
    whit_builder b = whit_machine_build(m);
    b.markup = text->markup;
    whit_builder_slice(&b, text, 0, sign);
    if (width > (int64_t)text->n_points) whit_builder_repeat(&b, '0', (size_t)width - text->n_points, false);
    whit_builder_slice(&b, text, sign, text->n_bytes);
    return whit_machine_build_end(m, &b, result);
}

static whit_status encode_text(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *encoding;
    if (call->given[0]) {
        whit_datum lower;
        WHIT_TRY(whit_builtin_want_text(m, call, 0, &encoding));
        WHIT_TRY(whit_string_change_case(m, encoding, WHIT_LOWER, &lower));
        bool is_ascii = whit_text_is(lower.text, "ascii") && call->self.text->n_points == call->self.text->n_bytes;
        if (!is_ascii && !whit_text_is(lower.text, "utf-8") && !whit_text_is(lower.text, "utf8") &&
            !whit_text_is(lower.text, "utf_8"))
            return whit_machine_raise(m, WHIT_ERROR_UNSUPPORTED, "only UTF-8 is supported");
    }
    whit_builder b = whit_machine_build(m);
    b.is_bytes = true;
    whit_builder_text(&b, call->self.text);
    return whit_machine_build_end(m, &b, result);
}

static whit_status format(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    return whit_print_braces(m, call->self.text, call->arguments, result);
}

/* ---- classes of characters ------------------------------------------------------------------- */

typedef enum class_of { ALNUM, ALPHA, DECIMAL, DIGIT, NUMERIC, SPACE } class_of;

static bool in_class(class_of class, uint32_t point)
{
    switch (class) {
    case ALNUM: return whit_point_is_alpha(point) || whit_point_is_numeric(point);
    case ALPHA: return whit_point_is_alpha(point);
    case DECIMAL: return whit_point_is_decimal(point);
    case DIGIT: return whit_point_is_digit(point);
    case NUMERIC: return whit_point_is_numeric(point);
    case SPACE: return whit_point_is_space(point);
    }
    return false;
}

static whit_status is_class(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *text = call->self.text;
    class_of class = (class_of)call->builtin->detail;
    bool all = text->n_bytes > 0;
    WHIT_TRY(whit_machine_spend(m, text->n_bytes / 16));
    for (size_t at = 0; at < text->n_bytes && all;) all = in_class(class, whit_text_point(text, at, &at));
    *result = whit_datum_bool(all);
    return WHIT_OK;
}

/* Implements islower and isupper; call->builtin->detail says which. */
static whit_status is_cased(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *text = call->self.text;
    int want = call->builtin->detail; /* value of whit_casing */
    bool any = false, all = true;
    WHIT_TRY(whit_machine_spend(m, text->n_bytes / 16));
    for (size_t at = 0; at < text->n_bytes && all;) {
        uint32_t point = whit_text_point(text, at, &at);
        bool upper = whit_point_is_upper(point), lower = whit_point_is_lower(point), title = whit_point_is_title(point);
        all = !title && !(want == WHIT_UPPER ? lower : upper);
        any |= upper || lower || title;
    }
    *result = whit_datum_bool(any && all);
    return WHIT_OK;
}

const whit_builtin whit_str_methods[] = {
    {"capitalize", "", change_case, WHIT_CAPITALIZE},
    {"casefold", "", change_case, WHIT_FOLD},
    {"center", "/width fillchar?", pad, WHIT_SIDE_BOTH},
    {"count", "/sub start? end?", count, 0},
    {"encode", "encoding? errors?", encode_text, 0},
    {"endswith", "/suffix start? end?", begins_or_ends, true},
    {"find", "/sub start? end?", find_text, 0},
    {"format", "*", format, 0},
    {"index", "/sub start? end?", find_text, MUST_FIND},
    {"isalnum", "", is_class, ALNUM},
    {"isalpha", "", is_class, ALPHA},
    {"isdecimal", "", is_class, DECIMAL},
    {"isdigit", "", is_class, DIGIT},
    {"islower", "", is_cased, WHIT_LOWER},
    {"isnumeric", "", is_class, NUMERIC},
    {"isspace", "", is_class, SPACE},
    {"isupper", "", is_cased, WHIT_UPPER},
    {"join", "/iterable", join_items, 0},
    {"ljust", "/width fillchar?", pad, WHIT_SIDE_RIGHT},
    {"lower", "", change_case, WHIT_LOWER},
    {"lstrip", "/chars?", strip, WHIT_SIDE_LEFT},
    {"partition", "/sep", partition, false},
    {"removeprefix", "/prefix", remove_affix, false},
    {"removesuffix", "/suffix", remove_affix, true},
    {"replace", "/old new count?", replace_text, 0},
    {"rfind", "/sub start? end?", find_text, FROM_RIGHT},
    {"rindex", "/sub start? end?", find_text, FROM_RIGHT | MUST_FIND},
    {"rjust", "/width fillchar?", pad, WHIT_SIDE_LEFT},
    {"rpartition", "/sep", partition, true},
    {"rsplit", "sep? maxsplit?", split_text, true},
    {"rstrip", "/chars?", strip, WHIT_SIDE_RIGHT},
    {"split", "sep? maxsplit?", split_text, false},
    {"splitlines", "keepends?", split_lines, 0},
    {"startswith", "/prefix start? end?", begins_or_ends, false},
    {"strip", "/chars?", strip, WHIT_SIDE_BOTH},
    {"swapcase", "", change_case, WHIT_SWAP},
    {"title", "", change_case, WHIT_TITLE},
    {"upper", "", change_case, WHIT_UPPER},
    {"zfill", "/width", zero_fill, 0},
    {NULL, NULL, NULL, 0},
};
