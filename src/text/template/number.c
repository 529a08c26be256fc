/* SPDX-License-Identifier: MIT */
#include "template/number.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "template/unicode.h"

enum { MAX_DIGITS = 1000 };

/* Replaces the locale's decimal separator, which printf writes, by a point. */
static void mend_point(char *text)
{
    for (char *c = text; *c; c++)
        if (!strchr("0123456789+-eEinfaINFA", *c)) *c = '.';
}

void whit_real_print(double real, char conversion, int precision, bool alternate, char text[WHIT_REAL_BYTES])
{
    if (precision > 60) precision = 60;
    char format[] = {'%', '#', '.', '*', conversion, 0};
    if (!alternate) memmove(format + 1, format + 2, 4);
    snprintf(text, WHIT_REAL_BYTES, format, precision, real);
    mend_point(text);
}

bool whit_real_parse(const char *digits, size_t n_bytes, double *real)
{
    char number[MAX_DIGITS + 1];
    if (n_bytes > MAX_DIGITS) return false;
    memcpy(number, digits, n_bytes);
    number[n_bytes] = 0;
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale) return false;
    *real = strtod_l(number, NULL, c_locale);
    freelocale(c_locale);
    return true;
}

void whit_real_write(double real, char text[WHIT_REAL_BYTES])
{
    if (isnan(real) || isinf(real)) {
        const char *name = "inf";
        if (isnan(real))
            name = "nan";
        else if (real < 0)
            name = "-inf";
        strcpy(text, name);
        return;
    }
    /* Find the fewest digits that are read back as the same number. */
    double back = 0;
    for (int digits = 1; digits <= 17; digits++) {
        whit_real_print(real, 'e', digits - 1, false, text);
        if (whit_real_parse(text, strlen(text), &back) && back == real) break;
    }
    char *e = strchr(text, 'e');
    int exponent = atoi(e + 1);
    *e = 0;
    if (exponent < -4 || exponent >= 16) {
        snprintf(e, 16, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    char digits[32];
    size_t n = 0;
    for (char *c = text; *c; c++)
        if (*c >= '0' && *c <= '9') digits[n++] = *c;
    char *out = text + (*text == '-');
    if (exponent < 0) {
        *out++ = '0';
        *out++ = '.';
        for (int i = exponent + 1; i < 0; i++) *out++ = '0';
    }
    for (size_t i = 0; i < n || (int)i <= exponent + 1; i++) {
        if (exponent >= 0 && (int)i == exponent + 1) *out++ = '.';
        *out++ = i < n ? digits[i] : '0';
    }
    *out = 0;
}

/* Copies a number without the white space at both ends, and without single underscores between digits. Returns the size
 * of the copy; 0 if the number is too long or malformed. */
static size_t clean(const whit_text *text, char out[MAX_DIGITS + 1])
{
    size_t begin = 0, end = text->n_bytes, next, n = 0;
    while (begin < end && whit_point_is_space(whit_text_point(text, begin, &next))) begin = next;
    while (end > begin && whit_point_is_space(whit_text_point_before(text, end, &next))) end = next;
    if (end - begin > MAX_DIGITS) return 0;
    for (size_t i = begin; i < end; i++) {
        char c = text->bytes[i];
        bool between = i > begin && i + 1 < end && text->bytes[i - 1] != '_' && text->bytes[i + 1] != '_';
        if (c == '_' && !between) return 0;
        if (c != '_') out[n++] = c;
    }
    out[n] = 0;
    return n;
}

bool whit_real_from_text(const whit_text *text, double *real)
{
    char s[MAX_DIGITS + 1];
    size_t n = clean(text, s);
    if (n == 0 || memchr(s, 0, n)) return false;
    const char *word = s + (*s == '-' || *s == '+');
    if (strcasecmp(word, "inf") == 0 || strcasecmp(word, "infinity") == 0 || strcasecmp(word, "nan") == 0) {
        if ((word[0] | 32) == 'n')
            *real = NAN;
        else if (*s == '-')
            *real = -INFINITY;
        else
            *real = INFINITY;
        return true;
    }
    size_t n_digits = strspn(word, "0123456789");
    const char *c = word + n_digits;
    if (*c == '.') {
        size_t n_decimals = strspn(c + 1, "0123456789");
        n_digits += n_decimals;
        c += 1 + n_decimals;
    }
    if (n_digits == 0) return false;
    if ((*c | 32) == 'e') {
        c++;
        if (*c == '+' || *c == '-') c++;
        size_t n_exponent = strspn(c, "0123456789");
        if (n_exponent == 0) return false;
        c += n_exponent;
    }
    return *c == 0 && whit_real_parse(s, n, real);
}

bool whit_integer_parse(const whit_text *digits, int base, whit_datum *value)
{
    size_t at = digits->n_bytes && (digits->bytes[0] == '-' || digits->bytes[0] == '+');
    bool negative = at && digits->bytes[0] == '-';
    int64_t sum = 0;
    if (at == digits->n_bytes) return false;
    for (; at < digits->n_bytes; at++) {
        int c = digits->bytes[at] | 32;
        int digit = c >= 'a' && c <= 'z' ? c - 'a' + 10 : digits->bytes[at] - '0';
        if (digit < 0 || digit >= base || (digits->bytes[at] > '9' && c < 'a')) return false;
        if (__builtin_mul_overflow(sum, base, &sum) || __builtin_add_overflow(sum, negative ? -digit : digit, &sum)) {
            *value = (whit_datum){.kind = WHIT_DATUM_BIGINT, .text = digits};
            for (size_t i = at; i < digits->n_bytes; i++)
                if (digits->bytes[i] < '0' || digits->bytes[i] > '9') return false;
            return base == 10 && digits->bytes[0] != '+' && digits->bytes[negative] != '0';
        }
    }
    *value = whit_datum_int(sum);
    return true;
}

bool whit_integer_from_text(whit_datum_pool *pool, const whit_text *text, int64_t base, whit_datum *value)
{
    char s[MAX_DIGITS + 1];
    size_t n = clean(text, s);
    if (n == 0 || (base != 0 && (base < 2 || base > 36))) return false;
    size_t sign = *s == '-' || *s == '+', at = sign;
    char letter = n > at + 1 && s[at] == '0' ? (char)(s[at + 1] | 32) : 0;
    int64_t prefix = 0;
    if (letter == 'x')
        prefix = 16;
    else if (letter == 'o')
        prefix = 8;
    else if (letter == 'b')
        prefix = 2;
    if (prefix && (base == 0 || base == prefix)) {
        memmove(s + sign, s + sign + 2, n - sign - 1);
        n -= 2;
        base = prefix;
    }
    const whit_text *digits = whit_text_new(pool, s, n, false);
    return digits && whit_integer_parse(digits, base ? (int)base : 10, value);
}

double whit_real_round(double real, int64_t n_digits)
{
    if (!isfinite(real) || n_digits > 60) return real;
    char text[WHIT_REAL_BYTES];
    if (n_digits >= 0) {
        double rounded;
        whit_real_print(real, 'f', (int)n_digits, false, text);
        return whit_real_parse(text, strlen(text), &rounded) ? rounded : real;
    }
    if (n_digits < -308) return copysign(0, real);
    double unit = pow(10, (double)-n_digits);
    return nearbyint(real / unit) * unit;
}

/* Divides like Python's float_divmod: the quotient is rounded down, and the remainder has the divisor's sign. */
static void divide_real(double x, double y, double *quotient, double *remainder)
{
    double rest = fmod(x, y), ratio = (x - rest) / y;
    if (rest != 0) {
        if ((y < 0) != (rest < 0)) {
            rest += y;
            ratio -= 1;
        }
    } else {
        rest = copysign(0, y);
    }
    *remainder = rest;
    *quotient = copysign(0, x / y);
    if (ratio != 0) {
        *quotient = floor(ratio);
        if (ratio - *quotient > 0.5) *quotient += 1;
    }
}

static const char too_long[] = "integer of more than 64 bits";

static const char *power_integer(int64_t base, int64_t exponent, whit_datum *result)
{
    int64_t product = 1;
    while (exponent > 0) {
        if ((exponent & 1) && __builtin_mul_overflow(product, base, &product)) return too_long;
        exponent >>= 1;
        if (exponent && __builtin_mul_overflow(base, base, &base)) return too_long;
    }
    *result = whit_datum_int(product);
    return NULL;
}

static const char *do_integers(whit_arithmetic operation, int64_t a, int64_t b, whit_datum *result)
{
    int64_t c = 0;
    bool overflow = false;
    switch (operation) {
    case WHIT_ADD: overflow = __builtin_add_overflow(a, b, &c); break;
    case WHIT_SUBTRACT: overflow = __builtin_sub_overflow(a, b, &c); break;
    case WHIT_MULTIPLY: overflow = __builtin_mul_overflow(a, b, &c); break;
    case WHIT_FLOOR_DIVIDE:
    case WHIT_MODULO:
        if (b == 0) return "integer division or modulo by zero";
        if (b == -1) { /* INT64_MIN / -1 is the only quotient that overflows; the remainder is always 0 */
            overflow = operation == WHIT_FLOOR_DIVIDE && __builtin_sub_overflow((int64_t)0, a, &c);
            break;
        }
        c = operation == WHIT_MODULO ? a % b : a / b;
        if (a % b != 0 && (a < 0) != (b < 0)) c += operation == WHIT_MODULO ? b : -1;
        break;
    default: return NULL; /* the result is not an integer */
    }
    if (overflow) return too_long;
    *result = whit_datum_int(c);
    return NULL;
}

const char *whit_arithmetic_do(whit_arithmetic operation, whit_datum a, whit_datum b, whit_datum *result)
{
    int64_t i, j;
    if (a.kind == WHIT_DATUM_BIGINT || b.kind == WHIT_DATUM_BIGINT) return too_long;
    if (whit_datum_as_int(a, &i) && whit_datum_as_int(b, &j)) {
        if (operation == WHIT_POWER && j >= 0) return power_integer(i, j, result);
        if (operation != WHIT_POWER && operation != WHIT_DIVIDE) return do_integers(operation, i, j, result);
    }
    double x = 0, y = 0, quotient, remainder;
    whit_datum_as_real(a, &x);
    whit_datum_as_real(b, &y);
    if (y == 0 && (operation == WHIT_DIVIDE || operation == WHIT_FLOOR_DIVIDE || operation == WHIT_MODULO))
        return "division by zero";
    switch (operation) {
    case WHIT_ADD: *result = whit_datum_float(x + y); break;
    case WHIT_SUBTRACT: *result = whit_datum_float(x - y); break;
    case WHIT_MULTIPLY: *result = whit_datum_float(x * y); break;
    case WHIT_DIVIDE: *result = whit_datum_float(x / y); break;
    case WHIT_POWER:
        if (x == 0 && y < 0) return "0.0 cannot be raised to a negative power";
        if (x < 0 && isfinite(y) && floor(y) != y && isfinite(x)) return "complex numbers are not supported";
        *result = whit_datum_float(pow(x, y));
        if (isinf(result->real) && isfinite(x) && isfinite(y)) return "result is too large";
        break;
    default:
        divide_real(x, y, &quotient, &remainder);
        *result = whit_datum_float(operation == WHIT_MODULO ? remainder : quotient);
    }
    return NULL;
}
