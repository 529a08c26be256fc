/* SPDX-License-Identifier: MIT
 * Finds Unicode properties that patterns name. */
#ifndef WHIT_GRAMMAR_PATTERN_PROPERTY_H
#define WHIT_GRAMMAR_PATTERN_PROPERTY_H

#include "grammar/automaton.h"

/* Appends the code points (whit_code_range, sorted) that have a property: a general category, Extended_Pictographic,
 * Emoji_Component or Regional_Indicator. The result is false if the property is not known, or memory ran out. */
bool whit_pattern_property(const char *name, size_t n_bytes, whit_buf *ranges);

#endif
