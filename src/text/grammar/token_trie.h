/* SPDX-License-Identifier: MIT
 * Stores the bytes of all tokens as a trie in preorder, so that a walk can skip subtrees that no longer fit.
 *
 *     node i:  children follow it, `skip` is the first node outside its subtree
 *     tokens:  ids in the order of the walk; the ids of a subtree lie side by side
 *
 * It never changes once built; threads may share it. */
#ifndef WHIT_GRAMMAR_TOKEN_TRIE_H
#define WHIT_GRAMMAR_TOKEN_TRIE_H

#include "base/mem.h"
#include "whit/grammar.h"

typedef struct whit_token_trie_node {
    uint64_t kinds; /* kinds of the bytes below the node, as bits; see kind_of */
    uint32_t skip, first_token;
    uint8_t byte, height; /* byte of the node; bytes of the longest path below it, at most 255 */
    uint16_t depth;
    uint8_t utf8; /* where in a character the node ends, see token_trie.c */
    bool whole;   /* the node ends at a character boundary, and everything below it is valid UTF-8 */
    bool string;  /* the bytes from the root to every node below are plain text of JSON strings */
} whit_token_trie_node;

struct whit_grammar_vocabulary {
    const whit_allocator *allocator;
    whit_token_trie_node *nodes; /* (n_nodes + 1): the last one only ends token ranges */
    uint32_t n_nodes, n_tokens;  /* ids, including those without bytes */
    uint32_t *order;             /* (n_order) ids in the order of the walk */
    uint32_t n_order;
    uint32_t longest_bytes;
    uint32_t *begin; /* (n_tokens + 1) into `bytes`, by id */
    uint8_t *bytes;
    uint64_t *ends; /* (n_words) ids that end a text */
    uint32_t n_words;
    uint8_t kind_of[256];
    uint64_t utf8_kinds;   /* kinds of the bytes beyond ASCII that occur in UTF-8 */
    uint64_t string_kinds; /* kinds of the characters that need no escape in a JSON string */
    /* Row n of (longest_bytes + 1, n_words) has the tokens that consist only of such characters, at most n of them, a
     * character that is cut off counted. It is most of a string's mask, computed in advance. */
    uint64_t *strings;
};

/* Appends the bytes of token `id` to `out`; nothing for a token that cannot occur in a text. */
typedef whit_status whit_token_bytes_fn(void *user, uint32_t id, whit_buf *out, bool *is_end, whit_error *error);
whit_status whit_token_trie_build(uint32_t n_tokens, whit_token_bytes_fn *bytes_of, void *user,
                                  const whit_allocator *allocator, whit_grammar_vocabulary **vocabulary,
                                  whit_error *error);
void whit_token_trie_free(whit_grammar_vocabulary *vocabulary);

#endif
