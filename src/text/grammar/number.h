/* SPDX-License-Identifier: MIT
 * Makes a graph of the texts of numbers between bounds. */
#ifndef WHIT_GRAMMAR_NUMBER_H
#define WHIT_GRAMMAR_NUMBER_H

#include "grammar/automaton.h"
#include "grammar/decimal.h"

/* Describes a range of magnitudes of one sign: low <= x (low < x if `low_out`) and, if `has_high`, x <= high (x < high
 * if `high_out`). For numbers with an exponent, `low_out` is obeyed only if the bound is 0; otherwise the bound itself
 * counts as inside, so callers move such bounds inwards. */
typedef struct whit_number_range {
    whit_decimal low, high;
    bool has_high, low_out, high_out;
} whit_number_range;

typedef struct whit_number_form {
    bool integers;           /* neither a point nor an exponent is written */
    uint32_t step, decimals; /* the number is a multiple of step x 10^-decimals; step 0: any number is allowed */
    bool no_multiple;        /* the number is not a multiple of step x 10^-decimals */
    bool fraction;           /* the number is not whole; not used together with a step */
} whit_number_form;

/* An automaton is made only for steps up to this limit. */
#define WHIT_NUMBER_STEP_MAX 4096u

/* Accepts exactly the numbers of the range, without a sign, that are written plainly (digits, and a point with digits)
 * or, if no step is required, with one digit before the point and an exponent from -99 to 99. At most 16 digits are
 * written on each side of the point, or as many as a bound has, up to 40. */
uint32_t whit_number_between(whit_automaton *graph, const whit_number_range *range, const whit_number_form *form,
                             uint32_t next);
/* Accepts any number with or without a sign: at most 16 digits on each side of the point and an exponent of two
 * digits. */
uint32_t whit_number_any(whit_automaton *graph, bool integers, bool negative, uint32_t next);

#endif
