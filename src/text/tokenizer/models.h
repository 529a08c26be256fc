/* SPDX-License-Identifier: MIT
 * Implements the models of a tokenizer, which convert a piece of text to ids. */
#ifndef WHIT_TOKENIZER_MODELS_H
#define WHIT_TOKENIZER_MODELS_H

#include "tokenizer/image.h"

/* An entry of the cache of recent short pieces. Words repeat often, so their ids are kept in a direct-mapped table; an
 * entry has the size of a cache line. */
#define WHIT_CACHE_ENTRIES 16384u
#define WHIT_CACHE_TEXT    30
#define WHIT_CACHE_IDS     7
typedef struct whit_cached_piece {
    uint32_t hash;          /* hash of the text and of no_special */
    uint8_t n_bytes, n_ids; /* n_bytes 0: empty entry */
    uint8_t text[WHIT_CACHE_TEXT];
    int32_t ids[WHIT_CACHE_IDS];
} whit_cached_piece;

/* Memory that the models reuse. It may be used by one thread, for one image. */
typedef struct whit_model_scratch {
    whit_buf symbols, heap, nodes, cache;
    uint64_t steps_left; /* remaining steps in the trie, or for merging by text; see whit_model_scratch_begin */
    /* The text is from the user: special tokens whose text occurs in the vocabulary are not chosen. */
    bool no_special;
} whit_model_scratch;

void whit_model_scratch_init(whit_model_scratch *scratch, const whit_allocator *allocator);
/* Sets the number of steps that encoding a text of this size may take; called before each text. Real vocabularies need
 * less than a hundred steps per byte; only vocabularies that were made to be slow exceed the limit. */
void whit_model_scratch_begin(whit_model_scratch *scratch, size_t n_bytes);
void whit_model_scratch_free(whit_model_scratch *scratch);

/* Appends the ids (int32_t) of one piece, which is valid UTF-8, not empty, and has at most 1 GiB. BPE takes O(n log n)
 * time. Errors: memory; limit (the vocabulary was made to be slow); format (Unigram, WordLevel and WordPiece need the
 * unknown token, which the model lacks; BPE drops a character that is not in the vocabulary then). */
whit_status whit_tokenizer_encode_piece(const whit_tokenizer_view *view, whit_model_scratch *scratch,
                                        const uint8_t *piece, size_t n_bytes, whit_buf *ids, whit_error *error);

/* Appends the ids that merging results in, without looking for a token with the whole text. For
 * whit_tokenizer_encode_piece, the builder and tests. */
whit_status whit_tokenizer_merge_piece(const whit_tokenizer_view *view, whit_model_scratch *scratch,
                                       const uint8_t *piece, size_t n_bytes, whit_buf *ids, whit_error *error);

/* Encodes by Unigram: finds the segmentation with the highest sum of scores. */
whit_status whit_tokenizer_unigram(const whit_tokenizer_view *view, whit_model_scratch *scratch, const uint8_t *piece,
                                   size_t n_bytes, whit_buf *ids, whit_error *error);
/* Encodes by WordPiece: repeatedly takes the longest entry that the rest of the word begins with; all entries but the
 * first have the subword prefix. A word that is not composed of entries, or that is longer than the longest word of the
 * model, becomes the unknown token. */
whit_status whit_tokenizer_wordpiece(const whit_tokenizer_view *view, const whit_model_scratch *scratch,
                                     const uint8_t *piece, size_t n_bytes, whit_buf *ids, whit_error *error);

/* Appends the byte tokens <0xNN> of a text. *done is false, and nothing is appended, if the model has no byte fallback
 * or the vocabulary lacks one of them. */
whit_status whit_tokenizer_push_bytes(const whit_tokenizer_view *view, const uint8_t *text, size_t n_bytes, bool *done,
                                      whit_buf *ids, whit_error *error);
/* Returns whether the model may choose this id for the current text. */
static inline bool whit_may_pick(const whit_tokenizer_view *view, const whit_model_scratch *scratch, int32_t id)
{
    return !scratch->no_special || !(whit_tokenizer_token_flags(view, id) & WHIT_TOKEN_SPECIAL);
}

static inline whit_status whit_push_id(whit_buf *ids, int32_t id, whit_error *error)
{
    if (ids->capacity_bytes - ids->size_bytes >= sizeof id && !ids->failed) {
        memcpy(ids->data + ids->size_bytes, &id, sizeof id);
        ids->size_bytes += sizeof id;
        return WHIT_OK;
    }
    if (!whit_buf_append(ids, &id, sizeof id)) return whit_fail_memory(error, "token ids", ids->size_bytes + sizeof id);
    return WHIT_OK;
}

#endif
