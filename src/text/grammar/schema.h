/* SPDX-License-Identifier: MIT
 * Compiles JSON Schema into a graph. docs/use/grammar.md describes which keywords are enforced, and in which form
 * values are written. */
#ifndef WHIT_GRAMMAR_SCHEMA_H
#define WHIT_GRAMMAR_SCHEMA_H

#include "grammar/automaton.h"

/* Adds rules to the graph for JSON values that the schema accepts; *rule is the rule of a whole value. The rules accept
 * a subset of the valid texts. Error messages are "NAME: #/PATH/KEYWORD: REASON". */
whit_status whit_json_schema_compile(whit_automaton *graph, const char *name, const char *text, size_t n_bytes,
                                     uint32_t *rule, whit_error *error);

/* Adds rules for the strings that the schema accepts, written without quotes and escapes. Strings that contain `mark`,
 * or control characters other than tabs and line ends, are excluded. */
whit_status whit_json_schema_compile_texts(whit_automaton *graph, const char *name, const char *text, size_t n_bytes,
                                           const char *mark, uint32_t *rule, whit_error *error);

/* Checks whether a text is a JSON value that the schema accepts (*valid). A text that is not JSON is not valid. It is
 * an error if the schema cannot be read, or a keyword cannot be checked; the message is "NAME: #/PATH: REASON". */
whit_status whit_json_schema_check(const char *name, const char *schema, size_t n_bytes, const char *value,
                                   size_t value_bytes, bool *valid, whit_error *error);

#endif
