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

#endif
