/* SPDX-License-Identifier: MIT */
#include "tokenizer/models.h"
#include "base/items.h"

#define STEPS_PER_BYTE 256u
#define STEPS_ALLOWED  (16u << 20)

void whit_model_scratch_init(whit_model_scratch *scratch, const whit_allocator *allocator)
{
    *scratch = (whit_model_scratch){0};
    scratch->symbols.allocator = scratch->heap.allocator = allocator;
    scratch->nodes.allocator = scratch->cache.allocator = allocator;
}

void whit_model_scratch_begin(whit_model_scratch *scratch, size_t n_bytes)
{
    /* An earlier call may have run out of memory; the buffers can be used again. */
    scratch->symbols.failed = scratch->heap.failed = scratch->nodes.failed = false;
    scratch->cache.failed = false;
    scratch->steps_left = STEPS_ALLOWED + STEPS_PER_BYTE * (uint64_t)n_bytes;
}

void whit_model_scratch_free(whit_model_scratch *scratch)
{
    whit_buf_free(&scratch->symbols);
    whit_buf_free(&scratch->heap);
    whit_buf_free(&scratch->nodes);
    whit_buf_free(&scratch->cache);
}

whit_status whit_tokenizer_push_bytes(const whit_tokenizer_view *view, const uint8_t *text, size_t n_bytes, bool *done,
                                      whit_buf *ids, whit_error *error)
{
    size_t n;
    const int32_t *fallback = whit_tokenizer_section(view, WHIT_TOKENS_FALLBACK, 4, &n);
    *done = view->header->flags & WHIT_TOKENIZER_BYTE_FALLBACK;
    for (size_t i = 0; i < n_bytes && *done; i++) *done = fallback[text[i]] >= 0;
    for (size_t i = 0; i < n_bytes && *done; i++) WHIT_TRY(whit_push_id(ids, fallback[text[i]], error));
    return WHIT_OK;
}

/* Returns where a long text can be divided because no merge crosses this position (WHIT_TOKENIZER_CUT_AT_SPACE): before
 * the first U+2581 that follows another character. This keeps pieces short if there is no pre-tokenizer. Returns n if
 * there is no such position. */
static size_t next_cut(const uint8_t *text, size_t n)
{
    for (size_t i = 3; i + 3 <= n; i++) {
        const uint8_t *mark = memchr(text + i, 0xE2, n - i - 2);
        if (!mark) break;
        i = (size_t)(mark - text);
        if (mark[1] == 0x96 && mark[2] == 0x81 && memcmp(mark - 3, mark, 3) != 0) return i;
    }
    return n;
}

static whit_status encode_new(const whit_tokenizer_view *view, whit_model_scratch *scratch, const uint8_t *piece,
                              size_t n_bytes, uint32_t hash, whit_buf *ids, whit_error *error)
{
    const uint8_t wanted = WHIT_TOKEN_IN_VOCAB | WHIT_TOKEN_WHOLE;
    int32_t id = whit_tokenizer_lookup_hashed(view, piece, n_bytes, hash);
    if (id >= 0 && (whit_tokenizer_token_flags(view, id) & wanted) == wanted && whit_may_pick(view, scratch, id))
        return whit_push_id(ids, id, error);
    return whit_tokenizer_merge_piece(view, scratch, piece, n_bytes, ids, error);
}

static whit_status encode_bpe(const whit_tokenizer_view *view, whit_model_scratch *scratch, const uint8_t *piece,
                              size_t n_bytes, whit_buf *ids, whit_error *error)
{
    uint32_t hash = whit_tokenizer_hash(piece, n_bytes);
    if (n_bytes > WHIT_CACHE_TEXT || n_bytes == 0) return encode_new(view, scratch, piece, n_bytes, hash, ids, error);
    if (scratch->cache.size_bytes == 0 &&
        !whit_buf_append_zeros(&scratch->cache, WHIT_CACHE_ENTRIES * sizeof(whit_cached_piece)))
        return whit_fail_memory(error, "the tokenizer's cache of words",
                                WHIT_CACHE_ENTRIES * sizeof(whit_cached_piece));
    /* Text that may not become special tokens has separate cache entries. */
    uint32_t key = hash ^ (scratch->no_special ? 0x9E3779B9u : 0);
    whit_cached_piece *cached = WHIT_ITEMS(whit_cached_piece, &scratch->cache) + key % WHIT_CACHE_ENTRIES;
    if (cached->hash == key && cached->n_bytes == n_bytes && memcmp(cached->text, piece, n_bytes) == 0) {
        for (int i = 0; i < cached->n_ids; i++) WHIT_TRY(whit_push_id(ids, cached->ids[i], error));
        return WHIT_OK;
    }
    size_t before = ids->size_bytes;
    WHIT_TRY(encode_new(view, scratch, piece, n_bytes, hash, ids, error));
    size_t n_ids = (ids->size_bytes - before) / sizeof(int32_t);
    if (n_ids > WHIT_CACHE_IDS) return WHIT_OK;
    cached->hash = key;
    cached->n_bytes = (uint8_t)n_bytes;
    cached->n_ids = (uint8_t)n_ids;
    memcpy(cached->text, piece, n_bytes);
    if (n_ids) memcpy(cached->ids, ids->data + before, n_ids * sizeof(int32_t));
    return WHIT_OK;
}

static whit_status encode_wordlevel(const whit_tokenizer_view *view, const whit_model_scratch *scratch,
                                    const uint8_t *piece, size_t n_bytes, whit_buf *ids, whit_error *error)
{
    int32_t id = whit_tokenizer_lookup(view, piece, n_bytes);
    if (id < 0 || !whit_may_pick(view, scratch, id)) id = view->header->unk;
    if (id < 0)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "tokenizer: the vocabulary has neither a word of the text nor a token for unknown ones");
    return whit_push_id(ids, id, error);
}

whit_status whit_tokenizer_encode_piece(const whit_tokenizer_view *view, whit_model_scratch *scratch,
                                        const uint8_t *piece, size_t n_bytes, whit_buf *ids, whit_error *error)
{
    switch (view->header->model) {
    case WHIT_TOKENIZER_UNIGRAM: return whit_tokenizer_unigram(view, scratch, piece, n_bytes, ids, error);
    case WHIT_TOKENIZER_WORDLEVEL: return encode_wordlevel(view, scratch, piece, n_bytes, ids, error);
    case WHIT_TOKENIZER_WORDPIECE: return whit_tokenizer_wordpiece(view, scratch, piece, n_bytes, ids, error);
    default: break;
    }
    if (!(view->header->flags & WHIT_TOKENIZER_CUT_AT_SPACE))
        return encode_bpe(view, scratch, piece, n_bytes, ids, error);
    for (size_t cut; n_bytes; piece += cut, n_bytes -= cut) {
        cut = next_cut(piece, n_bytes);
        WHIT_TRY(encode_bpe(view, scratch, piece, cut, ids, error));
    }
    return WHIT_OK;
}
