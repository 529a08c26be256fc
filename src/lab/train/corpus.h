/* SPDX-License-Identifier: MIT
 * Training text: files as one sequence of token ids, and windows drawn from it. */
#ifndef WHIT_TRAIN_CORPUS_H
#define WHIT_TRAIN_CORPUS_H

#include "base/mem.h"

/* A function of this type receives the name of some work, such as "reading the text", and the share of it that is done.
 * It returns false to cancel the work. */
typedef bool whit_corpus_fn(void *user, const char *what, double share);

typedef struct whit_corpus {
    int32_t *ids;
    size_t n, capacity;
    uint64_t *starts; /* (n_starts) indices of the BOS tokens at which documents begin, ascending; files that are added
                       * without `specials` have none */
    size_t n_starts, starts_capacity;
    size_t n_free;            /* number of ids up to the end of the last file that was added without `specials` while
                               * `starts` was empty; a window may begin at any of them */
    whit_corpus_fn *progress; /* receives the progress of reading a file or sampling a text; NULL: not called */
    void *user;
    const whit_allocator *allocator;
} whit_corpus; /* zero-initialised by the caller, except for the allocator */

/* Appends the ids of a text file, without a BOS token before them. With `specials`, special tokens that are written in
 * the text ("</s>") are encoded as such. Refuses an empty file. */
whit_status whit_corpus_add_file(whit_corpus *corpus, const whit_model *model, const char *path, bool specials,
                                 whit_error *error);
/* Appends existing ids. A document begins at each BOS among them. */
whit_status whit_corpus_add_ids(whit_corpus *corpus, const whit_model *model, const int32_t *ids, size_t n,
                                whit_error *error);
void whit_corpus_free(whit_corpus *corpus);

/* Copies window `number` of the endless sequence of windows that `seed` determines: its ids to ids (n_tokens), and the
 * id that follows each of them to targets (n_tokens). The window begins with a document if the beginnings of documents
 * are known, otherwise anywhere. In a corpus with both kinds of text, each kind gets a share of the windows that equals
 * its share of the ids. The corpus must have more than n_tokens ids. */
void whit_corpus_window(const whit_corpus *corpus, uint64_t seed, uint64_t number, uint32_t n_tokens, int32_t *ids,
                        int32_t *targets);

#endif
