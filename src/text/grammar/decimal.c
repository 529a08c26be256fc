/* SPDX-License-Identifier: MIT
 * Parses and compares decimals. */
#include "grammar/decimal.h"

#include <stdio.h>

enum { EXPONENT_MAX = 1000000000, DIGITS_MAX = 100000 };

bool whit_decimal_read(const char *text, size_t n_bytes, whit_decimal *out)
{
    size_t at = 0, n_digits = 0, n_whole = 0, leading = 0, last = 0;
    bool dot = false, any = false, low = false;
    int64_t exponent = 0;
    *out = (whit_decimal){.text = text};
    if (at < n_bytes && text[at] == '-') out->negative = true, at++;
    /* n_digits: number of digits from the first nonzero one on. last: the value of n_digits at the last nonzero
     * digit. */
    for (; at < n_bytes && ((text[at] >= '0' && text[at] <= '9') || (text[at] == '.' && !dot)); at++) {
        if (text[at] == '.') {
            dot = true;
            continue;
        }
        any = true;
        if (n_digits == 0 && text[at] == '0') {
            leading += dot;
            continue;
        }
        if (n_digits == 0) out->first = at;
        n_digits++;
        if (!dot) n_whole = n_digits;
        if (text[at] != '0') last = n_digits;
    }
    if (!any) return false;
    if (at < n_bytes && (text[at] | 32) == 'e') {
        at++;
        if (at < n_bytes && (text[at] == '+' || text[at] == '-')) low = text[at++] == '-';
        if (at == n_bytes) return false;
        for (; at < n_bytes && text[at] >= '0' && text[at] <= '9'; at++)
            if (exponent < EXPONENT_MAX) exponent = exponent * 10 + (text[at] - '0');
        if (exponent > EXPONENT_MAX) exponent = EXPONENT_MAX;
    }
    if (at != n_bytes) return false;
    out->n = last;
    if (last == 0) {
        out->negative = false;
        return true;
    }
    out->dot = n_whole && n_whole < last ? n_whole : last;
    int64_t shift = low ? -exponent : exponent;
    out->point = (n_whole ? (int64_t)n_whole : -(int64_t)leading) + shift;
    return true;
}

bool whit_decimal_of_node(const whit_json *json, uint32_t node, whit_decimal *out)
{
    size_t n;
    *out = (whit_decimal){0};
    if (whit_json_type_of(json, node) != WHIT_JSON_NUMBER) return false;
    const char *text = whit_json_raw(json, node, &n);
    return text && whit_decimal_read(text, n, out);
}

char whit_decimal_digit(const whit_decimal *decimal, size_t i)
{
    if (i >= decimal->n) return '0';
    return decimal->text[decimal->first + i + (i >= decimal->dot)];
}

int whit_decimal_compare_magnitudes(const whit_decimal *a, const whit_decimal *b)
{
    if (a->n == 0 || b->n == 0) return (a->n != 0) - (b->n != 0);
    if (a->point != b->point) return a->point < b->point ? -1 : 1;
    for (size_t i = 0; i < a->n || i < b->n; i++) {
        char x = whit_decimal_digit(a, i), y = whit_decimal_digit(b, i);
        if (x != y) return x < y ? -1 : 1;
    }
    return 0;
}

int whit_decimal_compare(const whit_decimal *a, const whit_decimal *b)
{
    if (a->negative != b->negative) return a->negative ? -1 : 1;
    int order = whit_decimal_compare_magnitudes(a, b);
    return a->negative ? -order : order;
}

bool whit_decimal_is_whole(const whit_decimal *decimal)
{
    return decimal->n == 0 || (decimal->point >= 0 && (uint64_t)decimal->point >= decimal->n);
}

/* Converts the digits to an integer. Returns false for more than 18 digits. */
static bool read_digits(const whit_decimal *decimal, uint64_t *value)
{
    *value = 0;
    if (decimal->n > 18) return false;
    for (size_t i = 0; i < decimal->n; i++) *value = *value * 10 + (uint64_t)(whit_decimal_digit(decimal, i) - '0');
    return true;
}

bool whit_decimal_is_multiple(const whit_decimal *a, const whit_decimal *b, bool *known)
{
    uint64_t step, rest = 0;
    *known = true;
    if (a->n == 0) return true;
    if (b->n == 0 || b->negative || !read_digits(b, &step)) return *known = false;
    /* a = A x 10^x and b = step x 10^y, with integers A and step that do not end in 0. */
    int64_t x = a->point - (int64_t)a->n, y = b->point - (int64_t)b->n;
    if (x - y > DIGITS_MAX || y - x > DIGITS_MAX || a->n > DIGITS_MAX) return *known = false;
    if (x < y) return false;                            /* A would have to end in 0 */
    for (size_t i = 0; i < a->n + (size_t)(x - y); i++) /* Step < 10^18, so this does not overflow. */
        rest = (rest * 10 + (uint64_t)(whit_decimal_digit(a, i) - '0')) % step;
    return rest == 0;
}

bool whit_decimal_step(const whit_decimal *decimal, uint32_t max, uint32_t *n, uint32_t *decimals)
{
    uint64_t value;
    int64_t zeros = decimal->point - (int64_t)decimal->n;
    if (decimal->n == 0 || decimal->negative || !read_digits(decimal, &value) || zeros < -16) return false;
    for (; zeros > 0 && value <= max; zeros--) value *= 10;
    if (value > max) return false;
    *n = (uint32_t)value;
    *decimals = (uint32_t)-zeros;
    return true;
}

static bool read_double(const char *text, size_t n, const whit_allocator *allocator, double *value)
{
    whit_json json;
    if (whit_json_parse("number", text, n, allocator, &json, NULL) != WHIT_OK) return false;
    bool ok = whit_json_f64(&json, WHIT_JSON_ROOT, value);
    whit_json_close(&json);
    return ok;
}

/* Appends a number. A fraction with more than 15 digits is written with 15 or 16 digits if that is the same double,
 * else unchanged. */
static bool append_number(const char *text, size_t n, whit_buf *out)
{
    whit_decimal decimal;
    double value, again;
    char shorter[40];
    bool known = n < 64 && whit_decimal_read(text, n, &decimal) && decimal.n > 15 && !whit_decimal_is_whole(&decimal) &&
        read_double(text, n, out->allocator, &value);
    for (int digits = 15; known && digits <= 16; digits++) {
        int length = snprintf(shorter, sizeof shorter, "%.*g", digits, value);
        for (int i = 0; i < length; i++) /* replace the decimal separator of the locale */
            if (!strchr("0123456789+-e", shorter[i])) shorter[i] = '.';
        if (read_double(shorter, (size_t)length, out->allocator, &again) && again == value)
            return whit_buf_append(out, shorter, (size_t)length);
    }
    return whit_buf_append(out, text, n);
}

bool whit_decimal_shorten(const char *text, size_t n_bytes, whit_buf *out)
{
    size_t from = 0;
    for (size_t i = 0; i < n_bytes;) {
        if (text[i] == '"') {
            for (i++; i < n_bytes && text[i] != '"'; i++)
                if (text[i] == '\\') i++;
            i++;
            continue;
        }
        size_t end = i;
        while (end < n_bytes && ((text[end] >= '0' && text[end] <= '9') || strchr("+-.eE", text[end])) && text[end])
            end++;
        if (end - i > 16) {
            if (!whit_buf_append(out, text + from, i - from) || !append_number(text + i, end - i, out)) return false;
            from = end;
        }
        i = end > i ? end : i + 1;
    }
    return from >= n_bytes || whit_buf_append(out, text + from, n_bytes - from);
}
