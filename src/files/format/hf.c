/* SPDX-License-Identifier: MIT */
#include "format/hf.h"
#include "base/items.h"
#include "base/path.h"

#include "format/lfs.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>

#define MAX_DOCUMENT_BYTES (16u << 20)
#define MAX_FOLDER_ENTRIES 100000

/* Returns a new string "FOLDER/NAME"; NULL if memory is exhausted. */
static char *join_path(const whit_allocator *allocator, const char *folder, const char *name)
{
    size_t folder_bytes = strlen(folder), name_bytes = strlen(name);
    char *path = whit_alloc(allocator, folder_bytes + name_bytes + 2);
    if (!path) return NULL;
    memcpy(path, folder, folder_bytes);
    path[folder_bytes] = '/';
    memcpy(path + folder_bytes + 1, name, name_bytes + 1);
    return path;
}

static void free_text(const whit_allocator *allocator, char *text)
{
    if (text) whit_free(allocator, text, strlen(text) + 1);
}

/* ---- files ---------------------------------------------------------------------------------- */

/* Reads and parses the document at document->path, with any type of root node. */
static whit_status parse_document(const whit_hf *hf, whit_hf_document *document, whit_error *error)
{
    document->text.allocator = hf->allocator;
    WHIT_TRY(whit_read_found_file(document->path, MAX_DOCUMENT_BYTES, &document->text, error));
    if (whit_is_lfs_pointer(document->text.data, document->text.size_bytes))
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: " WHIT_LFS_REASON, document->path);
    WHIT_TRY(whit_json_parse(document->path, whit_chars(&document->text), document->text.size_bytes, hf->allocator,
                             &document->json, error));
    document->present = true;
    return WHIT_OK;
}

/* Reads the document at document->path, whose root must be an object. */
static whit_status read_document_at(const whit_hf *hf, whit_hf_document *document, whit_error *error)
{
    WHIT_TRY(parse_document(hf, document, error));
    if (whit_json_type_of(&document->json, WHIT_JSON_ROOT) == WHIT_JSON_OBJECT) return WHIT_OK;
    return whit_json_fail(&document->json, WHIT_JSON_ROOT, error, "this is not an object");
}

static whit_status read_document(const whit_hf *hf, const char *name, whit_hf_document *document, whit_error *error)
{
    document->path = join_path(hf->allocator, hf->folder, name);
    if (!document->path) return whit_fail_memory(error, "a file name", strlen(name));
    return whit_path_exists(document->path) ? read_document_at(hf, document, error) : WHIT_OK;
}

whit_status whit_hf_read_document(const whit_hf *hf, const char *name, whit_hf_document *document, whit_error *error)
{
    document->path = join_path(hf->allocator, hf->folder, name);
    if (!document->path) return whit_fail_memory(error, "a file name", strlen(name));
    return whit_path_exists(document->path) ? parse_document(hf, document, error) : WHIT_OK;
}

whit_status whit_hf_open_safetensors(const whit_hf *hf, const char *name, whit_safetensors **set, whit_error *error)
{
    char *path = join_path(hf->allocator, hf->folder, name);
    if (!path) return whit_fail_memory(error, "a file name", strlen(name));
    whit_status status = whit_safetensors_open(path, hf->allocator, set, error);
    free_text(hf->allocator, path);
    return status;
}

void whit_hf_close_document(const whit_hf *hf, whit_hf_document *document)
{
    if (document->present) whit_json_close(&document->json);
    whit_buf_free(&document->text);
    free_text(hf->allocator, document->path);
}

/* Sets *path to the path of a file that another reader will open; leaves it unchanged if the file does not exist. An
 * error if the file is a git-LFS pointer. */
static whit_status find_file(const whit_hf *hf, const char *name, char **path, whit_error *error)
{
    char *candidate = join_path(hf->allocator, hf->folder, name);
    if (!candidate) return whit_fail_memory(error, "a file name", strlen(name));
    if (!whit_path_exists(candidate)) {
        free_text(hf->allocator, candidate);
        return WHIT_OK;
    }
    char head[64];
    const size_t n = whit_read_found_head(candidate, head, sizeof head);
    if (whit_is_lfs_pointer(head, n)) {
        whit_status status = whit_fail(error, WHIT_ERROR_FORMAT, "%s: " WHIT_LFS_REASON, candidate);
        free_text(hf->allocator, candidate);
        return status;
    }
    *path = candidate;
    return WHIT_OK;
}

/* Returns the error for a folder without a config.json. The message says that the folder contains an adapter, or else
 * names the first GGUF file in it by byte order, if there is one. */
static whit_status refuse_folder(const whit_hf *hf, whit_error *error)
{
    char *adapter = NULL;
    WHIT_TRY(find_file(hf, "adapter_config.json", &adapter, error));
    if (adapter) {
        free_text(hf->allocator, adapter);
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: this is an adapter without its model; convert it for that model, then mount the result",
                         hf->folder);
    }
    char first[256] = "";
    DIR *folder = opendir(hf->folder);
    const struct dirent *entry;
    for (size_t i = 0; folder && i < MAX_FOLDER_ENTRIES && (entry = readdir(folder)); i++) {
        size_t n = strlen(entry->d_name);
        bool is_gguf = n > 5 && n < sizeof first && !strcmp(entry->d_name + n - 5, ".gguf");
        if (is_gguf && (!first[0] || strcmp(entry->d_name, first) < 0)) memcpy(first, entry->d_name, n + 1);
    }
    if (folder) closedir(folder);
    if (first[0])
        return whit_fail(error, WHIT_ERROR_IO, "%s: has no config.json; name one of its files, such as %s/%s",
                         hf->folder, hf->folder, first);
    return whit_fail(error, WHIT_ERROR_IO, "%s: has no config.json, so it is not a model folder", hf->folder);
}

static whit_status read_folder(whit_hf *hf, whit_error *error)
{
    WHIT_TRY(read_document(hf, "config.json", &hf->config, error));
    if (!hf->config.present) return refuse_folder(hf, error);
    WHIT_TRY(read_document(hf, "generation_config.json", &hf->generation_config, error));
    WHIT_TRY(read_document(hf, "tokenizer_config.json", &hf->tokenizer_config, error));
    WHIT_TRY(read_document(hf, "special_tokens_map.json", &hf->special_tokens, error));
    WHIT_TRY(read_document(hf, "chat_template.json", &hf->template_json, error));
    WHIT_TRY(find_file(hf, "tokenizer.json", &hf->tokenizer_json, error));
    WHIT_TRY(find_file(hf, "tokenizer.model", &hf->tokenizer_model, error));
    /* tokenizer.json contains all added tokens. If it exists, added_tokens.json is not read, so that damage there does
     * no harm. */
    if (!hf->tokenizer_json) WHIT_TRY(read_document(hf, "added_tokens.json", &hf->added_tokens, error));
    return find_file(hf, "chat_template.jinja", &hf->template_jinja, error);
}

whit_status whit_hf_open(const char *folder, const whit_allocator *allocator, whit_hf **hf, whit_error *error)
{
    *hf = NULL;
    whit_hf *opened = whit_zalloc(allocator, sizeof *opened);
    if (!opened) return whit_fail_memory(error, "a model folder", sizeof *opened);
    opened->allocator = allocator;
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/') n--;
    opened->folder = whit_strndup(allocator, folder, n);
    whit_status status = opened->folder ? read_folder(opened, error) : whit_fail_memory(error, "a file name", n);
    if (status == WHIT_OK)
        *hf = opened;
    else
        whit_hf_close(opened);
    return status;
}

whit_status whit_hf_open_config(const char *path, const whit_allocator *allocator, whit_hf **hf, whit_error *error)
{
    *hf = NULL;
    whit_hf *opened = whit_zalloc(allocator, sizeof *opened);
    if (!opened) return whit_fail_memory(error, "a configuration", sizeof *opened);
    opened->allocator = allocator;
    opened->config.path = whit_strndup(allocator, path, strlen(path));
    whit_status status = opened->config.path ? read_document_at(opened, &opened->config, error)
                                             : whit_fail_memory(error, "a file name", strlen(path));
    if (status == WHIT_OK)
        *hf = opened;
    else
        whit_hf_close(opened);
    return status;
}

void whit_hf_close(whit_hf *hf)
{
    if (!hf) return;
    whit_hf_close_document(hf, &hf->config);
    whit_hf_close_document(hf, &hf->generation_config);
    whit_hf_close_document(hf, &hf->tokenizer_config);
    whit_hf_close_document(hf, &hf->special_tokens);
    whit_hf_close_document(hf, &hf->added_tokens);
    whit_hf_close_document(hf, &hf->template_json);
    free_text(hf->allocator, hf->tokenizer_json);
    free_text(hf->allocator, hf->tokenizer_model);
    free_text(hf->allocator, hf->template_jinja);
    free_text(hf->allocator, hf->folder);
    whit_safetensors_close(hf->weights);
    whit_free(hf->allocator, hf, sizeof *hf);
}

/* ---- weights -------------------------------------------------------------------------------- */

/* Returns the path of the folder's only file with this ending, in a new string; NULL if there is not exactly one. */
static char *only_file(const whit_hf *hf, const char *end)
{
    char *found = NULL;
    DIR *folder = opendir(hf->folder);
    if (!folder) return NULL;
    const struct dirent *entry;
    for (int n = 0; n < MAX_FOLDER_ENTRIES && (entry = readdir(folder)); n++) {
        size_t name_bytes = strlen(entry->d_name), end_bytes = strlen(end);
        if (name_bytes < end_bytes || strcmp(entry->d_name + name_bytes - end_bytes, end) != 0) continue;
        bool second = found != NULL;
        free_text(hf->allocator, found);
        found = second ? NULL : join_path(hf->allocator, hf->folder, entry->d_name);
        if (!found) break;
    }
    closedir(folder);
    return found;
}

whit_status whit_hf_open_weights(whit_hf *hf, whit_error *error)
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json"};
    static const char *const others[] = {"pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5",
                                         "flax_model.msgpack", "consolidated.00.pth"};
    char *path = NULL;
    for (size_t i = 0; i < 2 && !path; i++) {
        path = join_path(hf->allocator, hf->folder, names[i]);
        if (!path) return whit_fail_memory(error, "a file name", strlen(names[i]));
        if (whit_path_exists(path)) break;
        free_text(hf->allocator, path);
        path = NULL;
    }
    if (!path) path = only_file(hf, ".safetensors");
    if (path) {
        whit_status status = whit_safetensors_open(path, hf->allocator, &hf->weights, error);
        free_text(hf->allocator, path);
        return status;
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        path = join_path(hf->allocator, hf->folder, others[i]);
        bool there = path && whit_path_exists(path);
        free_text(hf->allocator, path);
        if (there)
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                             "%s: its weights are in %s, which is not read; save them as safetensors", hf->folder,
                             others[i]);
    }
    return whit_fail(error, WHIT_ERROR_IO, "%s: has neither model.safetensors nor model.safetensors.index.json",
                     hf->folder);
}

/* ---- values --------------------------------------------------------------------------------- */

uint32_t whit_hf_node(const whit_hf_document *document, const char *path)
{
    uint32_t at = document->present ? document->root : WHIT_JSON_NONE;
    while (at != WHIT_JSON_NONE) {
        char key[128];
        size_t n = strcspn(path, ".");
        if (n >= sizeof key) return WHIT_JSON_NONE;
        memcpy(key, path, n);
        key[n] = 0;
        at = whit_json_get(&document->json, at, key);
        if (!path[n]) break;
        path += n + 1;
    }
    return at;
}

/* Returns the node at the path; WHIT_JSON_NONE if it is absent or null. */
static uint32_t value_node(const whit_hf_document *document, const char *path)
{
    uint32_t at = whit_hf_node(document, path);
    if (at == WHIT_JSON_NONE || whit_json_type_of(&document->json, at) == WHIT_JSON_NULL) return WHIT_JSON_NONE;
    return at;
}

whit_status whit_hf_u64(const whit_hf_document *document, const char *path, uint64_t *value, whit_error *error)
{
    uint32_t at = value_node(document, path);
    int64_t integer;
    double number;
    if (at == WHIT_JSON_NONE) return WHIT_OK;
    if (whit_json_i64(&document->json, at, &integer)) {
        if (integer < 0) return whit_json_fail(&document->json, at, error, "%s is negative", path);
        *value = (uint64_t)integer;
        return WHIT_OK;
    }
    if (!whit_json_f64(&document->json, at, &number) || number < 0 || number != floor(number))
        return whit_json_fail(&document->json, at, error, "%s is not a whole number of at least 0", path);
    *value = number >= 0x1p64 ? UINT64_MAX : (uint64_t)number;
    return WHIT_OK;
}

whit_status whit_hf_f64(const whit_hf_document *document, const char *path, double *value, whit_error *error)
{
    uint32_t at = value_node(document, path);
    if (at == WHIT_JSON_NONE || whit_json_f64(&document->json, at, value)) return WHIT_OK;
    return whit_json_fail(&document->json, at, error, "%s is not a number", path);
}

whit_status whit_hf_bool(const whit_hf_document *document, const char *path, bool *value, whit_error *error)
{
    uint32_t at = value_node(document, path);
    if (at == WHIT_JSON_NONE) return WHIT_OK;
    if (whit_json_type_of(&document->json, at) != WHIT_JSON_BOOL)
        return whit_json_fail(&document->json, at, error, "%s is neither true nor false", path);
    *value = whit_json_bool(&document->json, at, false);
    return WHIT_OK;
}

whit_status whit_hf_string(const whit_hf_document *document, const char *path, const char **text, size_t *text_bytes,
                           whit_error *error)
{
    uint32_t at = value_node(document, path);
    if (at == WHIT_JSON_NONE) return WHIT_OK;
    if (whit_json_type_of(&document->json, at) != WHIT_JSON_STRING)
        return whit_json_fail(&document->json, at, error, "%s is not a string", path);
    *text = whit_json_string(&document->json, at, text_bytes);
    return WHIT_OK;
}
