/* SPDX-License-Identifier: MIT
 * Makes tokenizer images. A reader (from_*.c) fills a builder in this order: tokens, index, merges, added tokens,
 * steps, special ids; then finishes it. The builder refers to the texts of tokens, which must outlive it; strings of
 * steps and added tokens are copied. */
#ifndef WHIT_TOKENIZER_BUILDER_H
#define WHIT_TOKENIZER_BUILDER_H

#include "tokenizer/image.h"

typedef struct whit_tokenizer_builder {
    const whit_allocator *allocator;
    const char *name; /* name of the source, for messages */
    uint32_t max_tokens;
    whit_buf tokens; /* by id */
    whit_buf slots;  /* whit_token_slot[], once indexed */
    whit_buf merges; /* in rank order */
    whit_buf added;
    whit_buf normalize, split, decode; /* whit_tokenizer_step[] */
    whit_buf before, after, ends;      /* int32_t[] */
    whit_buf strings;
    bool has_scores;
    bool first_merge_counts;      /* the first of equal merges counts; else the last */
    whit_tokenizer_header header; /* model, flags, special ids and unk_score are the reader's */
} whit_tokenizer_builder;

/* Initialises a builder. `source_bytes` bounds the largest id, so that a file cannot ask for more memory than its size
 * justifies. */
void whit_tokenizer_builder_init(whit_tokenizer_builder *builder, const char *name, uint64_t source_bytes,
                                 const whit_allocator *allocator);
void whit_tokenizer_builder_close(whit_tokenizer_builder *builder);

/* Sets the text of an id. `flags` are WHIT_TOKEN_IN_VOCAB, _SPECIAL and a type; PRESENT is set here. An id that already
 * has another text is refused. */
whit_status whit_tokenizer_builder_token(whit_tokenizer_builder *builder, int64_t id, const char *text, size_t n_bytes,
                                         double score, uint8_t flags, whit_error *error);
/* Indexes the vocabulary after its last token, which allows find. If two ids have one text, the later is found. */
whit_status whit_tokenizer_builder_index(whit_tokenizer_builder *builder, whit_error *error);
int32_t whit_tokenizer_builder_find(const whit_tokenizer_builder *builder, const char *text, size_t n_bytes);
/* Returns any id with that text, added tokens included; -1 if not found. */
int32_t whit_tokenizer_builder_find_any(const whit_tokenizer_builder *builder, const char *text, size_t n_bytes);
/* Adds the next merge, by the texts of its two sides. A result that is not in the vocabulary is an error when `strict`,
 * and the merge is left out otherwise. */
whit_status whit_tokenizer_builder_merge(whit_tokenizer_builder *builder, const char *left, size_t left_bytes,
                                         const char *right, size_t right_bytes, bool strict, whit_error *error);
/* Adds a token that is cut out of the text before the model sees it. With `normalized` it is looked for in normalized
 * text as `match` (its own text put through the normalizers), else in raw text. */
whit_status whit_tokenizer_builder_added(whit_tokenizer_builder *builder, int32_t id, const char *match,
                                         size_t match_bytes, bool normalized, uint32_t flags, whit_error *error);
/* Appends a step to `steps` (one of the builder's three lists). */
whit_status whit_tokenizer_builder_step(whit_tokenizer_builder *builder, whit_buf *steps, whit_tokenizer_step step,
                                        const char *text, size_t text_bytes, const char *content, size_t content_bytes,
                                        whit_error *error);
whit_status whit_tokenizer_builder_id(whit_tokenizer_builder *builder, whit_buf *ids, int64_t id, whit_error *error);
/* Adds an id that ends a text or turn (-1 and repeats are fine); end_names adds eos and the special
 * tokens that are known to end a turn. */
whit_status whit_tokenizer_builder_end(whit_tokenizer_builder *builder, int64_t id, whit_error *error);
whit_status whit_tokenizer_builder_end_names(whit_tokenizer_builder *builder, whit_error *error);
/* Returns whether this is the text of a token that is known to end a turn. */
bool whit_tokenizer_is_end_name(const char *text, size_t n_bytes);
/* Sets the subword prefix and the word suffix. */
whit_status whit_tokenizer_builder_affixes(whit_tokenizer_builder *builder, const char *prefix, size_t prefix_bytes,
                                           const char *suffix, size_t suffix_bytes, whit_error *error);

/* Appends the image to `image` (whose offset there must be a multiple of 8; usually it is empty).
 * Takes time in proportion to the texts, plus encoding every token once. */
whit_status whit_tokenizer_builder_finish(whit_tokenizer_builder *builder, whit_buf *image, whit_error *error);

#endif
