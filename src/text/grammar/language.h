/* SPDX-License-Identifier: MIT
 * Represents regular languages of texts, with intersection and complement.
 *
 * Each expression is stored once, so that equal ones have equal numbers. Its derivative by a code point (Brzozowski
 * 1964) is the expression of what may follow that code point; the derivatives of an expression, which are finitely
 * many, are the states of its automaton. If memory or a bound is exhausted, `failed` is set and functions return
 * WHIT_LANGUAGE_NONE. Every function accepts that, so callers check `failed` only at the end. */
#ifndef WHIT_GRAMMAR_LANGUAGE_H
#define WHIT_GRAMMAR_LANGUAGE_H

#include "grammar/pattern.h"

#define WHIT_LANGUAGE_NONE  0u /* no text */
#define WHIT_LANGUAGE_EMPTY 1u /* the empty text */
#define WHIT_LANGUAGE_ALL   2u /* any text */

typedef struct whit_language {
    const whit_allocator *allocator;
    whit_buf nodes, children, ranges;
    uint32_t *slots, n_slots; /* node numbers by content, plus 1 */
    whit_buf classes;         /* code points that no set of the expressions tells apart; see language_automaton.c */
    uint64_t work;
    bool failed;
} whit_language;

bool whit_language_open(const whit_allocator *allocator, whit_language *language);
void whit_language_close(whit_language *language);

/* Matches one code point of the ranges, which may be in any order. */
uint32_t whit_language_codes(whit_language *language, const whit_code_range *ranges, size_t n);
uint32_t whit_language_text(whit_language *language, const char *text, size_t n_bytes);
uint32_t whit_language_then(whit_language *language, uint32_t a, uint32_t b);
uint32_t whit_language_or(whit_language *language, uint32_t a, uint32_t b);
uint32_t whit_language_and(whit_language *language, uint32_t a, uint32_t b);
uint32_t whit_language_not(whit_language *language, uint32_t a);
uint32_t whit_language_repeat(whit_language *language, uint32_t a, uint32_t min, uint32_t max);
/* Builds the texts of min to max code points. */
uint32_t whit_language_length(whit_language *language, uint32_t min, uint32_t max);
/* Builds the texts of a pattern that was read (pattern.h), including its lookahead. */
uint32_t whit_language_pattern(whit_language *language, const whit_pattern *syntax, uint32_t root);

/* Says how texts are written: the content of a JSON string in its shortest form or in any escapes, or the texts as they
 * are. */
typedef enum whit_language_form {
    WHIT_LANGUAGE_SHORTEST,
    WHIT_LANGUAGE_SPELLED,
    WHIT_LANGUAGE_PLAIN,
} whit_language_form;

bool whit_language_matches(whit_language *language, uint32_t node, const char *text, size_t n_bytes);
/* Emits the texts of the expression, followed by `next`, as nodes of the graph. *empty is set if the expression has no
 * text; then, and if `failed` is set, the result must not be used. */
uint32_t whit_language_emit(whit_language *language, uint32_t node, whit_language_form form, whit_automaton *graph,
                            uint32_t next, bool *empty);

/* Lists the kinds of expressions, which only the files that implement languages use. */
typedef enum whit_language_kind {
    WHIT_LANGUAGE_IS_NONE = 0,
    WHIT_LANGUAGE_IS_EMPTY,
    WHIT_LANGUAGE_IS_CODES,  /* a: first of `ranges`, n: their number */
    WHIT_LANGUAGE_IS_THEN,   /* a, then b */
    WHIT_LANGUAGE_IS_OR,     /* a: first of `children`, n: their number */
    WHIT_LANGUAGE_IS_AND,    /* a: first of `children`, n: their number */
    WHIT_LANGUAGE_IS_NOT,    /* not a */
    WHIT_LANGUAGE_IS_REPEAT, /* a, b to n times */
} whit_language_kind;

typedef struct whit_language_node {
    uint32_t a, b, n;
    uint8_t kind;
    bool has_empty; /* the empty text belongs to the expression */
} whit_language_node;

static inline whit_language_node whit_language_at(const whit_language *language, uint32_t node)
{
    return ((const whit_language_node *)language->nodes.data)[node];
}
/* Builds the expression of the texts that may follow a code point. */
uint32_t whit_language_derive(whit_language *language, uint32_t node, uint32_t code);

#endif
