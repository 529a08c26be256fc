/* SPDX-License-Identifier: MIT
 * Compiles GBNF into a graph. */
#ifndef WHIT_GRAMMAR_GBNF_H
#define WHIT_GRAMMAR_GBNF_H

#include "grammar/automaton.h"

#define WHIT_GRAMMAR_MAX_TEXT_BYTES (4u << 20)

/* Compiles GBNF: rule 0 becomes the rule `root`, and the graph is finished. Errors are "name:line: what". */
whit_status whit_gbnf_compile(whit_automaton *graph, const char *name, const char *text, size_t n_bytes,
                              whit_error *error);

#endif
