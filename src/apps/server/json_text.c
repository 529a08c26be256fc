/* SPDX-License-Identifier: MIT */
#include "base/phrase.h"
#include "server/json_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/mem.h"
#include "base/utf8.h"

/* ---- integers beyond 63 bits --------------------------------------------------------------------- */

struct wide {
    double value;                          /* the double that stands for the integer in parsed JSON */
    char digits[WHIT_WIDE_DIGITS_MAX + 2]; /* the integer as it was written, with its sign */
};

static _Thread_local struct wide wides[WHIT_WIDE_MAX];
static _Thread_local size_t n_wides;

void whit_json_forget(void)
{
    n_wides = 0;
}

static const struct wide *find_value(double value)
{
    for (size_t i = 0; i < n_wides; i++)
        if (wides[i].value == value) return &wides[i];
    return NULL;
}

/* Returns a double that stands for a wide integer, and remembers its digits: the nearest double or, if that stands for
 * another integer already, a neighbour towards 0. Returns NAN if the table is full or the integer has too many
 * digits. */
static double keep_digits(const char *digits, size_t n)
{
    struct wide *next = &wides[n_wides];
    if (n > WHIT_WIDE_DIGITS_MAX + 1 || n_wides == WHIT_WIDE_MAX) return NAN;
    memcpy(next->digits, digits, n);
    next->digits[n] = 0;
    double value = strtod(next->digits, NULL);
    for (const struct wide *other; (other = find_value(value)); value = nextafter(value, 0))
        if (!strcmp(other->digits, next->digits)) return value;
    next->value = value;
    n_wides++;
    return value;
}

/* Returns whether an integer is outside the range of int64_t. */
static bool is_wide(const char *digits, size_t n, bool is_negative)
{
    const char *most = is_negative ? "9223372036854775808" : "9223372036854775807";
    return n > 19 || (n == 19 && memcmp(digits, most, 19) > 0);
}

/* ---- numbers in a text --------------------------------------------------------------------------- */

/* A walk through a JSON text in parts. A part is a number outside strings, an escape sequence's first two bytes in a
 * string, or any other single byte. */
struct walk {
    const char *text;
    size_t n, at;
    bool in_string;
};

/* Moves to the next part; returns whether the part just passed is a number. */
static bool next_part(struct walk *w)
{
    const char *text = w->text;
    size_t at = w->at;
    if (!w->in_string && (text[at] == '-' || (text[at] >= '0' && text[at] <= '9'))) {
        for (at++; at < w->n && (memchr("+-.eE", text[at], 5) || (text[at] >= '0' && text[at] <= '9')); at++) {
        }
        w->at = at;
        return true;
    }
    if (text[at] == '"') w->in_string = !w->in_string;
    w->at += w->in_string && text[at] == '\\' && at + 1 < w->n ? 2 : 1;
    return false;
}

static void widen_number(const char *text, size_t n, whit_buf *out)
{
    bool is_negative = text[0] == '-';
    size_t n_digits = 0, begin = is_negative;
    while (begin + n_digits < n && text[begin + n_digits] >= '0' && text[begin + n_digits] <= '9') n_digits++;
    if (begin + n_digits < n || !is_wide(text + begin, n_digits, is_negative)) {
        whit_buf_append(out, text, n);
        return;
    }
    double value = keep_digits(text, n);
    if (!isnan(value)) {
        whit_buf_printf(out, "%.17e", value);
        return;
    }
    whit_buf_append(out, text, n);
    whit_buf_append_str(out, ".0");
}

/* Appends the text; wide integers are replaced by floats that jansson can read. */
static void widen_text(const char *text, size_t n, whit_buf *out)
{
    for (struct walk w = {.text = text, .n = n}; w.at < n;) {
        size_t begin = w.at;
        if (next_part(&w))
            widen_number(text + begin, w.at - begin, out);
        else
            whit_buf_append(out, text + begin, w.at - begin);
    }
}

/* Appends the text; floats that stand for wide integers are replaced by these integers, the reverse of widen_text. */
static void restore_text(const char *text, size_t n, whit_buf *out)
{
    for (struct walk w = {.text = text, .n = n}; w.at < n;) {
        size_t begin = w.at;
        bool is_real = next_part(&w) && memchr(text + begin, 'e', w.at - begin);
        const struct wide *found = is_real ? find_value(strtod(text + begin, NULL)) : NULL;
        if (found)
            whit_buf_append_str(out, found->digits);
        else
            whit_buf_append(out, text + begin, w.at - begin);
    }
}

/* ---- reading and writing ------------------------------------------------------------------------- */

json_t *whit_json_read(const char *text, size_t n, json_error_t *reason)
{
    whit_buf wide = {0};
    json_t *value = json_loadb(whit_or_empty(text), n, JSON_ALLOW_NUL, reason);
    if (value || json_error_code(reason) != json_error_numeric_overflow) return value;
    widen_text(text, n, &wide);
    if (!wide.failed) value = json_loadb(whit_chars(&wide), wide.size_bytes, JSON_ALLOW_NUL, reason);
    whit_buf_free(&wide);
    return value;
}

void whit_json_keep_lines(whit_buf *lines)
{
    const uint8_t *text = (const uint8_t *)whit_chars(lines);
    const size_t n = lines->size_bytes;
    whit_buf out = {0};
    size_t from = 0;
    for (size_t at = 0, length; at < n; at += length) {
        const uint32_t code = whit_utf8_decode(text + at, n - at, &length);
        if (code != 0x85 && code != 0x2028 && code != 0x2029) continue;
        whit_buf_append(&out, text + from, at - from);
        whit_buf_printf(&out, "\\u%04x", code);
        from = at + length;
    }
    if (!from) return;
    whit_buf_append(&out, text + from, n - from);
    out.failed |= lines->failed;
    whit_buf_free(lines);
    *lines = out;
}

char *whit_json_write(const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!text || !n_wides) return text;
    whit_buf out = {0};
    restore_text(text, strlen(text) + 1, &out); /* includes the zero byte at the end */
    free(text);
    if (!out.failed) return WHIT_ITEMS(char, &out);
    whit_buf_free(&out);
    return NULL;
}
