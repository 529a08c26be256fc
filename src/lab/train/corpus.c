/* SPDX-License-Identifier: MIT */
#include "train/corpus.h"

#include "base/file.h"
#include "base/rng.h"

#define PIECE_BYTES ((size_t)1 << 20) /* largest number of bytes that are given to the tokenizer at a time */

void whit_corpus_free(whit_corpus *corpus)
{
    whit_free(corpus->allocator, corpus->ids, corpus->capacity * sizeof *corpus->ids);
    whit_free(corpus->allocator, corpus->starts, corpus->starts_capacity * sizeof *corpus->starts);
    *corpus = (whit_corpus){.allocator = corpus->allocator};
}

static whit_status reserve(whit_corpus *corpus, size_t extra, whit_error *error)
{
    if (extra <= corpus->capacity - corpus->n) return WHIT_OK;
    size_t capacity = corpus->capacity * 2 > corpus->n + extra ? corpus->capacity * 2 : corpus->n + extra;
    int32_t *larger = whit_zalloc_array(corpus->allocator, capacity, sizeof *larger);
    if (!larger) return whit_fail_memory(error, "the training text", capacity * sizeof *larger);
    if (corpus->n) memcpy(larger, corpus->ids, corpus->n * sizeof *larger);
    whit_free(corpus->allocator, corpus->ids, corpus->capacity * sizeof *larger);
    corpus->ids = larger;
    corpus->capacity = capacity;
    return WHIT_OK;
}

static whit_status add_start(whit_corpus *corpus, size_t at, whit_error *error)
{
    if (corpus->n_starts == corpus->starts_capacity) {
        size_t capacity = corpus->starts_capacity ? 2 * corpus->starts_capacity : 1024;
        uint64_t *larger = whit_zalloc_array(corpus->allocator, capacity, sizeof *larger);
        if (!larger) return whit_fail_memory(error, "the training text", capacity * sizeof *larger);
        if (corpus->n_starts) memcpy(larger, corpus->starts, corpus->n_starts * sizeof *larger);
        whit_free(corpus->allocator, corpus->starts, corpus->starts_capacity * sizeof *larger);
        corpus->starts = larger;
        corpus->starts_capacity = capacity;
    }
    corpus->starts[corpus->n_starts++] = at;
    return WHIT_OK;
}

static whit_status find_starts(whit_corpus *corpus, size_t from, int32_t bos, whit_error *error)
{
    for (size_t i = from; i < corpus->n; i++)
        if (corpus->ids[i] == bos) WHIT_TRY(add_start(corpus, i, error));
    return WHIT_OK;
}

whit_status whit_corpus_add_file(whit_corpus *corpus, const whit_model *model, const char *path, bool specials,
                                 whit_error *error)
{
    size_t before = corpus->n;
    whit_map map = {0};
    WHIT_TRY(whit_map_open(path, corpus->allocator, &map, error));
    whit_status status = WHIT_OK;
    for (size_t at = 0; status == WHIT_OK && at < map.size_bytes;) {
        size_t n = map.size_bytes - at, n_ids = 0;
        if (n > PIECE_BYTES) { /* the piece ends before a line break, so that no word is cut */
            n = PIECE_BYTES;
            const uint8_t *line = memrchr(map.data + at, '\n', n);
            if (line && line > map.data + at) n = (size_t)(line - map.data) - at;
        }
        /* A text rarely has more tokens than bytes, but each byte of invalid UTF-8 may become three tokens. */
        for (size_t room = n + 16;; room = n_ids) {
            status = reserve(corpus, room, error);
            if (status == WHIT_OK)
                status = whit_tokenize(model, (const char *)map.data + at, n, false, specials, corpus->ids + corpus->n,
                                       corpus->capacity - corpus->n, &n_ids, error);
            if (status != WHIT_ERROR_LIMIT || n_ids <= corpus->capacity - corpus->n) break;
        }
        corpus->n += status == WHIT_OK ? n_ids : 0;
        at += n;
        const double share = (double)at / (double)map.size_bytes;
        if (status == WHIT_OK && corpus->progress && !corpus->progress(corpus->user, "reading the text", share))
            status = whit_fail(error, WHIT_ERROR_CANCELLED, "%s: reading was cancelled", path);
    }
    whit_map_close(&map);
    if (!specials && !corpus->n_starts) corpus->n_free = corpus->n;
    int32_t bos = whit_model_bos(model);
    return status == WHIT_OK && specials && bos >= 0 ? find_starts(corpus, before, bos, error) : status;
}

whit_status whit_corpus_add_ids(whit_corpus *corpus, const whit_model *model, const int32_t *ids, size_t n,
                                whit_error *error)
{
    size_t before = corpus->n;
    WHIT_TRY(reserve(corpus, n, error));
    memcpy(corpus->ids + before, ids, n * sizeof *ids);
    corpus->n += n;
    return find_starts(corpus, before, whit_model_bos(model), error);
}

/* Returns the number of documents that begin early enough for a whole window. */
static size_t usable_starts(const whit_corpus *corpus, uint32_t n_tokens)
{
    size_t n = corpus->n_starts;
    while (n && corpus->n - corpus->starts[n - 1] <= n_tokens) n--;
    return n;
}

void whit_corpus_window(const whit_corpus *corpus, uint64_t seed, uint64_t number, uint32_t n_tokens, int32_t *ids,
                        int32_t *targets)
{
    whit_rng rng = {seed * 0xD1342543DE82EF95u + number * 0x9E3779B97F4A7C15u};
    (void)whit_rng_next(&rng);
    size_t n_starts = usable_starts(corpus, n_tokens);
    bool anywhere = !n_starts || corpus->n_free;
    size_t at = anywhere ? whit_rng_below(&rng, corpus->n - n_tokens) : 0;
    if (n_starts && at >= corpus->n_free) at = corpus->starts[whit_rng_below(&rng, n_starts)];
    memcpy(ids, corpus->ids + at, n_tokens * sizeof *ids);
    memcpy(targets, corpus->ids + at + 1, n_tokens * sizeof *targets);
}
