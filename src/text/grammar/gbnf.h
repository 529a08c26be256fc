/* SPDX-License-Identifier: MIT
 * Compiles GBNF grammars into a graph. */
#ifndef WHIT_GRAMMAR_GBNF_H
#define WHIT_GRAMMAR_GBNF_H

#include "grammar/automaton.h"

#define WHIT_GRAMMAR_MAX_TEXT_BYTES (4u << 20)

/* Compiles the text of a GBNF grammar and finishes the graph. The rule named "root" becomes rule 0. Errors in the text
 * are reported as "NAME:LINE: REASON". */
whit_status whit_gbnf_compile(whit_automaton *graph, const char *name, const char *text, size_t n_bytes,
                              whit_error *error);

#endif
