/* SPDX-License-Identifier: MIT
 * Represents a grammar as a graph over bytes: a pushdown automaton, into which GBNF and JSON Schema are compiled.
 *
 * A node consumes one byte of a set and continues at its next node, or it is a choice, a call of a rule, or a
 * repetition. Graphs are built from the end to the beginning: each function takes the node that follows (`next`) and
 * returns the new node. The machine (machine.h) counts repetitions, so that {0,1000000} is one node. If memory or a
 * bound is exhausted, `failed` is set and functions return WHIT_AUTOMATON_NONE. They accept that as an argument too, so
 * that a builder checks only once, at the end. */
#ifndef WHIT_GRAMMAR_GRAPH_H
#define WHIT_GRAMMAR_GRAPH_H

#include "base/mem.h"

#define WHIT_AUTOMATON_NONE      UINT32_MAX
#define WHIT_AUTOMATON_RET       0u /* the end of a rule, or of a repetition's body */
#define WHIT_AUTOMATON_UNBOUNDED UINT32_MAX
#define WHIT_AUTOMATON_MAX_NODES (1u << 21)
#define WHIT_AUTOMATON_MAX_DEPTH 600u /* limit of the machine's stack, in frames: nested values and calls */

typedef enum whit_automaton_kind {
    WHIT_AUTOMATON_END = 0, /* end of a rule or body; only WHIT_AUTOMATON_RET has this kind */
    WHIT_AUTOMATON_BYTES,   /* a: index of the byte set, b: next node */
    WHIT_AUTOMATON_SPLIT,   /* a: index of the first alternative in `edges`, b: number of alternatives */
    WHIT_AUTOMATON_CALL,    /* a: index of the rule, b: next node */
    WHIT_AUTOMATON_REPEAT,  /* a: index of the repetition, b: next node */
} whit_automaton_kind;

typedef struct whit_automaton_node {
    uint32_t a, b;
    uint8_t kind;
    bool beside_all; /* for BYTES: other alternatives of the same choice accept every code point from U+0080 on, and
                      * continue at the same next node */
    uint16_t height; /* smallest number of stack frames that are needed to reach the end of the rule; UINT16_MAX: the
                      * end cannot be reached */
} whit_automaton_node;

typedef struct whit_automaton_repetition {
    uint32_t body, min, max;
    uint64_t loop[4]; /* set of bytes, each of which is a complete body */
    bool takes_all;   /* every code point from U+0080 on is a complete body too */
    bool in_quotes;   /* the body is one character of a JSON string, and the closing quote follows the repetition */
} whit_automaton_repetition;

typedef struct whit_byte_set {
    uint64_t bits[4];
} whit_byte_set;

typedef struct whit_code_range {
    uint32_t first, last;
} whit_code_range;

typedef struct whit_automaton {
    whit_buf nodes, edges, sets, repetitions;
    whit_buf rules; /* array of uint32_t: the first node of each rule; WHIT_AUTOMATON_NONE: not defined yet */
    uint32_t *set_slots;
    uint32_t n_set_slots;
    uint8_t class_of[256]; /* class of each byte; bytes that are in the same sets have the same class */
    uint32_t n_classes;
    const whit_allocator *allocator;
    bool failed;
} whit_automaton;

whit_status whit_automaton_open(const whit_allocator *allocator, whit_automaton *graph, whit_error *error);
void whit_automaton_close(whit_automaton *graph);

static inline const whit_automaton_node *whit_automaton_at(const whit_automaton *graph, uint32_t node)
{
    return (const whit_automaton_node *)graph->nodes.data + node;
}
static inline uint32_t whit_automaton_n_nodes(const whit_automaton *graph)
{
    return (uint32_t)(graph->nodes.size_bytes / sizeof(whit_automaton_node));
}
static inline bool whit_byte_in(const whit_byte_set *set, uint8_t byte)
{
    return set->bits[byte / 64] >> byte % 64 & 1;
}
static inline void whit_byte_add(whit_byte_set *set, uint8_t byte)
{
    set->bits[byte / 64] |= UINT64_C(1) << byte % 64;
}

uint32_t whit_automaton_set(whit_automaton *graph, const whit_byte_set *set, uint32_t next);
uint32_t whit_automaton_text(whit_automaton *graph, const void *text, size_t n_bytes, uint32_t next);
static inline uint32_t whit_automaton_literal(whit_automaton *graph, const char *text, uint32_t next)
{
    return whit_automaton_text(graph, text, strlen(text), next);
}
/* Returns a node that accepts any one of n alternatives. With n = 0 it accepts nothing. */
uint32_t whit_automaton_split(whit_automaton *graph, const uint32_t *ways, size_t n);
uint32_t whit_automaton_rule(whit_automaton *graph); /* returns the index of a new rule, which must be defined later;
                                                      * rule 0 is the root */
void whit_automaton_define(whit_automaton *graph, uint32_t rule, uint32_t begin);
uint32_t whit_automaton_call(whit_automaton *graph, uint32_t rule, uint32_t next);
/* Repeats `body` min to max times. The body must have been built with WHIT_AUTOMATON_RET as its `next`. */
uint32_t whit_automaton_repeat(whit_automaton *graph, uint32_t body, uint32_t min, uint32_t max, uint32_t next);
/* Like whit_automaton_repeat, for a body that is one character of a JSON string; `quote` is the node of the closing
 * quote. Token masks of such repetitions are computed in advance. */
uint32_t whit_automaton_characters(whit_automaton *graph, uint32_t body, uint32_t min, uint32_t max, uint32_t quote);
/* Accepts one code point of the ranges, in UTF-8. The ranges are sorted and disjoint; surrogates are skipped. */
uint32_t whit_automaton_code(whit_automaton *graph, const whit_code_range *ranges, size_t n, uint32_t next);
/* A text for whit_automaton_words. That function accepts any one of n texts and shares the nodes of common prefixes.
 * The texts must be sorted by memcmp, without duplicates. */
typedef struct whit_automaton_word {
    const uint8_t *text;
    size_t n_bytes;
} whit_automaton_word;
uint32_t whit_automaton_words(whit_automaton *graph, const whit_automaton_word *words, size_t n, uint32_t next);

/* Checks the complete graph and prepares it for the machine. If a rule is left-recursive or not defined, *bad_rule is
 * this rule, and the error is WHIT_ERROR_FORMAT. If no finite text satisfies the root, or a bound is exceeded, there is
 * an error too, and *bad_rule is WHIT_AUTOMATON_NONE. */
whit_status whit_automaton_finish(whit_automaton *graph, const char *name, uint32_t *bad_rule, whit_error *error);

#endif
