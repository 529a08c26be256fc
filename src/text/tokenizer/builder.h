/* SPDX-License-Identifier: MIT
 * Builds tokenizer images. A reader (from_*.c) fills a builder in this order: tokens, index, merges, added tokens,
 * steps, special ids; then it calls whit_tokenizer_builder_finish. Texts of tokens are not copied and must outlive the
 * builder; strings of steps and of added tokens are copied. */
#ifndef WHIT_TOKENIZER_BUILDER_H
#define WHIT_TOKENIZER_BUILDER_H

#include "tokenizer/image.h"

typedef struct whit_tokenizer_builder {
    const whit_allocator *allocator;
    const char *name; /* name of the source, for messages */
    uint32_t max_tokens;
    whit_buf tokens; /* array of tokens, indexed by id */
    whit_buf slots;  /* array of whit_token_slot, after whit_tokenizer_builder_index */
    whit_buf merges; /* array of merges, in the order of ranks */
    whit_buf added;
    whit_buf normalize, split, decode; /* arrays of whit_tokenizer_step */
    whit_buf before, after, ends;      /* arrays of int32_t: ids added before and after a text, ids that end a text or a
                                        * turn */
    whit_buf strings;
    bool has_scores;
    bool first_merge_counts;      /* the first of several equal merges counts; false: the last */
    whit_tokenizer_header header; /* the reader sets model, flags, special ids and unk_score */
} whit_tokenizer_builder;

/* Initialises a builder. `source_bytes`, the size of the source, limits the largest id: a small file cannot make the
 * builder use much memory. */
void whit_tokenizer_builder_init(whit_tokenizer_builder *builder, const char *name, uint64_t source_bytes,
                                 const whit_allocator *allocator);
void whit_tokenizer_builder_close(whit_tokenizer_builder *builder);

/* Sets the text of a token. `flags`: WHIT_TOKEN_IN_VOCAB, WHIT_TOKEN_SPECIAL and a token type; PRESENT is added here.
 * It is an error if the id already has another text. */
whit_status whit_tokenizer_builder_token(whit_tokenizer_builder *builder, int64_t id, const char *text, size_t n_bytes,
                                         double score, uint8_t flags, whit_error *error);
/* Builds the index of the vocabulary, after all tokens were added. It is needed for whit_tokenizer_builder_find. If two
 * ids have the same text, the later one is found. */
whit_status whit_tokenizer_builder_index(whit_tokenizer_builder *builder, whit_error *error);
int32_t whit_tokenizer_builder_find(const whit_tokenizer_builder *builder, const char *text, size_t n_bytes);
/* Returns an id with this text, which may be an added token; -1 if not found. */
int32_t whit_tokenizer_builder_find_any(const whit_tokenizer_builder *builder, const char *text, size_t n_bytes);
/* Adds the next merge, given by the texts of its two sides. If a side or their joined text is not in the vocabulary,
 * this is an error with `strict`, and otherwise the merge never applies. */
whit_status whit_tokenizer_builder_merge(whit_tokenizer_builder *builder, const char *left, size_t left_bytes,
                                         const char *right, size_t right_bytes, bool strict, whit_error *error);
/* Adds an added token: its occurrences are cut out of the text before the model sees it. With `normalized`, `match` is
 * the token's text after the normalizers, and is searched for in normalized text; otherwise it is searched for in the
 * raw text. */
whit_status whit_tokenizer_builder_added(whit_tokenizer_builder *builder, int32_t id, const char *match,
                                         size_t match_bytes, bool normalized, uint32_t flags, whit_error *error);
/* Appends a step to `steps`, which is one of the builder's three lists of steps. The strings are copied. */
whit_status whit_tokenizer_builder_step(whit_tokenizer_builder *builder, whit_buf *steps, whit_tokenizer_step step,
                                        const char *text, size_t text_bytes, const char *content, size_t content_bytes,
                                        whit_error *error);
whit_status whit_tokenizer_builder_id(whit_tokenizer_builder *builder, whit_buf *ids, int64_t id, whit_error *error);
/* Adds an id that ends a text or a turn; -1 and repeated ids are ignored. end_names adds eos and all special tokens
 * whose text is known to end a turn. */
whit_status whit_tokenizer_builder_end(whit_tokenizer_builder *builder, int64_t id, whit_error *error);
whit_status whit_tokenizer_builder_end_names(whit_tokenizer_builder *builder, whit_error *error);
/* Returns whether a token with this text is known to end a turn. */
bool whit_tokenizer_is_end_name(const char *text, size_t n_bytes);
/* Sets the prefix of subwords that continue a word, and the suffix of a word's last subword. */
whit_status whit_tokenizer_builder_affixes(whit_tokenizer_builder *builder, const char *prefix, size_t prefix_bytes,
                                           const char *suffix, size_t suffix_bytes, whit_error *error);

/* Appends the image to `image`, whose size must be a multiple of 8 before. The time is proportional to the texts, plus
 * encoding every token once. */
whit_status whit_tokenizer_builder_finish(whit_tokenizer_builder *builder, whit_buf *image, whit_error *error);

#endif
