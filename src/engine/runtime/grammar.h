/* SPDX-License-Identifier: MIT
 * Builds the vocabularies of grammars from tokenizers. */
#ifndef WHIT_RUNTIME_GRAMMAR_H
#define WHIT_RUNTIME_GRAMMAR_H

#include "grammar/token_trie.h"
#include "tokenizer/image.h"

/* Builds the trie of the bytes of n_vocab ids; error messages begin with `name`. Special tokens have no bytes, except
 * special tokens whose text is in the list `spelled` (ended by NULL); tokens that end a text never have bytes. */
whit_status whit_token_trie_of_tokenizer(const whit_tokenizer_view *view, uint32_t n_vocab, const char *const *spelled,
                                         const char *name, const whit_allocator *allocator,
                                         whit_grammar_vocabulary **vocabulary, whit_error *error);

#endif
