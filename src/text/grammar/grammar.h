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
    /* Configurations (machine.h) are stored in `exact`. Masks are computed in `bounded`, where counts that no single
     * token can exhaust are unlimited. "400 characters left" and "399 left" are thus one configuration with one
     * mask. */
    whit_state_pool exact, bounded;
    whit_grammar_state *states;
    /* begin: the first configuration; collect_at: number of frames, or of configurations, at which unused ones are
     * removed. */
    uint32_t begin, collect_at;
    uint64_t *masks;      /* (n_masks, n_words) bits of the allowed tokens */
    uint32_t *mask_owner; /* (n_masks) configuration that each mask belongs to, plus 1; 0: free */
    uint32_t n_masks, next_mask;
    uint32_t *path; /* (length of the longest token + 1) configurations after each byte of the current path in the
                     * trie */
};

struct whit_grammar_state {
    whit_grammar *grammar;
    whit_grammar_state *next, **link;
    uint32_t now, n_past;
    uint32_t past[WHIT_GRAMMAR_ROLLBACK_MAX]; /* configurations before each of the last tokens, newest last */
};

/* Creates a grammar from a finished graph, whose memory it takes over, even on failure. `name` is for messages. */
whit_status whit_grammar_make(const whit_grammar_vocabulary *vocabulary, whit_automaton *graph, const char *name,
                              whit_grammar **grammar, whit_error *error);

#endif
