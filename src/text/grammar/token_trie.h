/* SPDX-License-Identifier: MIT
 * Stores the bytes of all tokens as a trie in preorder, so that a walk can skip subtrees.
 *
 * The children of node i follow it; nodes[i].skip is the first node after its subtree. `order` lists the token ids in
 * the order of the walk, so that the ids of a subtree are contiguous in it. The trie is never changed after it was
 * built, and threads may share it. */
#ifndef WHIT_GRAMMAR_TOKEN_TRIE_H
#define WHIT_GRAMMAR_TOKEN_TRIE_H

#include "base/mem.h"
#include "whit/grammar.h"

typedef struct whit_token_trie_node {
    uint64_t kinds; /* bit set of the kinds of all bytes below the node; see kind_of */
    uint32_t skip, first_token;
    uint8_t byte, height; /* byte that leads to the node; number of bytes of the longest path below it, at most 255 */
    uint16_t depth;
    uint8_t utf8; /* position within a character after the node's byte, see token_trie.c */
    bool whole;   /* the node ends at a character boundary, and everything below it is valid UTF-8 */
    bool string;  /* the bytes from the root to every node below are characters of JSON strings without escapes */
} whit_token_trie_node;

struct whit_grammar_vocabulary {
    const whit_allocator *allocator;
    whit_token_trie_node *nodes; /* (n_nodes + 1); the last one only marks the end of `order` */
    uint32_t n_nodes, n_tokens;  /* n_tokens: number of ids, including those without bytes */
    uint32_t *order;             /* (n_order) token ids in the order of the walk */
    uint32_t n_order;
    uint32_t longest_bytes;
    uint32_t *begin; /* (n_tokens + 1) where each token's bytes begin in `bytes` */
    uint8_t *bytes;
    uint64_t *ends; /* (n_words) bit set of the tokens that end a text */
    uint32_t n_words;
    uint8_t kind_of[256];
    uint64_t utf8_kinds;   /* bit set of the kinds of bytes above 0x7F that occur in UTF-8 */
    uint64_t string_kinds; /* bit set of the kinds of characters that need no escape in a JSON string */
    /* (longest_bytes + 1, n_words) Row n is the bit set of the tokens that consist of at most n characters without
     * escapes, where an incomplete character at the end counts. It makes up most of the mask inside a JSON string, and
     * is computed in advance. */
    uint64_t *strings;
};

/* Appends the bytes of token `id` to `out`; appends no bytes for a token that cannot occur in a text. *is_end: the
 * token ends the text. */
typedef whit_status whit_token_bytes_fn(void *user, uint32_t id, whit_buf *out, bool *is_end, whit_error *error);
whit_status whit_token_trie_build(uint32_t n_tokens, whit_token_bytes_fn *bytes_of, void *user,
                                  const whit_allocator *allocator, whit_grammar_vocabulary **vocabulary,
                                  whit_error *error);
void whit_token_trie_free(whit_grammar_vocabulary *vocabulary);

#endif
