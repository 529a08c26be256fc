/* SPDX-License-Identifier: MIT
 * Samples training text from a model. */
#ifndef WHIT_TRAIN_SAMPLE_H
#define WHIT_TRAIN_SAMPLE_H

#include "train/corpus.h"

typedef struct whit_sample_options {
    size_t n_tokens;    /* minimum number of tokens in total */
    uint32_t n_longest; /* maximum number of tokens per document */
    uint64_t seed;
    uint32_t n_threads; /* 0: the default of sessions; the text is the same for any number */
    const volatile bool *cancel;
} whit_sample_options;

/* Appends documents drawn from the model's own distribution (temperature 1, no token excluded). Each begins with the
 * model's BOS token, and ends with an end token or after n_longest tokens. If the model's prompts do not begin with BOS
 * and the corpus already has eight tokens, each document begins with eight tokens from a random place in it instead.
 * The same options give the same ids. A model without BOS is refused if the corpus has fewer than eight tokens. */
whit_status whit_corpus_add_samples(whit_corpus *corpus, const whit_model *model, const whit_sample_options *options,
                                    whit_error *error);
/* Appends documents of n_longest tokens drawn uniformly from the vocabulary (the next id in place of BOS), at least
 * n_tokens tokens in total, so that words occur that a text lacks. Each document begins with BOS if the model's prompts
 * do. */
whit_status whit_corpus_add_random(whit_corpus *corpus, const whit_model *model, const whit_sample_options *options,
                                   whit_error *error);

#endif
