/* SPDX-License-Identifier: MIT */
#include "train/corpus.h"

#include "base/file.h"
#include "base/rng.h"

#define PIECE_BYTES ((size_t)1 << 20) /* text given to the tokenizer at once */

void whit_corpus_free(whit_corpus *corpus)
{
    whit_free(corpus->allocator, corpus->ids, corpus->capacity * sizeof *corpus->ids);
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

whit_status whit_corpus_add_file(whit_corpus *corpus, const whit_model *model, const char *path, whit_error *error)
{
    whit_map map = {0};
    WHIT_TRY(whit_map_open(path, corpus->allocator, &map, error));
    whit_status status = WHIT_OK;
    for (size_t at = 0; status == WHIT_OK && at < map.size_bytes;) {
        size_t n = map.size_bytes - at, n_ids = 0;
        if (n > PIECE_BYTES) { /* end with a line, so that no word is cut */
            n = PIECE_BYTES;
            const uint8_t *line = memrchr(map.data + at, '\n', n);
            if (line && line > map.data + at) n = (size_t)(line - map.data) - at;
        }
        status = reserve(corpus, n + 16, error);
        if (status == WHIT_OK)
            status = whit_tokenize(model, (const char *)map.data + at, n, false, false, corpus->ids + corpus->n,
                                   corpus->capacity - corpus->n, &n_ids, error);
        corpus->n += status == WHIT_OK ? n_ids : 0;
        at += n;
    }
    whit_map_close(&map);
    return status;
}

void whit_corpus_window(const whit_corpus *corpus, uint64_t seed, uint64_t number, uint32_t n_tokens, int32_t *ids,
                        int32_t *targets)
{
    whit_rng rng = {seed * 0xD1342543DE82EF95u + number * 0x9E3779B97F4A7C15u};
    (void)whit_rng_next(&rng);
    size_t at = whit_rng_below(&rng, corpus->n - n_tokens);
    memcpy(ids, corpus->ids + at, n_tokens * sizeof *ids);
    memcpy(targets, corpus->ids + at + 1, n_tokens * sizeof *targets);
}
