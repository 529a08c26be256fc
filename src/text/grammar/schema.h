/* SPDX-License-Identifier: MIT
 * Compiles JSON Schema into a graph. docs/use/grammar.md says what is enforced, and how it is written. */
#ifndef WHIT_GRAMMAR_SCHEMA_H
#define WHIT_GRAMMAR_SCHEMA_H

#include "grammar/automaton.h"

/* Adds rules for JSON that the schema accepts; *rule is the rule for the whole text. The rules accept a subset of the
 * valid texts. Errors are "name: #/path/keyword: what". */
whit_status whit_json_schema_compile(whit_automaton *graph, const char *name, const char *text, size_t n_bytes,
                                     uint32_t *rule, whit_error *error);

/* Adds rules for the strings that the schema accepts, as they are: without quotes and escapes, and without `mark` and
 * control characters except tabs and line ends. */
whit_status whit_json_schema_compile_texts(whit_automaton *graph, const char *name, const char *text, size_t n_bytes,
                                           const char *mark, uint32_t *rule, whit_error *error);

/* Checks whether a text is a JSON value for which the schema holds: *valid. A text that is not JSON is not valid.
 * Errors: a schema that cannot be read, or a keyword that cannot be checked, as "name: #/path: what". */
whit_status whit_json_schema_check(const char *name, const char *schema, size_t n_bytes, const char *value,
                                   size_t value_bytes, bool *valid, whit_error *error);

#endif
