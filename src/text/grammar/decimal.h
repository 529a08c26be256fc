/* SPDX-License-Identifier: MIT
 * Numbers as JSON writes them, exactly: no digit is lost to a double. */
#ifndef WHIT_GRAMMAR_DECIMAL_H
#define WHIT_GRAMMAR_DECIMAL_H

#include "base/json.h"

/* Represents the value 0.d1d2...dn x 10^point. `d1` and `dn` are not 0; n is 0 for the number 0. The digits stay in the
 * text that was read, which must outlive the decimal. */
typedef struct whit_decimal {
    const char *text;
    size_t first, n, dot; /* place of d1 in the text; number of digits; number of digits before the dot (n: there is no
                           * dot) */
    int64_t point;
    bool negative;
} whit_decimal;

/* Reads a number in JSON's syntax; false for anything else. Exponents beyond 10^9 count as 10^9. */
bool whit_decimal_read(const char *text, size_t n_bytes, whit_decimal *out);
/* Reads the number at a node; false if the node is not a number. */
bool whit_decimal_of_node(const whit_json *json, uint32_t node, whit_decimal *out);
/* Returns the i-th digit, '0' to '9'; '0' past the last. */
char whit_decimal_digit(const whit_decimal *decimal, size_t i);
/* Return a number below, equal to or above 0: the order of the magnitudes, and the order of the numbers. */
int whit_decimal_compare_magnitudes(const whit_decimal *a, const whit_decimal *b);
int whit_decimal_compare(const whit_decimal *a, const whit_decimal *b);
/* Returns whether the number is whole. */
bool whit_decimal_is_whole(const whit_decimal *decimal);
/* Returns whether `a` is an integer multiple of `b`. *known is false if b has too many digits, or if a has too many
 * relative to b, to decide. */
bool whit_decimal_is_multiple(const whit_decimal *a, const whit_decimal *b, bool *known);
/* Writes a decimal as n x 10^-decimals with a whole n from 1 to `max`; false if that is not possible. */
bool whit_decimal_step(const whit_decimal *decimal, uint32_t max, uint32_t *n, uint32_t *decimals);

/* Copies JSON; numbers that have a fraction and more than 15 digits get the shortest form that a reader of doubles
 * tells from no other, because writers of doubles give 0.1 as 0.10000000000000001. The result is false if memory runs
 * out. */
bool whit_decimal_shorten(const char *text, size_t n_bytes, whit_buf *out);

#endif
