/* SPDX-License-Identifier: MIT */
#include "compress/text.h"

#include "base/file.h"
#include "tokenizer/tokenizer.h"

#define PIECE_BYTES ((size_t)1 << 20) /* largest number of bytes that are encoded at a time */

static whit_status open_tokenizer(const whit_source *source, whit_tokenizer **tokenizer, whit_error *error)
{
    whit_tokenizer_view view;
    if (!source->tokenizer.size_bytes)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: the model has no tokenizer, so it cannot read text: convert it with its tokenizer",
                         source->path);
    WHIT_TRY(whit_tokenizer_check(source->tokenizer.data, source->tokenizer.size_bytes, &view, error));
    return whit_tokenizer_open(&view, source->allocator, tokenizer, error);
}

static whit_status check_ids(const whit_source *source, const char *path, const whit_buf *ids, size_t from,
                             whit_error *error)
{
    for (size_t i = from; i < ids->size_bytes; i += sizeof(int32_t)) {
        int32_t id;
        memcpy(&id, ids->data + i, sizeof id);
        if (id < 0 || (uint32_t)id >= source->config.n_vocab)
            return whit_fail(
                error, WHIT_ERROR_FORMAT,
                "%s: the tokenizer gives token %d, but the model has only %u tokens: they do not belong together", path,
                id, source->config.n_vocab);
    }
    return WHIT_OK;
}

whit_status whit_compress_read_text(const whit_source *source, const char *path, whit_buf *ids, whit_error *error)
{
    whit_tokenizer *tokenizer = NULL;
    whit_map map = {0};
    whit_encode_options options = {0};
    size_t before = ids->size_bytes;
    WHIT_TRY(open_tokenizer(source, &tokenizer, error));
    whit_status status = whit_map_open(path, source->allocator, &map, error);
    for (size_t at = 0; status == WHIT_OK && at < map.size_bytes;) {
        size_t n = map.size_bytes - at;
        if (n > PIECE_BYTES) { /* the piece ends before a line break, so that no word is divided */
            n = PIECE_BYTES;
            const uint8_t *line = memrchr(map.data + at, '\n', n);
            if (line && line > map.data + at) n = (size_t)(line - map.data) - at;
        }
        status = whit_tokenizer_encode(tokenizer, (const char *)map.data + at, n, &options, ids, error);
        at += n;
    }
    if (status == WHIT_OK) status = check_ids(source, path, ids, before, error);
    whit_map_close(&map);
    whit_tokenizer_close(tokenizer);
    return status;
}

int32_t whit_compress_bos(const whit_source *source)
{
    whit_tokenizer *tokenizer = NULL;
    whit_buf ids = {.allocator = source->allocator};
    whit_encode_options options = {.add_special = true};
    int32_t bos = -1;
    if (open_tokenizer(source, &tokenizer, NULL) != WHIT_OK) return -1;
    if (whit_tokenizer_encode(tokenizer, "", 0, &options, &ids, NULL) == WHIT_OK && ids.size_bytes >= sizeof bos)
        memcpy(&bos, ids.data, sizeof bos);
    if (bos >= 0 && (uint32_t)bos >= source->config.n_vocab) bos = -1;
    whit_buf_free(&ids);
    whit_tokenizer_close(tokenizer);
    return bos;
}
