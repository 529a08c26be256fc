/* SPDX-License-Identifier: MIT
 * Holds training text: files as one sequence of token ids, and windows drawn from it. */
#ifndef WHIT_TRAIN_CORPUS_H
#define WHIT_TRAIN_CORPUS_H

#include "base/mem.h"

/* Functions of this type receive the share of some work that is done, and return false to end the work. */
typedef bool whit_corpus_fn(void *user, const char *what, double share);

typedef struct whit_corpus {
    int32_t *ids;
    size_t n, capacity;
    uint64_t *starts; /* places of BOS, where documents begin, rising; only with specials */
    size_t n_starts, starts_capacity;
    size_t n_free;            /* leading ids from files without specials: windows begin anywhere in them */
    whit_corpus_fn *progress; /* receives how far a file is read, or a text sampled; NULL: not called */
    void *user;
    const whit_allocator *allocator;
} whit_corpus; /* zero-initialise with the allocator set */

/* Appends the ids of a text file, without a BOS token before them. With `specials`, special tokens written in the text
 * ("</s>") are encoded as such. Refuses an empty file. */
whit_status whit_corpus_add_file(whit_corpus *corpus, const whit_model *model, const char *path, bool specials,
                                 whit_error *error);
/* Appends existing ids; a document begins at every BOS. */
whit_status whit_corpus_add_ids(whit_corpus *corpus, const whit_model *model, const int32_t *ids, size_t n,
                                whit_error *error);
void whit_corpus_free(whit_corpus *corpus);

/* Copies window `number` of the endless sequence that `seed` draws: ids (n_tokens), and targets (n_tokens), the ids
 * that follow each. The window begins with a document if the beginnings of documents are known, otherwise anywhere; in
 * a corpus of both kinds of text, each kind has the share of windows that it has of the ids. The corpus must have more
 * than n_tokens ids. */
void whit_corpus_window(const whit_corpus *corpus, uint64_t seed, uint64_t number, uint32_t n_tokens, int32_t *ids,
                        int32_t *targets);

#endif
