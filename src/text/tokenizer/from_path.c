/* SPDX-License-Identifier: MIT */
#include "tokenizer/from_path.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/items.h"
#include "format/gguf.h"
#include "format/lfs.h"
#include "tokenizer/from_gguf.h"
#include "tokenizer/from_json.h"
#include "tokenizer/from_sentencepiece.h"
#include "tokenizer/from_tiktoken.h"

#define MAX_DOCUMENT_BYTES (64u << 20)

static whit_status read_gguf(const char *path, whit_buf *image, whit_error *error)
{
    whit_gguf *gguf;
    bool found;
    WHIT_TRY(whit_gguf_open(path, image->allocator, &gguf, error));
    whit_status status = whit_tokenizer_from_gguf(gguf, path, &found, image, error);
    whit_gguf_close(gguf);
    if (status == WHIT_OK && !found)
        status = whit_fail(
            error, WHIT_ERROR_FORMAT,
            "%s: the file has no tokenizer: name a tokenizer.json, tokenizer.model, GGUF or tiktoken file", path);
    return status;
}

static whit_status read_file(const char *path, const whit_tokenizer_config *config, whit_buf *image, whit_error *error)
{
    whit_map map = {0};
    WHIT_TRY(whit_map_open(path, image->allocator, &map, error));
    size_t space = 0; /* number of white-space bytes, with which JSON may begin */
    while (space < map.size_bytes && map.data[space] && strchr(" \t\r\n", map.data[space])) space++;
    whit_status status;
    if (whit_is_lfs_pointer(map.data, map.size_bytes))
        status = whit_fail(error, WHIT_ERROR_FORMAT, "%s " WHIT_LFS_REASON, path);
    else if (map.size_bytes >= 4 && memcmp(map.data, "GGUF", 4) == 0)
        status = read_gguf(path, image, error);
    else if (space < map.size_bytes && map.data[space] == '{')
        status = whit_tokenizer_from_json(path, (const char *)map.data, map.size_bytes, config, image, error);
    else if (whit_is_tiktoken(map.data, map.size_bytes))
        status = whit_tokenizer_from_tiktoken(path, map.data, map.size_bytes, config, image, error);
    else
        status = whit_tokenizer_from_sentencepiece(path, map.data, map.size_bytes, config, image, error);
    whit_map_close(&map);
    return status;
}

/* ---- folders ------------------------------------------------------------------------------- */

enum { TOKENIZER_CONFIG, SPECIAL_TOKENS_MAP, GENERATION_CONFIG, CONFIG, ADDED_TOKENS, N_DOCUMENTS };

typedef struct folder {
    char path[4096]; /* path of the file being read */
    whit_buf texts[N_DOCUMENTS];
    whit_json documents[N_DOCUMENTS];
    char names[N_DOCUMENTS][32];
} folder;

static whit_status file_in(folder *f, const char *path, const char *name, bool *exists, whit_error *error)
{
    int n = snprintf(f->path, sizeof f->path, "%s/%s", path, name);
    if (n < 0 || (size_t)n >= sizeof f->path)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: the path is longer than %zu bytes, the limit", path,
                         sizeof f->path - 1);
    *exists = access(f->path, R_OK) == 0;
    return WHIT_OK;
}

static whit_status read_documents(folder *f, const char *path, whit_error *error)
{
    static const char *const names[N_DOCUMENTS] = {"tokenizer_config.json", "special_tokens_map.json",
                                                   "generation_config.json", "config.json", "added_tokens.json"};
    for (int i = 0; i < N_DOCUMENTS; i++) {
        bool exists = false;
        if (i == ADDED_TOKENS) { /* not read if there is a tokenizer.json, which contains all added tokens */
            WHIT_TRY(file_in(f, path, "tokenizer.json", &exists, error));
            if (exists) continue;
        }
        WHIT_TRY(file_in(f, path, names[i], &exists, error));
        if (!exists) continue;
        whit_buf *text = &f->texts[i];
        WHIT_TRY(whit_read_file(f->path, MAX_DOCUMENT_BYTES, text, error));
        WHIT_TRY(
            whit_json_parse(f->path, whit_chars(text), text->size_bytes, text->allocator, &f->documents[i], error));
        snprintf(f->names[i], sizeof f->names[i], "%s", names[i]); /* f->path is changed for the next file */
        f->documents[i].name = f->names[i];
    }
    return WHIT_OK;
}

static whit_status read_folder(folder *f, const char *path, whit_buf *image, whit_error *error)
{
    static const char *const files[] = {"tokenizer.json", "tokenizer.model"};
    const whit_tokenizer_config config = {&f->documents[TOKENIZER_CONFIG], &f->documents[SPECIAL_TOKENS_MAP],
                                          &f->documents[GENERATION_CONFIG], &f->documents[CONFIG],
                                          &f->documents[ADDED_TOKENS]};
    WHIT_TRY(read_documents(f, path, error));
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        bool exists = false;
        WHIT_TRY(file_in(f, path, files[i], &exists, error));
        if (exists) return read_file(f->path, &config, image, error);
    }
    return whit_fail(error, WHIT_ERROR_FORMAT,
                     "%s: the folder has neither tokenizer.json nor tokenizer.model: download one of them there", path);
}

whit_status whit_tokenizer_from_path(const char *path, whit_buf *image, whit_error *error)
{
    static const whit_tokenizer_config none = {0};
    struct stat status_of;
    if (stat(path, &status_of) != 0) return whit_fail_errno(error, path, "open");
    if (!S_ISDIR(status_of.st_mode)) return read_file(path, &none, image, error);
    folder *f = whit_zalloc(image->allocator, sizeof *f);
    if (!f) return whit_fail_memory(error, "folder", sizeof *f);
    for (int i = 0; i < N_DOCUMENTS; i++) f->texts[i].allocator = image->allocator;
    whit_status status = read_folder(f, path, image, error);
    for (int i = 0; i < N_DOCUMENTS; i++) {
        whit_json_close(&f->documents[i]);
        whit_buf_free(&f->texts[i]);
    }
    whit_free(image->allocator, f, sizeof *f);
    return status;
}

whit_status whit_tokenizer_from_hf(const whit_hf *hf, bool *found, whit_buf *image, whit_error *error)
{
    const whit_tokenizer_config config = {&hf->tokenizer_config.json, &hf->special_tokens.json,
                                          &hf->generation_config.json, &hf->config.json, &hf->added_tokens.json};
    const char *path = hf->tokenizer_json ? hf->tokenizer_json : hf->tokenizer_model;
    *found = path != NULL;
    return path ? read_file(path, &config, image, error) : WHIT_OK;
}
