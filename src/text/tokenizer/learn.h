/* SPDX-License-Identifier: MIT
 * Learns a vocabulary from text: byte pair encoding (Sennrich, Haddow, Birch 2016) with SentencePiece's conventions.
 *
 * Text is divided into words: runs of letters (all characters outside ASCII count as letters, and so does an apostrophe
 * between letters), single digits, runs of other signs, single white-space characters. One space before a word belongs
 * to the word, as U+2581. A word of more than 128 bytes is divided. The characters that make up 99.95 % of the text
 * become pieces. Then, repeatedly, the most frequent pair of adjacent pieces in words becomes a piece; of equally
 * frequent pairs, the one whose pieces were learned earlier. A character without a piece is spelt in byte pieces, so
 * that any text can be encoded.
 *
 * The ids are in this order: <unk>, <s>, </s>, special tokens as given, 256 bytes, merges in order, characters. The
 * same text always results in the same vocabulary. Only one thread at a time may use a learner. */
#ifndef WHIT_TOKENIZER_LEARN_H
#define WHIT_TOKENIZER_LEARN_H

#include "base/mem.h"

typedef struct whit_learn_options {
    uint32_t n_tokens; /* number of tokens wanted, including all the kinds above */
    /* Further special tokens. Their occurrences in the text, and those of <unk>, <s> and </s>, belong to no word. */
    const char *const *specials;
    size_t n_specials;
} whit_learn_options;

typedef struct whit_learner whit_learner;

/* Opens a learner. `options` and the memory it points to must outlive the learner. It is an error if n_tokens is too
 * small for the tokens that always exist or above 2^20, or if a special token is empty, repeated, or one of <unk>, <s>,
 * </s>. */
whit_status whit_learner_open(const whit_learn_options *options, const whit_allocator *allocator,
                              whit_learner **learner, whit_error *error);
/* Counts the words of a text. Memory use grows with the number of different words. */
whit_status whit_learner_add(whit_learner *learner, const char *text, size_t text_bytes, whit_error *error);
/* Appends the tokenizer's image. If too few pairs occur at least twice, there are fewer tokens than wanted. The time
 * depends on the number of different words, not on the size of the text. */
whit_status whit_learner_finish(whit_learner *learner, whit_buf *image, whit_error *error);
void whit_learner_close(whit_learner *learner); /* accepts NULL */

#endif
