/* SPDX-License-Identifier: MIT
 * Represents a grammar as a graph over bytes: the pushdown automaton that GBNF and JSON Schema become.
 *
 * A node consumes one byte of a set and continues at the next node, or chooses, calls a rule, or repeats. Nodes are
 * built from the end to the beginning: every function takes the node that follows and returns the node that begins.
 * Repetitions are counted by the machine (machine.h) and never unrolled, so that {0,1000000} is one node.
 * WHIT_AUTOMATON_NONE comes back once memory or a bound is exhausted (`failed`), and every function accepts it, so that
 * a builder checks once at the end. */
#ifndef WHIT_GRAMMAR_GRAPH_H
#define WHIT_GRAMMAR_GRAPH_H

#include "base/mem.h"

#define WHIT_AUTOMATON_NONE      UINT32_MAX
#define WHIT_AUTOMATON_RET       0u /* the node that ends a rule or a repeated part */
#define WHIT_AUTOMATON_UNBOUNDED UINT32_MAX
#define WHIT_AUTOMATON_MAX_NODES (1u << 21)
#define WHIT_AUTOMATON_MAX_DEPTH 600u /* frames of the machine's stack: nested values and calls */

typedef enum whit_automaton_kind {
    WHIT_AUTOMATON_END = 0, /* WHIT_AUTOMATON_RET alone */
    WHIT_AUTOMATON_BYTES,   /* a: set, b: next */
    WHIT_AUTOMATON_SPLIT,   /* a: first of `edges`, b: their number */
    WHIT_AUTOMATON_CALL,    /* a: rule, b: next */
    WHIT_AUTOMATON_REPEAT,  /* a: repetition, b: next */
} whit_automaton_kind;

typedef struct whit_automaton_node {
    uint32_t a, b;
    uint8_t kind;
    bool beside_all; /* for BYTES: alternatives of this node accept every code point from U+0080 on and continue at the
                      * same next node */
    uint16_t height; /* least number of frames that reaching the end of the rule takes; UINT16_MAX: it cannot be
                      * reached */
} whit_automaton_node;

typedef struct whit_automaton_repetition {
    uint32_t body, min, max;
    uint64_t loop[4]; /* set of bytes, each of which is a complete turn by itself */
    bool takes_all;   /* every code point from U+0080 on is a complete turn, too */
    bool in_quotes;   /* a turn is a character of a JSON string, whose closing quote follows */
} whit_automaton_repetition;

typedef struct whit_byte_set {
    uint64_t bits[4];
} whit_byte_set;

typedef struct whit_code_range {
    uint32_t first, last;
} whit_code_range;

typedef struct whit_automaton {
    whit_buf nodes, edges, sets, repetitions;
    whit_buf rules; /* uint32_t: where a rule begins; WHIT_AUTOMATON_NONE: not defined yet */
    uint32_t *set_slots;
    uint32_t n_set_slots;
    uint8_t class_of[256]; /* bytes that no set distinguishes have the same class */
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
/* Accepts one of n alternatives; n = 0 accepts nothing. */
uint32_t whit_automaton_split(whit_automaton *graph, const uint32_t *ways, size_t n);
uint32_t whit_automaton_rule(whit_automaton *graph); /* a new rule, to be defined; rule 0 is the root */
void whit_automaton_define(whit_automaton *graph, uint32_t rule, uint32_t begin);
uint32_t whit_automaton_call(whit_automaton *graph, uint32_t rule, uint32_t next);
/* Repeats a body, which was built with WHIT_AUTOMATON_RET as its `next`, min to max times. */
uint32_t whit_automaton_repeat(whit_automaton *graph, uint32_t body, uint32_t min, uint32_t max, uint32_t next);
/* As whit_automaton_repeat, for a body that is one character of a JSON string, before the closing quote: token masks of
 * such a repetition are computed in advance. */
uint32_t whit_automaton_characters(whit_automaton *graph, uint32_t body, uint32_t min, uint32_t max, uint32_t quote);
/* Accepts one code point of sorted, disjoint ranges, in UTF-8; surrogates are left out. */
uint32_t whit_automaton_code(whit_automaton *graph, const whit_code_range *ranges, size_t n, uint32_t next);
/* Describes a text for whit_automaton_words, which accepts one of n texts and merges common prefixes; the texts are
 * sorted by memcmp, without duplicates. */
typedef struct whit_automaton_word {
    const uint8_t *text;
    size_t n_bytes;
} whit_automaton_word;
uint32_t whit_automaton_words(whit_automaton *graph, const whit_automaton_word *words, size_t n, uint32_t next);

/* Checks the whole graph and prepares it: *bad_rule is a rule that is left-recursive (WHIT_ERROR_FORMAT). If no finite
 * text satisfies the root, or a bound is exceeded, there is an error and *bad_rule is WHIT_AUTOMATON_NONE. */
whit_status whit_automaton_finish(whit_automaton *graph, const char *name, uint32_t *bad_rule, whit_error *error);

#endif
