/* SPDX-License-Identifier: MIT
 * Builds the grammar of tagged arguments: <parameter=KEY>, a line feed, the value, a line feed, </parameter>, a line
 * feed. */
#ifndef WHIT_RUNTIME_CALL_TAGGED_H
#define WHIT_RUNTIME_CALL_TAGGED_H

#include "base/json.h"
#include "grammar/automaton.h"

/* Builds the grammar rule of a function's arguments. held: the arguments are constrained to the properties of the
 * function's schema, in their order; strings are written verbatim and other values as JSON. Otherwise any texts and any
 * names of letters, digits, -, . and _ are allowed. Error messages begin with `name`, and name the place in the schema
 * that no rule can express. */
whit_status whit_call_tagged_rule(whit_automaton *graph, const whit_json *json, uint32_t parameters, bool held,
                                  const char *name, uint32_t *rule, whit_error *error);

/* Builds the rule of the values that a schema within a function's parameters accepts: as JSON or, if `mark` is not
 * NULL, with strings verbatim that do not contain the mark. pointer: the schema's place, a JSON pointer in the form of
 * a URI's fragment. The whole parameters are compiled as one schema resource, so that references in the schema still
 * resolve. */
whit_status whit_call_leaf_rule(whit_automaton *graph, const whit_json *json, uint32_t parameters, const char *pointer,
                                const char *mark, const char *name, uint32_t *rule, whit_error *error);

#endif
