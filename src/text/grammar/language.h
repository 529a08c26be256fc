/* SPDX-License-Identifier: MIT
 * Represents regular languages of texts as expressions, with intersection and complement.
 *
 * Equal expressions are stored once and have equal numbers. The derivative of an expression by a code point (Brzozowski
 * 1964) describes what may follow that code point. An expression has finitely many derivatives, which are the states of
 * its automaton. If memory or a bound is exhausted, `failed` is set and functions return WHIT_LANGUAGE_NONE. Every
 * function accepts that, so callers check `failed` only at the end. */
#ifndef WHIT_GRAMMAR_LANGUAGE_H
#define WHIT_GRAMMAR_LANGUAGE_H

#include "grammar/pattern.h"

#define WHIT_LANGUAGE_NONE  0u /* the language without any text */
#define WHIT_LANGUAGE_EMPTY 1u /* the language of the empty text alone */
#define WHIT_LANGUAGE_ALL   2u /* the language of all texts */

typedef struct whit_language {
    const whit_allocator *allocator;
    whit_buf nodes, children, ranges;
    uint32_t *slots, n_slots; /* hash table of the nodes by content: index of a node, plus 1; 0: free */
    /* Ranges of code points with their classes. Code points that are in the same sets have the same class
     * (language_automaton.c). */
    whit_buf classes;
    uint64_t work;
    bool failed;
} whit_language;

bool whit_language_open(const whit_allocator *allocator, whit_language *language);
void whit_language_close(whit_language *language);

/* Matches one code point of the ranges, which may be in any order and overlap. */
uint32_t whit_language_codes(whit_language *language, const whit_code_range *ranges, size_t n);
uint32_t whit_language_text(whit_language *language, const char *text, size_t n_bytes);
uint32_t whit_language_then(whit_language *language, uint32_t a, uint32_t b);
uint32_t whit_language_or(whit_language *language, uint32_t a, uint32_t b);
uint32_t whit_language_and(whit_language *language, uint32_t a, uint32_t b);
uint32_t whit_language_not(whit_language *language, uint32_t a);
uint32_t whit_language_repeat(whit_language *language, uint32_t a, uint32_t min, uint32_t max);
/* Returns the language of all texts of min to max code points. */
uint32_t whit_language_length(whit_language *language, uint32_t min, uint32_t max);
/* Returns the language of a parsed pattern (pattern.h), which may have lookahead. `root` is the pattern's root node. */
uint32_t whit_language_pattern(whit_language *language, const whit_pattern *syntax, uint32_t root);

/* Form in which whit_language_emit writes texts. SHORTEST: content of a JSON string with the shortest escapes. SPELLED:
 * content of a JSON string with the escapes of whit_automaton_json_spelled. PLAIN: no JSON, the texts themselves. */
typedef enum whit_language_form {
    WHIT_LANGUAGE_SHORTEST,
    WHIT_LANGUAGE_SPELLED,
    WHIT_LANGUAGE_PLAIN,
} whit_language_form;

bool whit_language_matches(whit_language *language, uint32_t node, const char *text, size_t n_bytes);
/* Adds nodes to the graph that accept the texts of the expression, followed by `next`. *empty becomes true if the
 * expression has no text. The result must not be used in that case, nor if `failed` is set. */
uint32_t whit_language_emit(whit_language *language, uint32_t node, whit_language_form form, whit_automaton *graph,
                            uint32_t next, bool *empty);

/* Kinds of expressions, for the files that implement languages. */
typedef enum whit_language_kind {
    WHIT_LANGUAGE_IS_NONE = 0,
    WHIT_LANGUAGE_IS_EMPTY,
    WHIT_LANGUAGE_IS_CODES,  /* a: index of the first range in `ranges`, n: number of ranges */
    WHIT_LANGUAGE_IS_THEN,   /* concatenation of a and b */
    WHIT_LANGUAGE_IS_OR,     /* a: index of the first part in `children`, n: number of parts */
    WHIT_LANGUAGE_IS_AND,    /* a: index of the first part in `children`, n: number of parts */
    WHIT_LANGUAGE_IS_NOT,    /* complement of a */
    WHIT_LANGUAGE_IS_REPEAT, /* a, repeated b to n times */
} whit_language_kind;

typedef struct whit_language_node {
    uint32_t a, b, n;
    uint8_t kind;
    bool has_empty; /* the language contains the empty text */
} whit_language_node;

static inline whit_language_node whit_language_at(const whit_language *language, uint32_t node)
{
    return ((const whit_language_node *)language->nodes.data)[node];
}
/* Returns the derivative by a code point: the language of the texts that may follow it. */
uint32_t whit_language_derive(whit_language *language, uint32_t node, uint32_t code);

#endif
