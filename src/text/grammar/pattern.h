/* SPDX-License-Identifier: MIT
 * Declares the syntax tree of regular expressions and GBNF, which is later converted to a graph. */
#ifndef WHIT_GRAMMAR_SYNTAX_H
#define WHIT_GRAMMAR_SYNTAX_H

#include "grammar/automaton.h"

#define WHIT_PATTERN_NONE      UINT32_MAX
#define WHIT_PATTERN_MAX_DEPTH 200u

typedef enum whit_pattern_kind {
    WHIT_PATTERN_CODES,  /* one code point; a: index of the first range in `ranges`, b: number of ranges */
    WHIT_PATTERN_ALL,    /* all children, one after the other */
    WHIT_PATTERN_ANY,    /* any one of the children */
    WHIT_PATTERN_REPEAT, /* the child, a to b times */
    WHIT_PATTERN_RULE,   /* a: a rule of the graph */
    WHIT_PATTERN_AHEAD,  /* lookahead: the child must match at this position, but consumes nothing */
    WHIT_PATTERN_NOT_AHEAD,
    WHIT_PATTERN_END, /* the end of the text */
} whit_pattern_kind;

typedef struct whit_pattern_node {
    uint32_t kind, a, b, child, last_child, sibling;
} whit_pattern_node;

typedef struct whit_pattern {
    whit_buf nodes, ranges;
    bool failed;
    uint32_t n_properties; /* number of Unicode properties; each needs a loop over all code points */
    bool looks_ahead;      /* the tree contains lookahead or WHIT_PATTERN_END, which whit_pattern_emit does not
                            * support */
} whit_pattern;

void whit_pattern_close(whit_pattern *syntax);
uint32_t whit_pattern_add(whit_pattern *syntax, whit_pattern_kind kind, uint32_t a, uint32_t b);
void whit_pattern_append(whit_pattern *syntax, uint32_t parent, uint32_t child);
static inline whit_pattern_node *whit_pattern_at(const whit_pattern *syntax, uint32_t node)
{
    return (whit_pattern_node *)syntax->nodes.data + node;
}
/* Adds a set of code points, from ranges in any order, which it sorts in place; `inverted`: the set of all other code
 * points. */
uint32_t whit_pattern_codes(whit_pattern *syntax, whit_code_range *ranges, size_t n, bool inverted);

/* Reads a repetition count from the digits at *at and moves *at after them. Returns false if there is no digit. Counts
 * that do not fit 32 bits become WHIT_AUTOMATON_UNBOUNDED - 1. */
bool whit_pattern_count(const uint8_t *text, size_t n_bytes, size_t *at, uint32_t *count);

/* Adds nodes to the graph that accept the pattern's texts before `next`. With `in_json` the text is the content of a
 * JSON string: characters that must be escaped there are accepted in their escaped form. */
uint32_t whit_pattern_emit(const whit_pattern *syntax, uint32_t node, bool in_json, whit_automaton *graph,
                           uint32_t next);
/* Computes bounds of the number of code points of a text; *max is WHIT_AUTOMATON_UNBOUNDED if there is no limit. They
 * are exact, except that lookaheads are counted as if they always matched, and a rule as any text. */
void whit_pattern_length(const whit_pattern *syntax, uint32_t node, uint32_t *min, uint32_t *max);

/* Accepts one character of a JSON string, whose code point is in the sorted ranges. It is escaped only if necessary. */
uint32_t whit_automaton_json_code(whit_automaton *graph, const whit_code_range *ranges, size_t n, uint32_t next);
/* Like whit_automaton_json_code, but the character may also be escaped by a letter ("\n", "\/") or by one \uXXXX. A
 * pair of surrogates is not accepted: a character above U+FFFF cannot be escaped. */
uint32_t whit_automaton_json_spelled(whit_automaton *graph, const whit_code_range *ranges, size_t n, uint32_t next);
/* Accepts any character of a JSON string, in the spellings of whit_automaton_json_spelled. */
uint32_t whit_automaton_json_character(whit_automaton *graph, uint32_t next);

/* Parses a regular expression of ECMA-262 that may match anywhere in a text (`pattern` of JSON Schema). If it is not
 * regular or uses unknown syntax, the error is WHIT_ERROR_UNSUPPORTED, with a message that begins with `name`. */
whit_status whit_pattern_read(const char *name, const char *text, size_t n_bytes, whit_pattern *syntax, uint32_t *root,
                              whit_error *error);

#endif
