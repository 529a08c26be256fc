/* SPDX-License-Identifier: MIT
 * Reads safetensors files, and sets of shards. */
#include "format/safetensors.h"

#include "base/half.h"
#include "base/items.h"
#include "base/phrase.h"
#include "format/lfs.h"

#include <stdlib.h>

/* Limit of a header. The JSON parser needs about 16 bytes per value; a header has about 100 bytes per tensor. */
#define MAX_HEADER_BYTES (16u << 20)
#define MAX_FILES        1024

static const struct {
    const char *name;
    uint8_t bytes;
} dtypes[WHIT_DTYPE_COUNT] = {
    [WHIT_DTYPE_F64] = {"F64", 8},   [WHIT_DTYPE_F32] = {"F32", 4},         [WHIT_DTYPE_F16] = {"F16", 2},
    [WHIT_DTYPE_BF16] = {"BF16", 2}, [WHIT_DTYPE_F8_E4M3] = {"F8_E4M3", 1}, [WHIT_DTYPE_F8_E5M2] = {"F8_E5M2", 1},
    [WHIT_DTYPE_I64] = {"I64", 8},   [WHIT_DTYPE_I32] = {"I32", 4},         [WHIT_DTYPE_I16] = {"I16", 2},
    [WHIT_DTYPE_I8] = {"I8", 1},     [WHIT_DTYPE_U64] = {"U64", 8},         [WHIT_DTYPE_U32] = {"U32", 4},
    [WHIT_DTYPE_U16] = {"U16", 2},   [WHIT_DTYPE_U8] = {"U8", 1},           [WHIT_DTYPE_BOOL] = {"BOOL", 1},
};

size_t whit_dtype_bytes(whit_dtype dtype)
{
    return dtypes[dtype].bytes;
}

static int shown(size_t name_bytes)
{
    return name_bytes < 120 ? (int)name_bytes : 120;
}

static int compare_text(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    size_t n = a_bytes < b_bytes ? a_bytes : b_bytes;
    int order = n ? memcmp(a, b, n) : 0;
    if (order) return order;
    return a_bytes < b_bytes ? -1 : a_bytes > b_bytes;
}

static int compare_names(const void *a, const void *b)
{
    const whit_safetensor *p = a, *q = b;
    return compare_text(p->name, p->name_bytes, q->name, q->name_bytes);
}

static int compare_offsets(const void *a, const void *b)
{
    const whit_safetensor *p = a, *q = b;
    if (p->data != q->data) return p->data < q->data ? -1 : 1;
    return p->size_bytes < q->size_bytes ? -1 : p->size_bytes > q->size_bytes;
}

/* ---- one file ------------------------------------------------------------------------------- */

static whit_status read_dtype(const whit_json *json, uint32_t value, whit_safetensor *tensor, whit_error *error)
{
    uint32_t at = whit_json_get(json, value, "dtype");
    for (int dtype = 0; dtype < WHIT_DTYPE_COUNT; dtype++)
        if (whit_json_is(json, at, dtypes[dtype].name)) {
            tensor->dtype = (whit_dtype)dtype;
            return WHIT_OK;
        }
    size_t n_bytes;
    const char *text = whit_json_string(json, at, &n_bytes);
    return whit_json_fail(json, value, error, "tensor %.*s: dtype %.*s is not known", shown(tensor->name_bytes),
                          tensor->name, shown(n_bytes), whit_or_empty(text));
}

/* Reads a tensor's dimensions and computes its size. */
static whit_status read_shape(const whit_json *json, uint32_t value, whit_safetensor *tensor, whit_error *error)
{
    uint32_t shape = whit_json_get(json, value, "shape");
    uint64_t size = dtypes[tensor->dtype].bytes;
    bool sound = whit_json_type_of(json, shape) == WHIT_JSON_ARRAY;
    for (uint32_t at = whit_json_first(json, shape); sound && at != WHIT_JSON_NONE;
         at = whit_json_next(json, shape, at)) {
        int64_t dim;
        sound = tensor->n_dims < WHIT_SAFETENSORS_MAX_DIMS && whit_json_i64(json, at, &dim) && dim >= 0 &&
            !__builtin_mul_overflow(size, (uint64_t)dim, &size);
        if (sound) tensor->dims[tensor->n_dims++] = (uint64_t)dim;
    }
    tensor->size_bytes = size;
    if (sound) return WHIT_OK;
    return whit_json_fail(json, value, error, "tensor %.*s: its shape is not a list of at most %d sizes within bounds",
                          shown(tensor->name_bytes), tensor->name, WHIT_SAFETENSORS_MAX_DIMS);
}

static whit_status read_tensor(const whit_safetensors_file *file, uint32_t key, uint64_t data_start,
                               whit_safetensor *tensor, whit_error *error)
{
    const whit_json *json = &file->header;
    uint32_t value = key + 1;
    if (whit_json_type_of(json, value) != WHIT_JSON_OBJECT)
        return whit_json_fail(json, value, error, "tensor %.*s: its entry is not an object", shown(tensor->name_bytes),
                              tensor->name);
    WHIT_TRY(read_dtype(json, value, tensor, error));
    WHIT_TRY(read_shape(json, value, tensor, error));
    uint32_t offsets = whit_json_get(json, value, "data_offsets"), first = whit_json_first(json, offsets);
    int64_t begin, end;
    if (whit_json_type_of(json, offsets) != WHIT_JSON_ARRAY || whit_json_count(json, offsets) != 2 ||
        !whit_json_i64(json, first, &begin) || !whit_json_i64(json, whit_json_next(json, offsets, first), &end) ||
        begin < 0 || end < begin)
        return whit_json_fail(json, value, error, "tensor %.*s: data_offsets is not a pair of ascending offsets",
                              shown(tensor->name_bytes), tensor->name);
    if ((uint64_t)(end - begin) != tensor->size_bytes)
        return whit_json_fail(json, value, error, "tensor %.*s: its shape needs %llu bytes, but data_offsets give %lld",
                              shown(tensor->name_bytes), tensor->name, (unsigned long long)tensor->size_bytes,
                              (long long)(end - begin));
    if (!whit_in_bounds((uint64_t)begin, tensor->size_bytes, file->size_bytes - data_start))
        return whit_json_fail(
            json, value, error,
            "tensor %.*s: ends at byte %lld of the data, but the file has only %llu: it is damaged or truncated",
            shown(tensor->name_bytes), tensor->name, (long long)end,
            (unsigned long long)(file->size_bytes - data_start));
    tensor->data = file->data + data_start + (uint64_t)begin;
    return WHIT_OK;
}

static whit_status read_header(whit_safetensors_file *file, const whit_allocator *allocator, uint64_t *data_start,
                               whit_error *error)
{
    if (whit_is_lfs_pointer(file->data, file->size_bytes))
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: " WHIT_LFS_REASON, file->path);
    if (file->size_bytes < 8)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: byte 0: is not a safetensors file, because it is too short: download it again",
                         file->path);
    uint64_t header_bytes = whit_load_u64(file->data);
    if (header_bytes > file->size_bytes - 8 || header_bytes > MAX_HEADER_BYTES)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: byte 0: claims a header of %llu bytes, %s", file->path,
                         (unsigned long long)header_bytes,
                         header_bytes > file->size_bytes - 8
                             ? "more than the file contains: it is damaged, truncated, or not a safetensors file"
                             : "more than any model has");
    *data_start = 8 + header_bytes;
    WHIT_TRY(whit_json_parse(file->path, (const char *)file->data + 8, (size_t)header_bytes, allocator, &file->header,
                             error));
    if (whit_json_type_of(&file->header, WHIT_JSON_ROOT) == WHIT_JSON_OBJECT) return WHIT_OK;
    return whit_json_fail(&file->header, WHIT_JSON_ROOT, error, "the header is not an object");
}

/* Checks that tensors do not overlap. `tensors` must be sorted by position. */
static whit_status check_overlaps(const whit_safetensors_file *file, const whit_safetensor *tensors, size_t n,
                                  whit_error *error)
{
    const whit_safetensor *before = NULL;
    for (size_t i = 0; i < n; i++) {
        if (tensors[i].size_bytes == 0) continue;
        if (before && tensors[i].data < before->data + before->size_bytes)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: tensor %.*s: overlaps tensor %.*s: the file is damaged",
                             file->path, shown(tensors[i].name_bytes), tensors[i].name, shown(before->name_bytes),
                             before->name);
        before = &tensors[i];
    }
    return WHIT_OK;
}

static whit_status check_twice(const char *path, const whit_safetensor *tensors, size_t n, whit_error *error)
{
    for (size_t i = 1; i < n; i++)
        if (compare_names(&tensors[i - 1], &tensors[i]) == 0)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: tensor %.*s occurs twice: the file is damaged", path,
                             shown(tensors[i].name_bytes), tensors[i].name);
    return WHIT_OK;
}

/* Appends all tensors of the file opened last to `list` (array of whit_safetensor), sorted by name. */
static whit_status read_file(whit_safetensors *set, whit_buf *list, whit_error *error)
{
    whit_safetensors_file *file = &set->files[set->n_files - 1];
    uint64_t data_start = 0;
    WHIT_TRY(read_header(file, set->allocator, &data_start, error));
    const whit_json *json = &file->header;
    for (uint32_t key = whit_json_first(json, WHIT_JSON_ROOT); key != WHIT_JSON_NONE;
         key = whit_json_next(json, WHIT_JSON_ROOT, key)) {
        if (whit_json_is(json, key, "__metadata__")) continue;
        whit_safetensor tensor = {.file = (uint32_t)(set->n_files - 1)};
        tensor.name = whit_json_string(json, key, &tensor.name_bytes);
        WHIT_TRY(read_tensor(file, key, data_start, &tensor, error));
        if (!whit_buf_append(list, &tensor, sizeof tensor))
            return whit_fail_memory(error, "the list of tensors", list->size_bytes + sizeof tensor);
    }
    size_t n = list->size_bytes / sizeof(whit_safetensor);
    whit_safetensor *tensors = WHIT_ITEMS(whit_safetensor, list);
    if (n == 0) return WHIT_OK;
    qsort(tensors, n, sizeof *tensors, compare_offsets);
    WHIT_TRY(check_overlaps(file, tensors, n, error));
    qsort(tensors, n, sizeof *tensors, compare_names);
    return check_twice(file->path, tensors, n, error);
}

static whit_status add_file(whit_safetensors *set, const char *path, const void *data, size_t size_bytes,
                            whit_error *error)
{
    whit_safetensors_file empty = {0};
    if (!whit_buf_append(&set->file_memory, &empty, sizeof empty))
        return whit_fail_memory(error, "a list of files", sizeof empty);
    set->files = WHIT_ITEMS(whit_safetensors_file, &set->file_memory);
    whit_safetensors_file *file = &set->files[set->n_files++];
    file->path = whit_strndup(set->allocator, path, strlen(path));
    if (!file->path) return whit_fail_memory(error, "a file name", strlen(path) + 1);
    if (!data) {
        WHIT_TRY(whit_map_open(path, set->allocator, &file->map, error));
        data = file->map.data;
        size_bytes = file->map.size_bytes;
    }
    file->data = data;
    file->size_bytes = size_bytes;
    return WHIT_OK;
}

/* ---- shards --------------------------------------------------------------------------------- */

/* An entry of the index's weight_map: a tensor's name and the name of its shard. */
struct entry {
    const char *name, *file;
    size_t name_bytes, file_bytes;
    uint32_t key;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *p = a, *q = b;
    int order = compare_text(p->file, p->file_bytes, q->file, q->file_bytes);
    return order ? order : compare_text(p->name, p->name_bytes, q->name, q->name_bytes);
}

static whit_status read_weight_map(const whit_json *index, whit_buf *entries, whit_error *error)
{
    uint32_t weight_map = whit_json_get(index, WHIT_JSON_ROOT, "weight_map");
    if (whit_json_type_of(index, weight_map) != WHIT_JSON_OBJECT)
        return whit_json_fail(index, WHIT_JSON_ROOT, error,
                              "this object has no weight_map, so it is not an index of shards");
    for (uint32_t key = whit_json_first(index, weight_map); key != WHIT_JSON_NONE;
         key = whit_json_next(index, weight_map, key)) {
        struct entry entry = {.key = key};
        entry.name = whit_json_string(index, key, &entry.name_bytes);
        entry.file = whit_json_string(index, key + 1, &entry.file_bytes);
        /* The shard must be a file name without a folder, so that an index cannot refer to files outside its folder. */
        if (!entry.file || !entry.file_bytes || entry.file[0] == '.' || memchr(entry.file, '/', entry.file_bytes) ||
            memchr(entry.file, 0, entry.file_bytes) || entry.file_bytes > 255)
            return whit_json_fail(index, key + 1, error, "the shard of tensor %.*s is not a plain file name",
                                  shown(entry.name_bytes), entry.name);
        if (!whit_buf_append(entries, &entry, sizeof entry))
            return whit_fail_memory(error, "an index of shards", entries->size_bytes + sizeof entry);
    }
    if (entries->size_bytes == 0) return whit_json_fail(index, weight_map, error, "the weight_map is empty");
    qsort(entries->data, entries->size_bytes / sizeof(struct entry), sizeof(struct entry), compare_entries);
    return WHIT_OK;
}

/* Opens the shard that these n entries name, and adds the tensors that they list to the set. */
static whit_status read_shard(whit_safetensors *set, const char *index_path, const struct entry *entries, size_t n,
                              whit_error *error)
{
    const char *slash = strrchr(index_path, '/');
    size_t folder_bytes = slash ? (size_t)(slash - index_path) + 1 : 0;
    size_t path_bytes = folder_bytes + entries->file_bytes + 1;
    char *path = whit_alloc(set->allocator, path_bytes);
    if (!path) return whit_fail_memory(error, "a file name", path_bytes);
    memcpy(path, index_path, folder_bytes);
    memcpy(path + folder_bytes, entries->file, entries->file_bytes);
    path[path_bytes - 1] = 0;
    whit_buf list = {.allocator = set->allocator};
    whit_status status = set->n_files < MAX_FILES
        ? add_file(set, path, NULL, 0, error)
        : whit_fail(error, WHIT_ERROR_LIMIT, "%s: names more than %d shards, the limit", index_path, MAX_FILES);
    if (status == WHIT_ERROR_IO)
        status = whit_fail(error, status, "%s (a shard that %s names)", error ? error->message : path, index_path);
    if (status == WHIT_OK) status = read_file(set, &list, error);
    for (size_t i = 0; i < n && status == WHIT_OK; i++) {
        const whit_safetensor wanted = {.name = entries[i].name, .name_bytes = entries[i].name_bytes};
        const whit_safetensor *found = list.size_bytes
            ? bsearch(&wanted, list.data, list.size_bytes / sizeof wanted, sizeof wanted, compare_names)
            : NULL;
        if (!found)
            status = whit_json_fail(&set->index, entries[i].key, error, "tensor %.*s is not in its shard %s",
                                    shown(wanted.name_bytes), wanted.name, path);
        else if (!whit_buf_append(&set->tensor_memory, found, sizeof *found))
            status = whit_fail_memory(error, "the list of tensors", set->tensor_memory.size_bytes);
    }
    whit_buf_free(&list);
    whit_free(set->allocator, path, path_bytes);
    return status;
}

static whit_status read_index(whit_safetensors *set, const char *path, whit_buf *entries, whit_error *error)
{
    WHIT_TRY(whit_read_found_file(path, MAX_HEADER_BYTES, &set->index_text, error));
    if (whit_is_lfs_pointer(set->index_text.data, set->index_text.size_bytes))
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: " WHIT_LFS_REASON, path);
    WHIT_TRY(whit_json_parse(path, whit_chars(&set->index_text), set->index_text.size_bytes, set->allocator,
                             &set->index, error));
    WHIT_TRY(read_weight_map(&set->index, entries, error));
    const struct entry *all = WHIT_ITEMS(const struct entry, entries);
    size_t n_all = entries->size_bytes / sizeof *all;
    for (size_t first = 0, n; first < n_all; first += n) {
        const struct entry *shard = all + first;
        for (n = 1; first + n < n_all; n++)
            if (compare_text(shard->file, shard->file_bytes, shard[n].file, shard[n].file_bytes) != 0) break;
        WHIT_TRY(read_shard(set, path, shard, n, error));
    }
    return WHIT_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

static bool ends_in(const char *path, const char *end)
{
    size_t n = strlen(path), n_end = strlen(end);
    return n >= n_end && strcmp(path + n - n_end, end) == 0;
}

static whit_status open_set(whit_safetensors *set, const char *path, const void *data, size_t size_bytes,
                            whit_error *error)
{
    if (!data && ends_in(path, ".json")) {
        whit_buf entries = {.allocator = set->allocator};
        whit_status status = read_index(set, path, &entries, error);
        whit_buf_free(&entries);
        WHIT_TRY(status);
    } else {
        WHIT_TRY(add_file(set, path, data, size_bytes, error));
        WHIT_TRY(read_file(set, &set->tensor_memory, error));
    }
    set->tensors = WHIT_ITEMS(whit_safetensor, &set->tensor_memory);
    set->n_tensors = set->tensor_memory.size_bytes / sizeof *set->tensors;
    if (set->n_tensors) qsort(set->tensors, set->n_tensors, sizeof *set->tensors, compare_names);
    return check_twice(path, set->tensors, set->n_tensors, error);
}

static whit_status open_any(const char *path, const void *data, size_t size_bytes, const whit_allocator *allocator,
                            whit_safetensors **set, whit_error *error)
{
    *set = NULL;
    whit_safetensors *opened = whit_zalloc(allocator, sizeof *opened);
    if (!opened) return whit_fail_memory(error, "reading the safetensors files", sizeof *opened);
    opened->allocator = opened->file_memory.allocator = opened->tensor_memory.allocator = opened->index_text.allocator =
        allocator;
    whit_status status = open_set(opened, path, data, size_bytes, error);
    if (status == WHIT_OK)
        *set = opened;
    else
        whit_safetensors_close(opened);
    return status;
}

whit_status whit_safetensors_open(const char *path, const whit_allocator *allocator, whit_safetensors **set,
                                  whit_error *error)
{
    return open_any(path, NULL, 0, allocator, set, error);
}

whit_status whit_safetensors_open_memory(const void *data, size_t size_bytes, const char *name,
                                         const whit_allocator *allocator, whit_safetensors **set, whit_error *error)
{
    return open_any(name, data ? data : "", size_bytes, allocator, set, error);
}

void whit_safetensors_close(whit_safetensors *set)
{
    if (!set) return;
    for (size_t i = 0; i < set->n_files; i++) {
        whit_safetensors_file *file = &set->files[i];
        whit_json_close(&file->header);
        whit_map_close(&file->map);
        if (file->path) whit_free(set->allocator, file->path, strlen(file->path) + 1);
    }
    whit_json_close(&set->index);
    whit_buf_free(&set->index_text);
    whit_buf_free(&set->file_memory);
    whit_buf_free(&set->tensor_memory);
    whit_free(set->allocator, set, sizeof *set);
}

/* ---- access --------------------------------------------------------------------------------- */

const whit_safetensor *whit_safetensors_find(const whit_safetensors *set, const char *name)
{
    whit_safetensor wanted = {.name = name, .name_bytes = strlen(name)};
    return set->n_tensors ? bsearch(&wanted, set->tensors, set->n_tensors, sizeof wanted, compare_names) : NULL;
}

bool whit_safetensor_view(const whit_safetensor *tensor, whit_ggml_view *view)
{
    if (tensor->size_bytes == 0) return false;
    switch (tensor->dtype) {
    case WHIT_DTYPE_F32: view->kind = WHIT_GGML_F32; break;
    case WHIT_DTYPE_F16: view->kind = WHIT_GGML_F16; break;
    case WHIT_DTYPE_BF16: view->kind = WHIT_GGML_BF16; break;
    default: return false;
    }
    view->data = tensor->data;
    view->n_cols = tensor->n_dims ? tensor->dims[tensor->n_dims - 1] : 1;
    view->n_rows = tensor->size_bytes / whit_dtype_bytes(tensor->dtype) / view->n_cols;
    return true;
}

bool whit_safetensor_f64(const whit_safetensor *tensor, uint64_t i, double *value)
{
    size_t width = whit_dtype_bytes(tensor->dtype);
    if (i >= tensor->size_bytes / width) return false;
    const uint8_t *p = tensor->data + i * width;
    switch (tensor->dtype) {
    case WHIT_DTYPE_F64: *value = whit_load_f64(p); return true;
    case WHIT_DTYPE_F32: *value = (double)whit_load_f32(p); return true;
    case WHIT_DTYPE_F16: *value = (double)whit_f32_from_f16(whit_load_u16(p)); return true;
    case WHIT_DTYPE_BF16: *value = (double)whit_f32_from_bf16(whit_load_u16(p)); return true;
    case WHIT_DTYPE_I64: *value = (double)(int64_t)whit_load_u64(p); return true;
    case WHIT_DTYPE_I32: *value = (int32_t)whit_load_u32(p); return true;
    case WHIT_DTYPE_I16: *value = (int16_t)whit_load_u16(p); return true;
    case WHIT_DTYPE_I8: *value = (int8_t)p[0]; return true;
    case WHIT_DTYPE_U64: *value = (double)whit_load_u64(p); return true;
    case WHIT_DTYPE_U32: *value = whit_load_u32(p); return true;
    case WHIT_DTYPE_U16: *value = whit_load_u16(p); return true;
    case WHIT_DTYPE_U8:
    case WHIT_DTYPE_BOOL: *value = p[0]; return true;
    default: return false;
    }
}
