/* SPDX-License-Identifier: MIT
 * Declares the tree into which GBNF and regular expressions are parsed before they become a graph. */
#ifndef WHIT_GRAMMAR_SYNTAX_H
#define WHIT_GRAMMAR_SYNTAX_H

#include "grammar/automaton.h"

#define WHIT_PATTERN_NONE      UINT32_MAX
#define WHIT_PATTERN_MAX_DEPTH 200u

typedef enum whit_pattern_kind {
    WHIT_PATTERN_CODES,  /* one code point: a: first of `ranges`, b: their number */
    WHIT_PATTERN_ALL,    /* children in sequence */
    WHIT_PATTERN_ANY,    /* one of the children */
    WHIT_PATTERN_REPEAT, /* the child a to b times */
    WHIT_PATTERN_RULE,   /* a: rule of the graph */
    WHIT_PATTERN_AHEAD,  /* lookahead: the child must match here, in addition to what follows */
    WHIT_PATTERN_NOT_AHEAD,
    WHIT_PATTERN_END, /* the end of the text */
} whit_pattern_kind;

typedef struct whit_pattern_node {
    uint32_t kind, a, b, child, last_child, sibling;
} whit_pattern_node;

typedef struct whit_pattern {
    whit_buf nodes, ranges;
    bool failed;
    uint32_t n_properties; /* number of Unicode properties, each of which took a walk over all code points */
    bool looks_ahead;      /* contains lookahead: whit_pattern_emit does not support the tree */
} whit_pattern;

void whit_pattern_close(whit_pattern *syntax);
uint32_t whit_pattern_add(whit_pattern *syntax, whit_pattern_kind kind, uint32_t a, uint32_t b);
void whit_pattern_append(whit_pattern *syntax, uint32_t parent, uint32_t child);
static inline whit_pattern_node *whit_pattern_at(const whit_pattern *syntax, uint32_t node)
{
    return (whit_pattern_node *)syntax->nodes.data + node;
}
/* Builds a class from ranges in any order; `inverted`: a class of all other code points. */
uint32_t whit_pattern_codes(whit_pattern *syntax, whit_code_range *ranges, size_t n, bool inverted);

/* Reads a repetition count: the digits at *at, which moves past them; false if there is no digit. Counts beyond the
 * limit become the largest count. */
bool whit_pattern_count(const uint8_t *text, size_t n_bytes, size_t *at, uint32_t *count);

/* Adds the pattern to the graph before `next`. With `in_json` the text is the content of a JSON string, and characters
 * that cannot occur there are escaped. */
uint32_t whit_pattern_emit(const whit_pattern *syntax, uint32_t node, bool in_json, whit_automaton *graph,
                           uint32_t next);
/* Computes the lengths in code points of the shortest and the longest text; max is WHIT_AUTOMATON_UNBOUNDED if there is
 * no longest text. */
void whit_pattern_length(const whit_pattern *syntax, uint32_t node, uint32_t *min, uint32_t *max);

/* Accepts one character of a JSON string out of sorted ranges, escaped where it must be. */
uint32_t whit_automaton_json_code(whit_automaton *graph, const whit_code_range *ranges, size_t n, uint32_t next);
/* Accepts what whit_automaton_json_code accepts, and also any escape that is one code point. */
uint32_t whit_automaton_json_spelled(whit_automaton *graph, const whit_code_range *ranges, size_t n, uint32_t next);
/* Accepts any character of a JSON string, as itself or in any escape that is one code point. */
uint32_t whit_automaton_json_character(whit_automaton *graph, uint32_t next);

/* Reads a regular expression of ECMA-262 that matches anywhere (JSON Schema's `pattern`). Anything that is not regular
 * or not understood is WHIT_ERROR_UNSUPPORTED, with a message that begins with `name`. */
whit_status whit_pattern_read(const char *name, const char *text, size_t n_bytes, whit_pattern *syntax, uint32_t *root,
                              whit_error *error);

#endif
