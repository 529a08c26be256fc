/* SPDX-License-Identifier: MIT
 * Parses, prints, rounds and calculates numbers like Python, independently of the locale. */
#ifndef WHIT_TEMPLATE_NUMBER_H
#define WHIT_TEMPLATE_NUMBER_H

#include "template/value.h"

enum { WHIT_REAL_BYTES = 400 }; /* enough for "%.*f" of any double with up to 60 decimals */

/* Writes repr(real), NUL-terminated. */
void whit_real_write(double real, char text[WHIT_REAL_BYTES]);
/* Prints like printf's %e, %f or %g with a precision of at most 60; `alternate` is the flag '#'. */
void whit_real_print(double real, char conversion, int precision, bool alternate, char text[WHIT_REAL_BYTES]);
/* Parses a decimal number, correctly rounded. The caller has checked its syntax. Returns false if it is longer than
 * 1,000 characters, or memory is exhausted. */
bool whit_real_parse(const char *digits, size_t n_bytes, double *real);
/* Converts like Python's float(str), which accepts white space, a sign, underscores, inf and nan. Returns false if the
 * text is no such number. */
bool whit_real_from_text(const whit_text *text, double *real);
/* Parses digits of a base, with an optional sign. A number of more than 64 bits becomes a BIGINT, which points to
 * `digits`, in base 10 without '+' and leading zeros; otherwise it is a failure (false). */
bool whit_integer_parse(const whit_text *digits, int base, whit_datum *value);
/* Converts like Python's int(str, base), which accepts white space, a sign, underscores and prefixes. A BIGINT's digits
 * are allocated from `pool`. */
bool whit_integer_from_text(whit_datum_pool *pool, const whit_text *text, int64_t base, whit_datum *value);
/* Returns Python's round(real, n_digits): ties of the exact decimal value are rounded to even. */
double whit_real_round(double real, int64_t n_digits);

typedef enum whit_arithmetic {
    WHIT_ADD,
    WHIT_SUBTRACT,
    WHIT_MULTIPLY,
    WHIT_DIVIDE,
    WHIT_FLOOR_DIVIDE,
    WHIT_MODULO,
    WHIT_POWER
} whit_arithmetic;

/* Calculates with two numbers. Returns NULL, or the reason why the result cannot be computed. */
const char *whit_arithmetic_do(whit_arithmetic operation, whit_datum a, whit_datum b, whit_datum *result);

#endif
