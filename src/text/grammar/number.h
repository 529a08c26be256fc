/* SPDX-License-Identifier: MIT
 * Builds graphs that accept the numbers between two bounds. */
#ifndef WHIT_GRAMMAR_NUMBER_H
#define WHIT_GRAMMAR_NUMBER_H

#include "grammar/automaton.h"
#include "grammar/decimal.h"

/* A range of magnitudes: low <= x (low < x if `low_out`) and, if `has_high`, x <= high (x < high if `high_out`). For
 * numbers with an exponent, `high_out` does not count, and `low_out` only counts if `low` is 0: the bound itself is
 * accepted otherwise, and callers must move it inwards. */
typedef struct whit_number_range {
    whit_decimal low, high;
    bool has_high, low_out, high_out;
} whit_number_range;

typedef struct whit_number_form {
    bool integers;           /* integers only: written without a point or an exponent */
    uint32_t step, decimals; /* the number is a multiple of step x 10^-decimals; step 0: no such condition */
    bool no_multiple;        /* the number is not a multiple of step x 10^-decimals */
    bool fraction;           /* the number is not an integer; false if there is a step */
} whit_number_form;

/* Largest step for which a graph can be built. */
#define WHIT_NUMBER_STEP_MAX 4096u

/* Accepts exactly the numbers of the range, without a sign. They may be written plainly (digits, or digits with a
 * point) or, if `form` has no condition, with one digit before the point and an exponent from -99 to 99. At most 16
 * digits are accepted on each side of the point, or as many as a bound has, up to 40; fewer with a step or
 * `fraction`. */
uint32_t whit_number_between(whit_automaton *graph, const whit_number_range *range, const whit_number_form *form,
                             uint32_t next);
/* Accepts any number, with or without a sign (`negative`: a minus sign is allowed), with at most 16 digits on each side
 * of the point and an exponent of at most two digits. `integers`: neither a point nor an exponent is accepted. */
uint32_t whit_number_any(whit_automaton *graph, bool integers, bool negative, uint32_t next);

#endif
