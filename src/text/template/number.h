/* SPDX-License-Identifier: MIT
 * Numbers as Python reads, writes, rounds and calculates them, whatever the locale. */
#ifndef WHIT_TEMPLATE_NUMBER_H
#define WHIT_TEMPLATE_NUMBER_H

#include "template/value.h"

enum { WHIT_REAL_BYTES = 400 }; /* holds every "%.*f" of a double with up to 60 decimals */

/* Writes repr(float), terminated. */
void whit_real_write(double real, char text[WHIT_REAL_BYTES]);
/* Prints as printf's %e, %f or %g with a precision of at most 60; `alternate` is the flag '#'. */
void whit_real_print(double real, char conversion, int precision, bool alternate, char text[WHIT_REAL_BYTES]);
/* Parses a plain decimal number, correctly rounded; false if it has over 1,000 characters. */
bool whit_real_parse(const char *digits, size_t n_bytes, double *real);
/* Converts as Python's float(str): white space, sign, underscores, inf and nan. */
bool whit_real_from_text(const whit_text *text, double *real);
/* Parses digits of a base, possibly with a sign; a number over 64 bits becomes a BIGINT in base 10 and fails in other
 * bases. */
bool whit_integer_parse(const whit_text *digits, int base, whit_datum *value);
/* Converts as Python's int(str, base): white space, sign, underscores, prefixes. `pool` holds a long integer. */
bool whit_integer_from_text(whit_datum_pool *pool, const whit_text *text, int64_t base, whit_datum *value);
/* Returns round(value, n_digits): half to even on the exact decimal value. */
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

/* Calculates with two numbers. Returns NULL, or the reason if the operation is impossible. */
const char *whit_arithmetic_do(whit_arithmetic operation, whit_datum a, whit_datum b, whit_datum *result);

#endif
