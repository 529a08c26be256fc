/* SPDX-License-Identifier: MIT
 * Encodes texts and triples as hypervectors, the same on every machine.
 *
 * A text is first normalised: ASCII letters become lower case, each run of white space becomes one blank, and a blank
 * is added before and after. The text is the bundle of its trigrams of bytes. A trigram binds the hypervectors of its
 * bytes, each permuted by its position in the trigram. A triple is the bundle of three bindings: of a role and its
 * value, for the subject, the predicate and the object; a value is one hypervector of the whole string. */
#ifndef WHIT_MEMORY_ENCODE_H
#define WHIT_MEMORY_ENCODE_H

#include "memory/hyper.h"

#define WHIT_MEMORY_BITS     8192
#define WHIT_MEMORY_WORDS    (WHIT_MEMORY_BITS / 64)
#define WHIT_MEMORY_MAX_TEXT 65000 /* maximum number of bytes of a text */

typedef struct whit_encoder {
    uint64_t *letters; /* (3, 256, WHIT_MEMORY_WORDS) hypervectors by position in a trigram and byte */
    uint64_t ties[WHIT_MEMORY_WORDS];
    whit_hyper_bundle bundle;
    const whit_allocator *allocator;
} whit_encoder;

whit_status whit_encoder_open(const whit_allocator *allocator, whit_encoder *encoder, whit_error *error);
void whit_encoder_close(whit_encoder *encoder);

/* Encodes a text. The error is WHIT_ERROR_LIMIT if it is too long. */
whit_status whit_encode_text(whit_encoder *encoder, const char *text, size_t n_bytes, uint64_t out[WHIT_MEMORY_WORDS],
                             whit_error *error);
/* Encodes a triple of subject, predicate and object. Parts that are NULL are omitted, as in a query. */
void whit_encode_triple(whit_encoder *encoder, const char *const parts[3], uint64_t out[WHIT_MEMORY_WORDS]);

#endif
