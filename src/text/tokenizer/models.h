/* SPDX-License-Identifier: MIT
 * Implements the models of a tokenizer, which convert one piece of text to ids. */
#ifndef WHIT_TOKENIZER_MODELS_H
#define WHIT_TOKENIZER_MODELS_H

#include "tokenizer/image.h"

/* Holds an entry of the cache: words repeat, so a direct-mapped table keeps the ids of recent short pieces, one cache
 * line each. */
#define WHIT_CACHE_ENTRIES 16384u
#define WHIT_CACHE_TEXT    30
#define WHIT_CACHE_IDS     7
typedef struct whit_cached_piece {
    uint32_t hash;          /* hash of the text and of no_special */
    uint8_t n_bytes, n_ids; /* n_bytes 0: empty */
    uint8_t text[WHIT_CACHE_TEXT];
    int32_t ids[WHIT_CACHE_IDS];
} whit_cached_piece;

/* Holds the memory that the models use again; it belongs to one thread and one image. */
typedef struct whit_model_scratch {
    whit_buf symbols, heap, nodes, cache;
    uint64_t steps_left; /* steps that are left in the trie, or for merging by text; see whit_model_scratch_begin */
    /* The text comes from the user: special tokens that the vocabulary spells out are not picked. */
    bool no_special;
} whit_model_scratch;

void whit_model_scratch_init(whit_model_scratch *scratch, const whit_allocator *allocator);
/* Sets, before each text, the steps that encoding a text of this size may take in all. Real vocabularies need under a
 * hundred for each byte; only vocabularies made to be slow run out. */
void whit_model_scratch_begin(whit_model_scratch *scratch, size_t n_bytes);
void whit_model_scratch_free(whit_model_scratch *scratch);

/* Appends the ids (int32_t) of one non-empty piece of at most 1 GiB, valid UTF-8. BPE takes O(n log n) time. Errors:
 * memory; limit (a vocabulary made to take for ever); format (a character that the vocabulary lacks, if it has no
 * unknown token and the model demands one). */
whit_status whit_tokenizer_encode_piece(const whit_tokenizer_view *view, whit_model_scratch *scratch,
                                        const uint8_t *piece, size_t n_bytes, whit_buf *ids, whit_error *error);

/* Appends the ids that merging alone gives, without looking the whole piece up (for the builder and tests). */
whit_status whit_tokenizer_merge_piece(const whit_tokenizer_view *view, whit_model_scratch *scratch,
                                       const uint8_t *piece, size_t n_bytes, whit_buf *ids, whit_error *error);

/* Encodes by Unigram: the segmentation with the highest sum of scores. */
whit_status whit_tokenizer_unigram(const whit_tokenizer_view *view, whit_model_scratch *scratch, const uint8_t *piece,
                                   size_t n_bytes, whit_buf *ids, whit_error *error);
/* Encodes by WordPiece: the longest entry first, later entries with the continuing prefix. */
whit_status whit_tokenizer_wordpiece(const whit_tokenizer_view *view, const whit_model_scratch *scratch,
                                     const uint8_t *piece, size_t n_bytes, whit_buf *ids, whit_error *error);

/* Appends the <0xNN> tokens of the bytes, if the vocabulary has all of them; else *done is false.
 */
whit_status whit_tokenizer_push_bytes(const whit_tokenizer_view *view, const uint8_t *text, size_t n_bytes, bool *done,
                                      whit_buf *ids, whit_error *error);
/* Returns whether the model may pick this id in the present text. */
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
