/* SPDX-License-Identifier: MIT */
#include "format/imatrix.h"
#include "base/items.h"

#include "format/gguf_meta.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

static const char sums_end[] = ".in_sum2", counts_end[] = ".counts";

static int compare_entries(const void *a, const void *b)
{
    const whit_imatrix_entry *x = a, *y = b;
    return whit_gguf_compare_names(x->name, x->name_bytes, y->name, y->name_bytes);
}

static whit_status sort_entries(whit_imatrix *m, whit_error *error)
{
    m->entries = WHIT_ITEMS(whit_imatrix_entry, &m->memory);
    m->n = m->memory.size_bytes / sizeof *m->entries;
    if (!m->n)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: contains no importances: make the importance matrix again",
                         m->path);
    qsort(m->entries, m->n, sizeof *m->entries, compare_entries);
    for (size_t i = 1; i < m->n; i++)
        if (compare_entries(&m->entries[i - 1], &m->entries[i]) == 0)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: entry %.*s: occurs twice: the file is damaged", m->path,
                             whit_gguf_shown(m->entries[i].name_bytes), m->entries[i].name);
    return WHIT_OK;
}

static whit_status add_entry(whit_imatrix *m, const whit_imatrix_entry *entry, whit_error *error)
{
    if (whit_buf_append(&m->memory, entry, sizeof *entry)) return WHIT_OK;
    return whit_fail_memory(error, "the list of importances", m->memory.size_bytes + sizeof *entry);
}

/* ---- the binary format ---------------------------------------------------------------------------- */

/* Reads a count and checks that the remaining bytes can contain that many items of at least `bytes_each` bytes. */
static bool take_count(whit_gguf_cursor *c, const char *what, uint32_t bytes_each, uint32_t *count)
{
    uint64_t at = c->at;
    const uint8_t *bytes = whit_gguf_take(c, 4, what);
    if (!bytes) return false;
    *count = whit_load_u32(bytes);
    if (*count <= INT32_MAX && *count <= (c->size_bytes - c->at) / bytes_each) return true;
    whit_fail(c->error, WHIT_ERROR_FORMAT,
              "%s: byte %llu: %s is %u, more than the file can contain; is it an importance matrix?", c->path,
              (unsigned long long)at, what, *count);
    return false;
}

static whit_status read_binary(whit_imatrix *m, whit_gguf_cursor *c, whit_error *error)
{
    uint32_t n_entries, n;
    if (!take_count(c, "the number of entries", 16, &n_entries)) return WHIT_ERROR_FORMAT;
    for (uint32_t i = 0; i < n_entries; i++) {
        whit_imatrix_entry entry = {0};
        if (!take_count(c, "the length of a name", 1, &n)) return WHIT_ERROR_FORMAT;
        entry.name_bytes = n;
        entry.name = (const char *)whit_gguf_take(c, n, "a name");
        const uint8_t *calls = whit_gguf_take(c, 4, "the number of calls");
        if (!calls || !take_count(c, "the number of columns", 4, &n)) return WHIT_ERROR_FORMAT;
        uint32_t n_calls = whit_load_u32(calls);
        entry.count = n_calls <= INT32_MAX ? n_calls : 0;
        entry.n = n;
        entry.sums = whit_gguf_take(c, (uint64_t)n * 4, "importances");
        if (!entry.sums) return WHIT_ERROR_FORMAT;
        WHIT_TRY(add_entry(m, &entry, error));
    }
    if (c->at < c->size_bytes && !whit_gguf_take(c, 4, "the number of chunks")) return WHIT_ERROR_FORMAT;
    if (c->at < c->size_bytes) {
        if (!take_count(c, "the length of the text's name", 1, &n)) return WHIT_ERROR_FORMAT;
        (void)whit_gguf_take(c, n, "the text's name");
    }
    if (c->at < c->size_bytes)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: byte %llu: %llu bytes follow the importances: the file is damaged", m->path,
                         (unsigned long long)c->at, (unsigned long long)(c->size_bytes - c->at));
    return WHIT_OK;
}

/* ---- the GGUF format ---------------------------------------------------------------------------------- */

static bool is_f32(const whit_gguf_tensor *tensor, uint64_t n)
{
    return tensor->kind == WHIT_GGML_F32 && tensor->size_bytes == n * 4;
}

static whit_status add_sums(whit_imatrix *m, const whit_gguf_tensor *sums, whit_error *error)
{
    whit_imatrix_entry entry = {.name = sums->name,
                                .name_bytes = sums->name_bytes - (sizeof sums_end - 1),
                                .sums = sums->data,
                                .n = sums->dims[0]};
    char counts_name[256];
    const whit_gguf_tensor *counts = NULL;
    if (entry.name_bytes + sizeof counts_end <= sizeof counts_name) {
        memcpy(counts_name, entry.name, entry.name_bytes);
        memcpy(counts_name + entry.name_bytes, counts_end, sizeof counts_end);
        counts = whit_gguf_find_tensor(m->gguf, counts_name);
    }
    if (!counts || !is_f32(counts, 1) || !is_f32(sums, entry.n))
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: tensor %.*s: is not a row of f32 sums with its own count; matrices of experts are not "
                         "read",
                         m->path, whit_gguf_shown(sums->name_bytes), sums->name);
    entry.count = (double)whit_load_f32(counts->data);
    return add_entry(m, &entry, error);
}

static whit_status read_gguf(whit_imatrix *m, whit_error *error)
{
    const char *kind = "";
    size_t n = 0;
    WHIT_TRY(whit_gguf_string(m->gguf, "general.type", &kind, &n, error));
    if (n != 7 || memcmp(kind, "imatrix", 7) != 0)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: is a GGUF file, but not an importance matrix", m->path);
    for (size_t i = 0; i < m->gguf->n_tensors; i++) {
        const whit_gguf_tensor *tensor = &m->gguf->tensors[i];
        size_t end = sizeof sums_end - 1;
        if (tensor->name_bytes > end && memcmp(tensor->name + tensor->name_bytes - end, sums_end, end) == 0)
            WHIT_TRY(add_sums(m, tensor, error));
    }
    return WHIT_OK;
}

/* ---- opening a file of either format -------------------------------------------------------------------- */

whit_status whit_imatrix_open_memory(whit_imatrix *m, const void *data, size_t size_bytes, const char *name,
                                     const whit_allocator *allocator, whit_error *error)
{
    whit_error mine; /* the cursor needs an error to write to, and `error` may be NULL */
    if (!error) error = &mine;
    *m = (whit_imatrix){.allocator = allocator, .memory.allocator = allocator};
    m->path = whit_strndup(allocator, name, strlen(name));
    if (!m->path) return whit_fail_memory(error, "a file name", strlen(name) + 1);
    whit_status status;
    if (size_bytes >= 4 && memcmp(data, "GGUF", 4) == 0) {
        status = whit_gguf_open_memory(data, size_bytes, name, allocator, &m->gguf, error);
        if (status == WHIT_OK) status = read_gguf(m, error);
    } else {
        whit_gguf_cursor cursor = {.path = m->path, .data = data, .size_bytes = size_bytes, .error = error};
        status = read_binary(m, &cursor, error);
    }
    if (status == WHIT_OK) status = sort_entries(m, error);
    if (status != WHIT_OK) whit_imatrix_close(m);
    return status;
}

whit_status whit_imatrix_open(whit_imatrix *m, const char *path, const whit_allocator *allocator, whit_error *error)
{
    whit_map map = {0};
    *m = (whit_imatrix){0};
    WHIT_TRY(whit_map_open(path, allocator, &map, error));
    whit_status status = whit_imatrix_open_memory(m, map.data, map.size_bytes, path, allocator, error);
    if (status == WHIT_OK)
        m->map = map;
    else
        whit_map_close(&map);
    return status;
}

void whit_imatrix_close(whit_imatrix *m)
{
    if (!m->path) return;
    whit_gguf_close(m->gguf);
    whit_map_close(&m->map);
    whit_buf_free(&m->memory);
    whit_free(m->allocator, m->path, strlen(m->path) + 1);
    *m = (whit_imatrix){0};
}

const whit_imatrix_entry *whit_imatrix_find(const whit_imatrix *m, const char *name)
{
    whit_imatrix_entry wanted = {.name = name, .name_bytes = strlen(name)};
    return m->n ? bsearch(&wanted, m->entries, m->n, sizeof *m->entries, compare_entries) : NULL;
}

whit_status whit_imatrix_means(const whit_imatrix *m, const whit_imatrix_entry *entry, uint32_t n, float *means,
                               whit_error *error)
{
    int shown = whit_gguf_shown(entry->name_bytes);
    if (entry->n != n)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: %.*s: has %llu importances, the model's matrix %u columns: it belongs to another model",
                         m->path, shown, entry->name, (unsigned long long)entry->n, n);
    if (!(entry->count > 0) || !isfinite(entry->count))
        return whit_fail(error, WHIT_ERROR_NUMERIC,
                         "%s: %.*s: has no count: the calibration text never reached this matrix", m->path, shown,
                         entry->name);
    for (uint32_t i = 0; i < n; i++) {
        means[i] = (float)((double)whit_load_f32(entry->sums + (size_t)i * 4) / entry->count);
        if (!(means[i] >= 0) || !isfinite(means[i]))
            return whit_fail(error, WHIT_ERROR_NUMERIC,
                             "%s: %.*s: importance %u is negative or not finite: the file is damaged", m->path, shown,
                             entry->name, i);
    }
    return WHIT_OK;
}
