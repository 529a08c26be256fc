/* SPDX-License-Identifier: MIT
 * Tagged arguments as a grammar: <parameter=KEY>, a line feed, the value, a line feed, </parameter>, a line feed. */
#ifndef WHIT_RUNTIME_CALL_TAGGED_H
#define WHIT_RUNTIME_CALL_TAGGED_H

#include "base/json.h"
#include "grammar/automaton.h"

/* The rule of a function's arguments. Where they are held, the properties of its schema in their order, strings as they
 * are and other values as JSON; else parameters of any names and texts. `name` begins errors, which name the place of
 * what cannot be held. */
whit_status whit_call_tagged_rule(whit_automaton *graph, const whit_json *json, uint32_t parameters, bool held,
                                  const char *name, uint32_t *rule, whit_error *error);

/* The rule of the values that a schema within a function's parameters accepts: as JSON or, if `mark` is not NULL, its
 * strings verbatim, without the mark. pointer: its place, a JSON pointer in the form of a URI's fragment. The schema
 * stays within the whole, which becomes a resource of its own, so that its references lead where they led. */
whit_status whit_call_leaf_rule(whit_automaton *graph, const whit_json *json, uint32_t parameters, const char *pointer,
                                const char *mark, const char *name, uint32_t *rule, whit_error *error);

#endif
