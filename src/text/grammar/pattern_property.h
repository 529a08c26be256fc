/* SPDX-License-Identifier: MIT
 * Finds the code points of the Unicode properties that patterns name. */
#ifndef WHIT_GRAMMAR_PATTERN_PROPERTY_H
#define WHIT_GRAMMAR_PATTERN_PROPERTY_H

#include "grammar/automaton.h"

/* Appends the sorted code points (whit_code_range) that have a property: a general category, Extended_Pictographic,
 * Emoji_Component or Regional_Indicator. Returns false if the property is not known, or memory is exhausted. */
bool whit_pattern_property(const char *name, size_t n_bytes, whit_buf *ranges);

#endif
