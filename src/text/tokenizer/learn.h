/* SPDX-License-Identifier: MIT
 * Learns a vocabulary from text: byte-pair encoding (Sennrich, Haddow, Birch 2016) with SentencePiece's conventions.
 *
 * Text is cut into words: runs of letters (an apostrophe between letters counts as a letter), single digits, runs of
 * other signs, single white space; one space before a word belongs to the word, as U+2581. The characters that make up
 * 99.95 % of the text become pieces. Then, again and again, the pair of neighbouring pieces that is most frequent
 * inside words becomes a piece (of equally frequent pairs the one whose pieces are older). A character without a piece
 * is spelt in byte pieces, so any text can be encoded.
 *
 * The ids are in this order: <unk>, <s>, </s>, special tokens as given, 256 bytes, merges in order, characters. The
 * same text gives the same vocabulary. Only one thread may use it at a time. */
#ifndef WHIT_TOKENIZER_LEARN_H
#define WHIT_TOKENIZER_LEARN_H

#include "base/mem.h"

typedef struct whit_learn_options {
    uint32_t n_tokens; /* number of pieces wanted, which counts all of the kinds above */
    /* These are further special tokens; their occurrences in the text (and those of <s>, </s>) are not learned from. */
    const char *const *specials;
    size_t n_specials;
} whit_learn_options;

typedef struct whit_learner whit_learner;

/* Opens a learner. `options` and what it points to outlive the learner. Refuses sizes that leave no room, and special
 * tokens that are empty, repeated, or present anyway (<unk>, <s>, </s>). */
whit_status whit_learner_open(const whit_learn_options *options, const whit_allocator *allocator,
                              whit_learner **learner, whit_error *error);
/* Counts the words of a text. The memory grows with the different words. */
whit_status whit_learner_add(whit_learner *learner, const char *text, size_t text_bytes, whit_error *error);
/* Appends the tokenizer's image. A text with too few different pairs gives fewer pieces than
 * wanted. Time grows with the different words, not with the text. */
whit_status whit_learner_finish(whit_learner *learner, whit_buf *image, whit_error *error);
void whit_learner_close(whit_learner *learner); /* accepts NULL */

#endif
