/* SPDX-License-Identifier: MIT
 * Represents numbers in JSON's syntax exactly, without conversion to a double. */
#ifndef WHIT_GRAMMAR_DECIMAL_H
#define WHIT_GRAMMAR_DECIMAL_H

#include "base/json.h"

/* The number 0.d1d2...dn x 10^point, negated if `negative`. d1 and dn are not 0; n is 0 for the number 0. The digits
 * are not copied: the text that was read must outlive the decimal. */
typedef struct whit_decimal {
    const char *text;
    size_t first, n, dot; /* first: position of d1 in `text`; n: number of digits; dot: number of digits before the dot
                           * (n: no dot between them) */
    int64_t point;
    bool negative;
} whit_decimal;

/* Parses a number in JSON's syntax. Also accepts further leading zeros, and a dot without digits before or after it.
 * Returns false for anything else. Exponents beyond 10^9 count as 10^9. */
bool whit_decimal_read(const char *text, size_t n_bytes, whit_decimal *out);
/* Parses the number at a node. Returns false if the node is not a number. */
bool whit_decimal_of_node(const whit_json *json, uint32_t node, whit_decimal *out);
/* Returns digit i (from 0) as '0' to '9'; '0' beyond the last digit. */
char whit_decimal_digit(const whit_decimal *decimal, size_t i);
/* Compare the magnitudes, or the numbers: the result is negative, 0 or positive if a is less than, equal to or greater
 * than b. */
int whit_decimal_compare_magnitudes(const whit_decimal *a, const whit_decimal *b);
int whit_decimal_compare(const whit_decimal *a, const whit_decimal *b);
/* Returns whether the number is an integer. */
bool whit_decimal_is_whole(const whit_decimal *decimal);
/* Returns whether `a` is an integer multiple of `b`; 0 always is. *known becomes false (and so does the result) if that
 * cannot be decided, because `b` is not positive or has more than 18 digits, `a` has too many digits, or their
 * exponents differ too much. */
bool whit_decimal_is_multiple(const whit_decimal *a, const whit_decimal *b, bool *known);
/* Represents a decimal as n x 10^-decimals with an integer n from 1 to `max` and at most 16 decimals. Returns false if
 * that is not possible. */
bool whit_decimal_step(const whit_decimal *decimal, uint32_t max, uint32_t *n, uint32_t *decimals);

/* Appends JSON to `out`. A number of fewer than 64 characters with a fraction and more than 15 digits is replaced by
 * one of 15 or 16 digits if that becomes the same double, since some programs write 0.1 as 0.10000000000000001. Returns
 * false if memory is exhausted. */
bool whit_decimal_shorten(const char *text, size_t n_bytes, whit_buf *out);

#endif
