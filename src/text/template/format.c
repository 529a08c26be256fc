/* SPDX-License-Identifier: MIT
 * Implements Python's two ways of formatting values. Both use the same description of a field. */
#include "template/format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "template/unicode.h"

enum { MAX_WIDTH = 1 << 20, MAX_NESTING = 2 };

typedef struct field {
    uint32_t fill;
    char align; /* '<', '>', '^' or '='; 0: not given */
    char sign;  /* '+', '-' or ' '; 0: not given */
    bool alternate, zero;
    int64_t width, precision; /* -1: not given */
    char grouping, type;
} field;

/* ---- writing a field ------------------------------------------------------------------------- */

/* Writes a number: its prefix (sign and base, such as "-0x"), then its digits. The field's alignment decides where
 * padding is added; '=' adds it between prefix and digits. */
static void put_number(whit_builder *b, const field *f, const char *prefix, const char *digits)
{
    size_t n = strlen(prefix) + strlen(digits), width = f->width > 0 ? (size_t)f->width : 0;
    size_t room = width > n ? width - n : 0;
    char align = '>';
    if (f->align)
        align = f->align;
    else if (f->zero)
        align = '=';
    uint32_t fill = f->zero && !f->align ? '0' : f->fill;
    size_t left = 0;
    if (align == '>')
        left = room;
    else if (align == '^')
        left = room / 2;
    whit_builder_repeat(b, fill, left, false);
    whit_builder_str(b, prefix);
    if (align == '=') whit_builder_repeat(b, fill, room, false);
    whit_builder_str(b, digits);
    if (align != '=') whit_builder_repeat(b, fill, room - left, false);
}

static void put_text(whit_builder *b, const field *f, const whit_text *text)
{
    size_t n = text->n_points, end = text->n_bytes;
    if (f->precision >= 0 && (uint64_t)f->precision < n) {
        n = (size_t)f->precision;
        end = whit_text_offset(text, n);
    }
    size_t width = f->width > 0 ? (size_t)f->width : 0;
    size_t room = width > n ? width - n : 0;
    size_t left = 0;
    if (f->align == '>')
        left = room;
    else if (f->align == '^')
        left = room / 2;
    whit_builder_repeat(b, f->fill, left, false);
    whit_builder_slice(b, text, 0, end);
    whit_builder_repeat(b, f->fill, room - left, false);
}

/* Inserts a separator between groups of three digits of the integer part. */
static void group_digits(char *digits, char separator)
{
    char out[WHIT_REAL_BYTES * 2];
    size_t whole = strspn(digits, "0123456789"), n = 0;
    for (size_t i = 0; i < whole; i++) {
        if (i && (whole - i) % 3 == 0) out[n++] = separator;
        out[n++] = digits[i];
    }
    snprintf(out + n, sizeof out - n, "%s", digits + whole);
    memcpy(digits, out, strlen(out) + 1);
}

static const char *sign_of(const field *f, bool negative)
{
    if (negative) return "-";
    if (f->sign == '+') return "+";
    if (f->sign == ' ') return " ";
    return "";
}

static void put_integer(whit_builder *b, const field *f, int64_t integer)
{
    uint64_t rest = integer < 0 ? 0 - (uint64_t)integer : (uint64_t)integer;
    unsigned base = 10;
    if (f->type == 'x' || f->type == 'X')
        base = 16;
    else if (f->type == 'o')
        base = 8;
    else if (f->type == 'b')
        base = 2;
    const char *symbols = f->type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    char reversed[72], digits[WHIT_REAL_BYTES * 2], prefix[4];
    size_t n = 0, i = 0;
    do reversed[n++] = symbols[rest % base];
    while (rest /= base);
    while (f->precision > (int64_t)n && n < sizeof reversed - 1) reversed[n++] = '0';
    while (n) digits[i++] = reversed[--n];
    digits[i] = 0;
    if (f->grouping) group_digits(digits, f->grouping);
    snprintf(prefix, sizeof prefix, "%s", sign_of(f, integer < 0));
    if (f->alternate && base != 10) {
        strcat(prefix, "0");
        strncat(prefix, &f->type, 1);
    }
    put_number(b, f, prefix, digits);
}

static void put_real(whit_builder *b, const field *f, double real)
{
    char digits[WHIT_REAL_BYTES * 2];
    char type = f->type == '%' ? 'f' : f->type;
    int precision = 6;
    if (f->precision >= 0) precision = (int)(f->precision < 60 ? f->precision : 60);
    if (f->type == '%') real *= 100;
    bool negative = signbit(real) && !isnan(real);
    if (!type && f->precision < 0) {
        whit_real_write(fabs(real), digits);
    } else {
        whit_real_print(fabs(real), type ? type : 'g', precision, f->alternate, digits);
        if (!type && isfinite(real) && !strpbrk(digits, ".e")) strcat(digits, ".0");
    }
    if (f->grouping) group_digits(digits, f->grouping);
    if (f->type == '%') strcat(digits, "%");
    put_number(b, f, sign_of(f, negative), digits);
}

static whit_status ascii_repr(whit_machine *m, whit_datum value, const whit_text **text)
{
    whit_builder b = whit_machine_build(m), plain = whit_machine_build(m);
    whit_datum result;
    WHIT_TRY(whit_machine_repr(m, &b, value));
    WHIT_TRY(whit_machine_build_end(m, &b, &result));
    for (size_t at = 0, next; at < result.text->n_bytes; at = next) {
        uint32_t point = whit_text_point(result.text, at, &next);
        if (point < 0x80)
            whit_builder_slice(&plain, result.text, at, next);
        else {
            const char *escape = "\\U%08x";
            if (point < 0x100)
                escape = "\\x%02x";
            else if (point < 0x10000)
                escape = "\\u%04x";
            whit_builder_format(&plain, escape, point);
        }
    }
    WHIT_TRY(whit_machine_build_end(m, &plain, &result));
    *text = result.text;
    return WHIT_OK;
}

/* Converts a value to text: by str() ('s'), repr() ('r') or ascii() ('a'). */
static whit_status text_of(whit_machine *m, whit_datum value, char conversion, const whit_text **text)
{
    if (conversion == 'a') return ascii_repr(m, value, text);
    if (conversion != 'r') return whit_machine_str(m, value, text);
    whit_builder b = whit_machine_build(m);
    whit_datum result;
    WHIT_TRY(whit_machine_repr(m, &b, value));
    WHIT_TRY(whit_machine_build_end(m, &b, &result));
    *text = result.text;
    return WHIT_OK;
}

static whit_status put_character(whit_machine *m, whit_builder *b, const field *f, whit_datum value)
{
    int64_t point;
    if (whit_datum_is_str(value) && value.text->n_points == 1) {
        put_text(b, f, value.text);
        return WHIT_OK;
    }
    if (!whit_datum_as_int(value, &point)) return whit_machine_raise_type(m, "%%c requires int or char");
    if (point < 0 || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000))
        return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "%%c argument is not a character");
    whit_builder one = whit_machine_build(m);
    whit_datum text;
    whit_builder_point(&one, (uint32_t)point, false);
    WHIT_TRY(whit_machine_build_end(m, &one, &text));
    put_text(b, f, text.text);
    return WHIT_OK;
}

/* ---- the operator % -------------------------------------------------------------------------- */

typedef struct percent {
    const whit_text *format;
    size_t at;
    const whit_datum *items; /* positional arguments */
    size_t n_items, next;
    whit_datum mapping;
} percent;

static whit_status next_argument(whit_machine *m, percent *p, whit_datum *value)
{
    if (p->next >= p->n_items) return whit_machine_raise_type(m, "not enough arguments for format string");
    *value = p->items[p->next++];
    return WHIT_OK;
}

static whit_status percent_number(whit_machine *m, percent *p, int64_t *number)
{
    whit_datum value;
    if (p->at < p->format->n_bytes && p->format->bytes[p->at] == '*') {
        p->at++;
        WHIT_TRY(next_argument(m, p, &value));
        if (!whit_datum_as_int(value, number)) return whit_machine_raise_type(m, "* wants int");
    } else {
        *number = 0;
        while (p->at < p->format->n_bytes && p->format->bytes[p->at] >= '0' && p->format->bytes[p->at] <= '9' &&
               *number < MAX_WIDTH)
            *number = *number * 10 + (p->format->bytes[p->at++] - '0');
    }
    return *number >= MAX_WIDTH ? whit_machine_raise(m, WHIT_ERROR_LIMIT, "width is too large") : WHIT_OK;
}

/* Reads "(key)" at p->at, the '(', and sets *value to the mapping's value of that key. */
static whit_status percent_key(whit_machine *m, percent *p, whit_datum *value)
{
    size_t begin = ++p->at, open = 1;
    for (; p->at < p->format->n_bytes; p->at++) {
        open += p->format->bytes[p->at] == '(';
        open -= p->format->bytes[p->at] == ')';
        if (!open) break;
    }
    if (open) return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "incomplete format key");
    if (p->mapping.kind != WHIT_DATUM_DICT) return whit_machine_raise_type(m, "format requires a mapping");
    whit_datum key;
    WHIT_TRY(whit_machine_slice_text(m, p->format, begin, p->at++, &key));
    const whit_datum *member = whit_dict_get(p->mapping.dict, key);
    if (!member) return whit_machine_raise_type(m, "format key is not in the mapping");
    *value = *member;
    return WHIT_OK;
}

static whit_status put_percent(whit_machine *m, whit_builder *b, const field *f, whit_datum value)
{
    const whit_text *text;
    int64_t integer;
    double real;
    if (strchr("diuoxX", f->type)) {
        field g = *f;
        g.type = strchr("diu", f->type) ? 'd' : f->type;
        if (value.kind == WHIT_DATUM_FLOAT && g.type == 'd' && fabs(value.real) < 0x1p63)
            integer = (int64_t)value.real;
        else if (!whit_datum_as_int(value, &integer))
            return whit_machine_raise_type(m, "%%%c format: a number is required, not %s", f->type,
                                           whit_datum_type(value));
        put_integer(b, &g, integer);
        return WHIT_OK;
    }
    if (strchr("eEfFgG", f->type)) {
        if (!whit_datum_as_real(value, &real))
            return whit_machine_raise_type(m, "must be real number, not %s", whit_datum_type(value));
        put_real(b, f, real);
        return WHIT_OK;
    }
    if (f->type == 'c') return put_character(m, b, f, value);
    if (!strchr("sra", f->type)) return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "unsupported format character");
    if (b->markup && f->type == 's') WHIT_TRY(whit_machine_escape_html(m, value, &value));
    WHIT_TRY(text_of(m, value, f->type, &text));
    put_text(b, f, text);
    return WHIT_OK;
}

/* Formats one field of the format. p->at is after its '%'. */
static whit_status percent_field(whit_machine *m, whit_builder *b, percent *p)
{
    const whit_text *format = p->format;
    field f = {.fill = ' ', .align = '>', .width = -1, .precision = -1};
    whit_datum value = whit_datum_undefined(NULL);
    bool has_value = false, minus = false;
    size_t begin = p->at;
    if (p->at < format->n_bytes && format->bytes[p->at] == '(') {
        WHIT_TRY(percent_key(m, p, &value));
        has_value = true;
    }
    for (; p->at < format->n_bytes && format->bytes[p->at] && strchr("#0- +", format->bytes[p->at]); p->at++) {
        char c = format->bytes[p->at];
        minus |= c == '-';
        f.zero |= c == '0';
        f.alternate |= c == '#';
        if (c == '+' || (c == ' ' && !f.sign)) f.sign = c;
    }
    WHIT_TRY(percent_number(m, p, &f.width));
    if (f.width < 0) {
        minus = true;
        f.width = -f.width;
    }
    if (p->at < format->n_bytes && format->bytes[p->at] == '.') {
        p->at++;
        WHIT_TRY(percent_number(m, p, &f.precision));
        if (f.precision < 0) f.precision = 0;
    }
    while (p->at < format->n_bytes && format->bytes[p->at] && strchr("hlL", format->bytes[p->at])) p->at++;
    if (p->at >= format->n_bytes) return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "incomplete format");
    f.type = format->bytes[p->at++];
    if (minus) {
        f.align = '<';
        f.zero = false;
    }
    if (f.zero && f.type && strchr("diuoxXeEfFgG", f.type)) f.align = 0;
    if (f.type == '%' && p->at - begin == 1) {
        whit_builder_str(b, "%");
        return WHIT_OK;
    }
    if (!f.type) return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "unsupported format character");
    if (!has_value) WHIT_TRY(next_argument(m, p, &value));
    return put_percent(m, b, &f, value);
}

whit_status whit_print_percent(whit_machine *m, const whit_text *format, whit_datum arguments, whit_datum *result)
{
    bool is_tuple = arguments.kind == WHIT_DATUM_TUPLE;
    percent p = {.format = format,
                 .mapping = arguments,
                 .items = is_tuple ? arguments.list->items : &arguments,
                 .n_items = is_tuple ? arguments.list->n : 1};
    whit_builder b = whit_machine_build(m);
    b.markup = format->markup;
    while (p.at < format->n_bytes) {
        const char *sign = memchr(format->bytes + p.at, '%', format->n_bytes - p.at);
        size_t end = sign ? (size_t)(sign - format->bytes) : format->n_bytes;
        whit_builder_slice(&b, format, p.at, end);
        p.at = end + 1;
        if (!sign) break;
        WHIT_TRY(whit_machine_spend(m, 1));
        WHIT_TRY(percent_field(m, &b, &p));
    }
    bool may_be_mapping = arguments.kind == WHIT_DATUM_DICT || arguments.kind == WHIT_DATUM_LIST ||
        arguments.kind == WHIT_DATUM_UNDEFINED;
    if (p.next < p.n_items && !may_be_mapping)
        return whit_machine_raise_type(m, "not all arguments converted during string formatting");
    return whit_machine_build_end(m, &b, result);
}

/* ---- str.format ------------------------------------------------------------------------------ */

typedef struct braces {
    const whit_arguments *arguments;
    int64_t next; /* number of the next "{}"; -1 once the format has used explicit numbers */
} braces;

static bool read_number(const whit_text *s, size_t *at, int64_t *number)
{
    size_t begin = *at;
    *number = 0;
    while (*at < s->n_bytes && s->bytes[*at] >= '0' && s->bytes[*at] <= '9' && *number < MAX_WIDTH)
        *number = *number * 10 + (s->bytes[(*at)++] - '0');
    return *at > begin;
}

static bool is_align(uint32_t point)
{
    return point == '<' || point == '>' || point == '^' || point == '=';
}

/* Parses a format specification: [[fill]align][sign][#][0][width][grouping][.precision][type] */
static whit_status read_spec(whit_machine *m, const whit_text *s, field *f)
{
    size_t at = 0, next;
    *f = (field){.fill = ' ', .width = -1, .precision = -1};
    if (s->n_bytes) {
        uint32_t first = whit_text_point(s, 0, &next);
        if (next < s->n_bytes && is_align((unsigned char)s->bytes[next])) {
            f->fill = first;
            f->align = s->bytes[next];
            at = next + 1;
        } else if (is_align(first)) {
            f->align = s->bytes[at++];
        }
    }
    if (at < s->n_bytes && strchr("+- ", s->bytes[at]) && s->bytes[at]) f->sign = s->bytes[at++];
    if (at < s->n_bytes && s->bytes[at] == '#') f->alternate = at++ < s->n_bytes;
    if (at < s->n_bytes && s->bytes[at] == '0') f->zero = at++ < s->n_bytes;
    int64_t number;
    if (read_number(s, &at, &number)) f->width = number;
    if (at < s->n_bytes && (s->bytes[at] == ',' || s->bytes[at] == '_')) f->grouping = s->bytes[at++];
    if (at < s->n_bytes && s->bytes[at] == '.') {
        at++;
        if (!read_number(s, &at, &f->precision))
            return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "format specifier missing precision");
    }
    if (at < s->n_bytes) f->type = s->bytes[at++];
    if (at < s->n_bytes || f->width >= MAX_WIDTH || f->precision >= MAX_WIDTH)
        return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "invalid format specifier");
    return WHIT_OK;
}

static whit_status put_value(whit_machine *m, whit_builder *b, whit_datum value, const whit_text *spec)
{
    const whit_text *text;
    field f;
    int64_t integer;
    double real;
    if (spec->n_bytes == 0) {
        WHIT_TRY(whit_machine_str(m, value, &text));
        whit_builder_text(b, text);
        return WHIT_OK;
    }
    WHIT_TRY(read_spec(m, spec, &f));
    if (whit_datum_is_str(value)) {
        if ((f.type && f.type != 's') || f.sign || f.grouping || f.align == '=')
            return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "format specifier does not fit a str");
        if (f.zero && !f.align) f.fill = '0';
        put_text(b, &f, value.text);
        return WHIT_OK;
    }
    bool is_integer = whit_datum_as_int(value, &integer);
    if (is_integer && (!f.type || strchr("dboxXn", f.type)) && f.precision < 0) {
        put_integer(b, &f, integer);
        return WHIT_OK;
    }
    if (is_integer && f.type == 'c') return put_character(m, b, &f, value);
    if (whit_datum_as_real(value, &real) && (!f.type || strchr("eEfFgGn%", f.type)) && !(is_integer && !f.type)) {
        if (f.type == 'n') f.type = 'g';
        put_real(b, &f, real);
        return WHIT_OK;
    }
    return whit_machine_raise_type(m, "format specifier does not fit %s", whit_datum_type(value));
}

/* Finds the argument that a field refers to. Its name, or its number, or nothing, is at the beginning of `name`; *at
 * becomes the end of it. */
static whit_status braces_argument(whit_machine *m, braces *p, const whit_text *name, size_t *at, whit_datum *value)
{
    size_t begin = *at, digits = 0;
    int64_t index = 0;
    while (*at < name->n_bytes && name->bytes[*at] != '.' && name->bytes[*at] != '[') ++*at;
    bool is_number = read_number(name, &digits, &index) && digits == *at;
    if (*at == begin || is_number) {
        if (*at == begin && p->next >= 0)
            index = p->next++;
        else if (*at > begin && p->next <= 0)
            p->next = -1;
        else
            return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "cannot mix automatic and manual field numbers");
        if ((uint64_t)index >= p->arguments->n_positional)
            return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "replacement index %lld out of range", (long long)index);
        *value = p->arguments->positional[index];
        return WHIT_OK;
    }
    for (size_t i = 0; i < p->arguments->n_named; i++) {
        const whit_text *known = p->arguments->named[i].name;
        if (known->n_bytes != *at - begin || memcmp(known->bytes, name->bytes + begin, known->n_bytes)) continue;
        *value = p->arguments->named[i].value;
        return WHIT_OK;
    }
    return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "no argument of this name for str.format");
}

/* Computes the value of a field name such as "name.attribute[key]". */
static whit_status braces_value(whit_machine *m, braces *p, const whit_text *name, whit_datum *value)
{
    size_t at = 0;
    WHIT_TRY(braces_argument(m, p, name, &at, value));
    while (at < name->n_bytes) {
        bool is_item = name->bytes[at] == '[';
        size_t begin = ++at;
        while (at < name->n_bytes &&
               (is_item ? name->bytes[at] != ']' : name->bytes[at] != '.' && name->bytes[at] != '['))
            at++;
        if (at == begin || (is_item && at == name->n_bytes))
            return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "malformed field name");
        whit_datum key;
        WHIT_TRY(whit_machine_slice_text(m, name, begin, at, &key));
        at += is_item;
        if (!is_item) {
            WHIT_TRY(whit_machine_attribute(m, *value, key.text, value));
            continue;
        }
        int64_t index;
        size_t digits = 0;
        if (read_number(key.text, &digits, &index) && digits == key.text->n_bytes) key = whit_datum_int(index);
        WHIT_TRY(whit_machine_item(m, *value, key, value));
    }
    return WHIT_OK;
}

static whit_status format_braces(whit_machine *m, braces *p, const whit_text *format, int nesting, whit_builder *b);

/* Formats one field. format[begin, end) is the text between its braces. */
static whit_status braces_field(whit_machine *m, braces *p, const whit_text *format, size_t begin, size_t end,
                                int nesting, whit_builder *b)
{
    size_t name_end = begin, open = 0;
    while (name_end < end && (open || (format->bytes[name_end] != '!' && format->bytes[name_end] != ':'))) {
        open += format->bytes[name_end] == '[';
        open -= open && format->bytes[name_end] == ']';
        name_end++;
    }
    char conversion = 0;
    size_t at = name_end;
    if (at < end && format->bytes[at] == '!') {
        conversion = at + 1 < end ? format->bytes[at + 1] : 0;
        at += 2;
        if (!conversion || !strchr("sra", conversion) || (at < end && format->bytes[at] != ':'))
            return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "unknown conversion in a format string");
    }
    whit_datum name, spec, value;
    WHIT_TRY(whit_machine_slice_text(m, format, begin, name_end, &name));
    WHIT_TRY(braces_value(m, p, name.text, &value));
    WHIT_TRY(whit_machine_slice_text(m, format, at < end ? at + 1 : end, end, &spec));
    if (memchr(spec.text->bytes, '{', spec.text->n_bytes)) {
        if (nesting >= MAX_NESTING) return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "format fields nest too deeply");
        whit_builder inner = whit_machine_build(m);
        WHIT_TRY(format_braces(m, p, spec.text, nesting + 1, &inner));
        WHIT_TRY(whit_machine_build_end(m, &inner, &spec));
    }
    if (conversion) {
        const whit_text *text;
        WHIT_TRY(text_of(m, value, conversion, &text));
        value = whit_datum_text(text);
    }
    if (b->markup) WHIT_TRY(whit_machine_escape_html(m, value, &value));
    return put_value(m, b, value, spec.text);
}

static whit_status format_braces(whit_machine *m, braces *p, const whit_text *format, int nesting, whit_builder *b)
{
    for (size_t at = 0; at < format->n_bytes;) {
        char c = format->bytes[at];
        if (c != '{' && c != '}') {
            size_t begin = at;
            while (at < format->n_bytes && format->bytes[at] != '{' && format->bytes[at] != '}') at++;
            whit_builder_slice(b, format, begin, at);
            continue;
        }
        if (at + 1 < format->n_bytes && format->bytes[at + 1] == c) {
            whit_builder_slice(b, format, at, at + 1);
            at += 2;
            continue;
        }
        if (c == '}') return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "single '}' encountered in format string");
        size_t begin = ++at, open = 1;
        for (; at < format->n_bytes; at++) {
            open += format->bytes[at] == '{';
            open -= format->bytes[at] == '}';
            if (!open) break;
        }
        if (open) return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "expected '}' before end of string");
        WHIT_TRY(whit_machine_spend(m, 1));
        WHIT_TRY(braces_field(m, p, format, begin, at++, nesting, b));
    }
    return WHIT_OK;
}

whit_status whit_print_braces(whit_machine *m, const whit_text *format, const whit_arguments *arguments,
                              whit_datum *result)
{
    braces p = {.arguments = arguments};
    whit_builder b = whit_machine_build(m);
    b.markup = format->markup;
    WHIT_TRY(format_braces(m, &p, format, 1, &b));
    return whit_machine_build_end(m, &b, result);
}
