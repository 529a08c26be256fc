/* SPDX-License-Identifier: MIT
 * Opens GGUF files.
 *
 *     "GGUF" | u32 version | u64 tensors | u64 keys | keys | tensor infos | padding | data section
 *
 * A tensor info is a name, u32 dimension count, u64 dimensions (row length first), u32 type id, u64 offset in the data
 * section. In a split set every file has all of these parts; only the first file's keys count. */
#include "base/phrase.h"
#include "format/gguf.h"
#include "base/items.h"

#include "format/gguf_meta.h"
#include "format/gguf_place.h"
#include "format/foreign.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_TENSORS         262144
#define MAX_FILES           1024
#define MAX_ALIGNMENT_BYTES (1u << 30)

static whit_status read_head(whit_gguf_cursor *cursor, uint32_t *version, uint64_t *n_tensors, uint64_t *n_keys)
{
    const char *path = cursor->path;
    const bool is_gguf = cursor->size_bytes >= 4 && memcmp(cursor->data, "GGUF", 4) == 0;
    const char *foreign = is_gguf ? NULL : whit_foreign_reason(cursor->data, cursor->size_bytes);
    if (foreign) return whit_fail(cursor->error, WHIT_ERROR_FORMAT, "%s: %s", path, foreign);
    const uint8_t *head = whit_gguf_take(cursor, 8, "the GGUF head");
    if (!head) return WHIT_ERROR_FORMAT;
    if (!is_gguf) {
        static const char *const older[] = {"lmgg", "fmgg", "tjgg", "algg"};
        for (size_t i = 0; i < 4; i++)
            if (memcmp(head, older[i], 4) == 0)
                return whit_fail(cursor->error, WHIT_ERROR_UNSUPPORTED,
                                 "%s: is in a ggml format older than GGUF; convert the original again", path);
        return whit_fail(cursor->error, WHIT_ERROR_FORMAT, "%s: byte 0: is not a GGUF file", path);
    }
    *version = whit_load_u32(head + 4);
    if (*version == 1)
        return whit_fail(cursor->error, WHIT_ERROR_UNSUPPORTED,
                         "%s: byte 4: GGUF version 1 is not supported; convert the original again", path);
    if (*version && (*version & 0xFFFFu) == 0)
        return whit_fail(cursor->error, WHIT_ERROR_UNSUPPORTED,
                         "%s: byte 4: is a big-endian GGUF file, which is not supported: get the little-endian one",
                         path);
    if (*version != 2 && *version != 3)
        return whit_fail(cursor->error, WHIT_ERROR_UNSUPPORTED,
                         "%s: byte 4: GGUF version %u is not known (2 and 3 are)", path, *version);
    const uint8_t *counts = whit_gguf_take(cursor, 16, "the GGUF counts");
    if (!counts) return WHIT_ERROR_FORMAT;
    *n_tensors = whit_load_u64(counts);
    *n_keys = whit_load_u64(counts + 8);
    return WHIT_OK;
}

static const whit_gguf_key *key_of(const whit_buf *keys, const char *name)
{
    const whit_gguf_key *key = WHIT_ITEMS(const whit_gguf_key, keys);
    for (size_t n = keys->size_bytes / sizeof *key; n > 0; n--, key++)
        if (whit_gguf_compare_names(key->name, key->name_bytes, name, strlen(name)) == 0) return key;
    return NULL;
}

/* Reads a number that opening the file needs; one that is not from `least` to `most` is an error. *value is unchanged
 * if the key is absent. */
static whit_status own_number(const whit_gguf_cursor *cursor, const whit_buf *keys, const char *name, uint64_t least,
                              uint64_t most, uint64_t *value)
{
    const whit_gguf_key *key = key_of(keys, name);
    int64_t number;
    if (!key) return WHIT_OK;
    if (key->type == WHIT_GGUF_ARRAY || !whit_gguf_element_i64(key, 0, &number) || number < (int64_t)least ||
        number > (int64_t)most)
        return whit_fail(cursor->error, WHIT_ERROR_FORMAT, "%s: key %s: is not a number from %llu to %llu",
                         cursor->path, name, (unsigned long long)least, (unsigned long long)most);
    *value = (uint64_t)number;
    return WHIT_OK;
}

static whit_status read_tensor(whit_gguf_cursor *cursor, uint32_t file, whit_gguf_tensor *tensor)
{
    *tensor = (whit_gguf_tensor){.file = file, .dims = {1, 1, 1, 1}};
    if (!whit_gguf_take_string(cursor, "a tensor's name", &tensor->name, &tensor->name_bytes)) return WHIT_ERROR_FORMAT;
    const uint8_t *p = whit_gguf_take(cursor, 4, "a tensor's dimension count");
    if (!p) return WHIT_ERROR_FORMAT;
    int shown = whit_gguf_shown(tensor->name_bytes);
    tensor->n_dims = whit_load_u32(p);
    if (tensor->n_dims > 4)
        return whit_fail(cursor->error, WHIT_ERROR_FORMAT,
                         "%s: tensor %.*s: has %u dimensions, but at most 4 are supported", cursor->path, shown,
                         tensor->name, tensor->n_dims);
    uint64_t n_elems = 1;
    for (uint32_t i = 0; i < tensor->n_dims; i++) {
        if (!(p = whit_gguf_take(cursor, 8, "a tensor's dimension"))) return WHIT_ERROR_FORMAT;
        tensor->dims[i] = whit_load_u64(p);
        if (tensor->dims[i] == 0 || __builtin_mul_overflow(n_elems, tensor->dims[i], &n_elems) || n_elems > INT64_MAX)
            return whit_fail(cursor->error, WHIT_ERROR_FORMAT,
                             "%s: tensor %.*s: its dimension %u is %llu, which is not possible: the file is damaged",
                             cursor->path, shown, tensor->name, i, (unsigned long long)tensor->dims[i]);
    }
    if (!(p = whit_gguf_take(cursor, 12, "a tensor's type and offset"))) return WHIT_ERROR_FORMAT;
    tensor->id = whit_load_u32(p);
    tensor->offset_bytes = whit_load_u64(p + 4);
    return WHIT_OK;
}

/* Reads gguf->files[n_files - 1], the file opened last: its tensor infos into gguf->tensor_memory, its keys into
 * `keys`. */
static whit_status read_file(whit_gguf *gguf, whit_buf *keys, whit_error *error)
{
    uint32_t index = (uint32_t)gguf->n_files - 1;
    whit_gguf_file *file = &gguf->files[index];
    whit_gguf_cursor cursor = {file->path, file->data, file->size_bytes, 0, error};
    uint64_t n_tensors = 0, n_keys = 0;
    WHIT_TRY(read_head(&cursor, &gguf->version, &n_tensors, &n_keys));
    WHIT_TRY(whit_gguf_read_keys(&cursor, n_keys, keys));
    file->alignment_bytes = WHIT_GGUF_ALIGNMENT_BYTES;
    WHIT_TRY(own_number(&cursor, keys, "general.alignment", 1, MAX_ALIGNMENT_BYTES, &file->alignment_bytes));
    uint64_t n_before = gguf->tensor_memory.size_bytes / sizeof(whit_gguf_tensor);
    if (n_tensors > MAX_TENSORS - n_before || n_tensors > (file->size_bytes - cursor.at) / 24)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: byte 8: claims %llu tensors, more than %s", file->path,
                         (unsigned long long)n_tensors,
                         n_tensors > MAX_TENSORS - n_before ? "any model has" : "the file contains");
    for (uint64_t i = 0; i < n_tensors; i++) {
        whit_gguf_tensor tensor;
        WHIT_TRY(read_tensor(&cursor, index, &tensor));
        if (!whit_buf_append(&gguf->tensor_memory, &tensor, sizeof tensor))
            return whit_fail_memory(error, "the list of tensors", gguf->tensor_memory.size_bytes + sizeof tensor);
    }
    uint64_t rest = cursor.at % file->alignment_bytes;
    file->data_start_bytes = cursor.at + (rest ? file->alignment_bytes - rest : 0);
    return WHIT_OK;
}

/* ---- names --------------------------------------------------------------------------------- */

static int compare_keys(const void *a, const void *b, void *user)
{
    const whit_gguf_key *keys = user, *p = &keys[*(const uint32_t *)a], *q = &keys[*(const uint32_t *)b];
    return whit_gguf_compare_names(p->name, p->name_bytes, q->name, q->name_bytes);
}

static int compare_tensors(const void *a, const void *b, void *user)
{
    const whit_gguf_tensor *tensors = user;
    const whit_gguf_tensor *p = &tensors[*(const uint32_t *)a], *q = &tensors[*(const uint32_t *)b];
    return whit_gguf_compare_names(p->name, p->name_bytes, q->name, q->name_bytes);
}

typedef int compare_fn(const void *a, const void *b, void *user);

/* Returns the indices 0 to n - 1 of the entries, sorted by name; NULL if memory is exhausted. *twice is the index of an
 * entry whose name occurs twice, or n. */
static uint32_t *sort_names(const whit_allocator *allocator, void *entries, size_t n, compare_fn *compare,
                            size_t *twice)
{
    uint32_t *order = whit_alloc(allocator, n * sizeof *order);
    if (!order) return NULL;
    for (size_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    qsort_r(order, n, sizeof *order, compare, entries);
    *twice = n;
    for (size_t i = 1; i < n; i++)
        if (compare(&order[i - 1], &order[i], entries) == 0) *twice = order[i];
    return order;
}

whit_status whit_gguf_index_keys(whit_gguf *gguf, whit_error *error)
{
    size_t twice = 0;
    whit_free(gguf->allocator, gguf->keys_by_name, gguf->n_keys * sizeof(uint32_t));
    gguf->keys = WHIT_ITEMS(whit_gguf_key, &gguf->key_memory);
    gguf->n_keys = gguf->key_memory.size_bytes / sizeof *gguf->keys;
    gguf->keys_by_name = sort_names(gguf->allocator, gguf->keys, gguf->n_keys, compare_keys, &twice);
    if (!gguf->keys_by_name) return whit_fail_memory(error, "key names", gguf->n_keys * sizeof(uint32_t));
    if (twice < gguf->n_keys)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: key %.*s occurs twice: the file is damaged",
                         gguf->files[0].path, whit_gguf_shown(gguf->keys[twice].name_bytes), gguf->keys[twice].name);
    return WHIT_OK;
}

static whit_status index_tensors(whit_gguf *gguf, whit_error *error)
{
    size_t twice = 0;
    gguf->tensors = WHIT_ITEMS(whit_gguf_tensor, &gguf->tensor_memory);
    gguf->n_tensors = gguf->tensor_memory.size_bytes / sizeof *gguf->tensors;
    gguf->tensors_by_name = sort_names(gguf->allocator, gguf->tensors, gguf->n_tensors, compare_tensors, &twice);
    if (!gguf->tensors_by_name)
        return whit_fail_memory(error, "the names of tensors", gguf->n_tensors * sizeof(uint32_t));
    if (twice < gguf->n_tensors) {
        const whit_gguf_tensor *tensor = &gguf->tensors[twice];
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: tensor %.*s occurs twice: the file is damaged",
                         gguf->files[tensor->file].path, whit_gguf_shown(tensor->name_bytes), tensor->name);
    }
    return WHIT_OK;
}

const whit_gguf_tensor *whit_gguf_find_tensor(const whit_gguf *gguf, const char *name)
{
    size_t name_bytes = strlen(name), low = 0, high = gguf->n_tensors;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const whit_gguf_tensor *tensor = &gguf->tensors[gguf->tensors_by_name[middle]];
        int order = whit_gguf_compare_names(name, name_bytes, tensor->name, tensor->name_bytes);
        if (order == 0) return tensor;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

whit_ggml_view whit_gguf_view(const whit_gguf_tensor *tensor)
{
    return (whit_ggml_view){tensor->kind, tensor->dims[0], tensor->dims[1] * tensor->dims[2] * tensor->dims[3],
                            tensor->data};
}

const char *whit_gguf_notes(const whit_gguf *gguf)
{
    return whit_chars(&gguf->notes);
}

/* ---- opening ------------------------------------------------------------------------------- */

static whit_status create(const whit_allocator *allocator, size_t n_files, whit_gguf **gguf, whit_error *error)
{
    *gguf = whit_zalloc(allocator, sizeof **gguf);
    if (!*gguf) return whit_fail_memory(error, "reading the GGUF file", sizeof **gguf);
    (*gguf)->allocator = allocator;
    (*gguf)->key_memory.allocator = (*gguf)->tensor_memory.allocator = allocator;
    (*gguf)->override_memory.allocator = (*gguf)->notes.allocator = allocator;
    (*gguf)->files = whit_zalloc_array(allocator, n_files, sizeof *(*gguf)->files);
    if (!(*gguf)->files) return whit_fail_memory(error, "a list of files", n_files * sizeof *(*gguf)->files);
    (*gguf)->n_files_allocated = n_files;
    return WHIT_OK;
}

static void drop_files(whit_gguf *gguf)
{
    for (size_t i = 0; i < gguf->n_files; i++) {
        whit_map_close(&gguf->files[i].map);
        if (gguf->files[i].path) whit_free(gguf->allocator, gguf->files[i].path, strlen(gguf->files[i].path) + 1);
    }
    whit_free(gguf->allocator, gguf->files, gguf->n_files_allocated * sizeof *gguf->files);
    gguf->files = NULL;
    gguf->n_files = gguf->n_files_allocated = 0;
}

void whit_gguf_close(whit_gguf *gguf)
{
    if (!gguf) return;
    const whit_allocator *allocator = gguf->allocator;
    drop_files(gguf);
    whit_free(allocator, gguf->keys_by_name, gguf->n_keys * sizeof(uint32_t));
    whit_free(allocator, gguf->tensors_by_name, gguf->n_tensors * sizeof(uint32_t));
    whit_buf_free(&gguf->key_memory);
    whit_buf_free(&gguf->tensor_memory);
    whit_buf_free(&gguf->override_memory);
    whit_buf_free(&gguf->notes);
    whit_free(allocator, gguf, sizeof *gguf);
}

static whit_status add_file(whit_gguf *gguf, const char *path, const void *data, size_t size_bytes, whit_error *error)
{
    whit_gguf_file *file = &gguf->files[gguf->n_files++];
    file->path = whit_strndup(gguf->allocator, path, strlen(path));
    if (!file->path) return whit_fail_memory(error, "a file name", strlen(path) + 1);
    if (!data) {
        WHIT_TRY(whit_map_open(path, gguf->allocator, &file->map, error));
        data = file->map.data;
        size_bytes = file->map.size_bytes;
    }
    file->data = data;
    file->size_bytes = size_bytes;
    return WHIT_OK;
}

static whit_status finish_index(whit_gguf *gguf, whit_error *error)
{
    WHIT_TRY(whit_gguf_index_keys(gguf, error));
    WHIT_TRY(index_tensors(gguf, error));
    WHIT_TRY(whit_gguf_place_tensors(gguf, error));
    if (!whit_buf_append(&gguf->notes, "", 1)) return whit_fail_memory(error, "the notes on the file", 1);
    return WHIT_OK;
}

/* ---- split sets ---------------------------------------------------------------------------- */

/* Returns the offset of "-00001-of-00003.gguf" in the path of a file from a set of n_files; 0 if the path has no such
 * suffix. */
static size_t split_suffix_at(const char *path, uint64_t n_files)
{
    enum { SUFFIX_BYTES = 20 };
    size_t n = strlen(path);
    if (n <= SUFFIX_BYTES) return 0;
    char expected[64];
    snprintf(expected, sizeof expected, "-of-%05llu.gguf", (unsigned long long)n_files);
    const char *suffix = path + n - SUFFIX_BYTES;
    if (suffix[0] != '-' || strcmp(suffix + 6, expected) != 0) return 0;
    for (int i = 1; i <= 5; i++)
        if (suffix[i] < '0' || suffix[i] > '9') return 0;
    return n - SUFFIX_BYTES;
}

/* Reads the keys split.no (*number, default 0) and split.count (*count, default 1) of the file opened last. */
static whit_status split_place(const whit_gguf *gguf, const whit_buf *keys, uint64_t *number, uint64_t *count,
                               whit_error *error)
{
    whit_gguf_cursor cursor = {.path = gguf->files[gguf->n_files - 1].path, .error = error};
    *number = 0;
    *count = 1;
    WHIT_TRY(own_number(&cursor, keys, "split.no", 0, 65535, number));
    WHIT_TRY(own_number(&cursor, keys, "split.count", 0, 65535, count));
    return WHIT_OK;
}

/* Opens file i of a set, reads it, and checks that its split keys agree with its name. */
static whit_status read_split(whit_gguf *gguf, const char *path, size_t stem_bytes, size_t i, size_t n_files,
                              whit_error *error)
{
    size_t name_bytes = stem_bytes + 64;
    char *name = whit_alloc(gguf->allocator, name_bytes);
    if (!name) return whit_fail_memory(error, "a file name", name_bytes);
    snprintf(name, name_bytes, "%.*s-%05zu-of-%05zu.gguf", (int)stem_bytes, path, i + 1, n_files);
    whit_buf keys = {.allocator = gguf->allocator};
    uint64_t number = 0, count = 0;
    whit_status status = add_file(gguf, name, NULL, 0, error);
    if (status == WHIT_ERROR_IO)
        status = whit_fail(error, WHIT_ERROR_IO, "%s (file %zu of a split set of %zu)", error ? error->message : name,
                           i + 1, n_files);
    if (status == WHIT_OK) status = read_file(gguf, i == 0 ? &gguf->key_memory : &keys, error);
    if (status == WHIT_OK) status = split_place(gguf, i == 0 ? &gguf->key_memory : &keys, &number, &count, error);
    if (status == WHIT_OK && (number != i || count != n_files))
        status = whit_fail(error, WHIT_ERROR_FORMAT,
                           "%s: the file says that it is file %llu of %llu, but its name says %zu of %zu", name,
                           (unsigned long long)number + 1, (unsigned long long)count, i + 1, n_files);
    whit_buf_free(&keys);
    whit_free(gguf->allocator, name, name_bytes);
    return status;
}

static whit_status open_split(const char *path, uint64_t n_files, const whit_allocator *allocator, whit_gguf **gguf,
                              whit_error *error)
{
    size_t stem_bytes = split_suffix_at(path, n_files);
    if (n_files > MAX_FILES)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: is one of %llu files, but at most %d can be read", path,
                         (unsigned long long)n_files, MAX_FILES);
    if (!stem_bytes)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: is one of %llu files, but its name does not end in -00001-of-%05llu.gguf, so "
                         "that the others cannot be found",
                         path, (unsigned long long)n_files, (unsigned long long)n_files);
    WHIT_TRY(create(allocator, n_files, gguf, error));
    for (size_t i = 0; i < n_files; i++) WHIT_TRY(read_split(*gguf, path, stem_bytes, i, n_files, error));
    whit_gguf_cursor cursor = {.path = (*gguf)->files[0].path, .error = error};
    uint64_t n_tensors = (*gguf)->tensor_memory.size_bytes / sizeof(whit_gguf_tensor), n_claimed = n_tensors;
    WHIT_TRY(own_number(&cursor, &(*gguf)->key_memory, "split.tensors.count", 0, INT32_MAX, &n_claimed));
    if (n_claimed != n_tensors)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: its split set should contain %llu tensors, but contains %llu",
                         cursor.path, (unsigned long long)n_claimed, (unsigned long long)n_tensors);
    return WHIT_OK;
}

static whit_status open_any(const char *path, const void *data, size_t size_bytes, const whit_allocator *allocator,
                            whit_gguf **gguf, whit_error *error)
{
    uint64_t number = 0, n_files = 1;
    WHIT_TRY(create(allocator, 1, gguf, error));
    WHIT_TRY(add_file(*gguf, path, data, size_bytes, error));
    WHIT_TRY(read_file(*gguf, &(*gguf)->key_memory, error));
    WHIT_TRY(split_place(*gguf, &(*gguf)->key_memory, &number, &n_files, error));
    if (n_files <= 1) return finish_index(*gguf, error);
    if (data)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: is one of %llu files of a split set", path,
                         (unsigned long long)n_files);
    whit_gguf_close(*gguf);
    *gguf = NULL;
    WHIT_TRY(open_split(path, n_files, allocator, gguf, error));
    return finish_index(*gguf, error);
}

whit_status whit_gguf_open(const char *path, const whit_allocator *allocator, whit_gguf **gguf, whit_error *error)
{
    *gguf = NULL;
    whit_status status = open_any(path, NULL, 0, allocator, gguf, error);
    if (status == WHIT_OK) return WHIT_OK;
    whit_gguf_close(*gguf);
    *gguf = NULL;
    return status;
}

whit_status whit_gguf_open_memory(const void *data, size_t size_bytes, const char *name,
                                  const whit_allocator *allocator, whit_gguf **gguf, whit_error *error)
{
    *gguf = NULL;
    whit_status status = open_any(name, data ? data : "", size_bytes, allocator, gguf, error);
    if (status == WHIT_OK) return WHIT_OK;
    whit_gguf_close(*gguf);
    *gguf = NULL;
    return status;
}
