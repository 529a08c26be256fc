/* SPDX-License-Identifier: MIT
 * Declares the members of a compiled grammar and of its states. */
#ifndef WHIT_GRAMMAR_GRAMMAR_H
#define WHIT_GRAMMAR_GRAMMAR_H

#include "grammar/machine.h"
#include "grammar/token_trie.h"

struct whit_grammar {
    const whit_grammar_vocabulary *vocabulary;
    const whit_allocator *allocator;
    whit_automaton graph;
    /* Configurations are stored in `exact`. For masks, counts that no single token can reach are treated as
     * unbounded (`bounded`), so that "400 characters left" and "399 left" are one state with one mask. */
    whit_state_pool exact, bounded;
    whit_grammar_state *states;
    uint32_t begin, collect_at; /* first configuration; number of frames at which unused frames are collected */
    uint64_t *masks;            /* (n_masks, n_words) */
    uint32_t *mask_owner;       /* configuration, plus 1 */
    uint32_t n_masks, next_mask;
    uint32_t *path; /* (longest token + 1) configurations of a walk */
};

struct whit_grammar_state {
    whit_grammar *grammar;
    whit_grammar_state *next, **link;
    uint32_t now, n_past;
    uint32_t past[WHIT_GRAMMAR_ROLLBACK_MAX]; /* the configurations before the last tokens, newest last */
};

/* Makes a grammar, which takes the finished graph over, also on failure. */
whit_status whit_grammar_make(const whit_grammar_vocabulary *vocabulary, whit_automaton *graph, const char *name,
                              whit_grammar **grammar, whit_error *error);

#endif
