/* SPDX-License-Identifier: MIT
 * Samples training text from a model. */
#ifndef WHIT_TRAIN_SAMPLE_H
#define WHIT_TRAIN_SAMPLE_H

#include "train/corpus.h"

typedef struct whit_sample_options {
    size_t n_tokens;    /* minimum number of tokens */
    uint32_t n_longest; /* maximum number of tokens of a document */
    uint64_t seed;
    uint32_t n_threads; /* 0: the default of sessions; the text does not depend on it */
    const volatile bool *cancel;
} whit_sample_options;

/* Appends documents drawn from the model's own distribution (temperature 1, nothing cut off), each from its
 * beginning-of-text token to its end. If the model's prompts have no such token, a document continues eight tokens of
 * the text that the corpus has. The same options give the same ids. Refuses a model without such a token if there is no
 * text. */
whit_status whit_corpus_add_samples(whit_corpus *corpus, const whit_model *model, const whit_sample_options *options,
                                    whit_error *error);
/* Appends documents of n_longest tokens that are drawn uniformly from the vocabulary, in total at least n_tokens, so
 * that words occur that a text lacks. Each begins with BOS if the model's prompts begin with it. */
whit_status whit_corpus_add_random(whit_corpus *corpus, const whit_model *model, const whit_sample_options *options,
                                   whit_error *error);

#endif
