/* SPDX-License-Identifier: MIT
 * Builds tables: the setters copy values in the form that files have; whit_table_build sorts and writes them. */
#include "format/ndf_table.h"

#include "format/ndf_layout.h"

#include <math.h>
#include <stdlib.h>

#define TABLE_LIMIT_BYTES ((size_t)1 << 30) /* offsets are u32 */

typedef struct item {
    size_t key_offset, key_bytes;     /* position in `heap` */
    size_t value_offset, value_bytes; /* position in `heap`; unused for single values */
    uint64_t count, scalar;
    uint32_t type, order; /* order: sequence number of the setter's call */
} item;

static void refuse_key(whit_table_builder *builder, const char *key, const char *reason)
{
    if (builder->refused) return;
    builder->refused = reason;
    size_t n = strnlen(key, sizeof builder->refused_key - 1);
    memcpy(builder->refused_key, key, n);
    builder->refused_key[n] = 0;
}

static void set_value(whit_table_builder *builder, const char *key, whit_value_type type, uint64_t count,
                      uint64_t scalar, const void *data, size_t value_bytes)
{
    if (!*key) {
        refuse_key(builder, key, "an empty key is not possible");
        return;
    }
    builder->items.allocator = builder->heap.allocator = builder->allocator;
    builder->heap.limit_bytes = TABLE_LIMIT_BYTES;
    whit_buf *heap = &builder->heap;
    item it = {
        .key_offset = heap->size_bytes,
        .key_bytes = strlen(key),
        .count = count,
        .scalar = scalar,
        .value_bytes = value_bytes,
        .type = type,
        .order = (uint32_t)(builder->items.size_bytes / sizeof it),
    };
    whit_buf_append(heap, key, it.key_bytes);
    it.value_offset = heap->size_bytes;
    whit_buf_append(heap, data, value_bytes);
    whit_buf_append(&builder->items, &it, sizeof it);
}

static void set_scalar(whit_table_builder *builder, const char *key, whit_value_type type, const void *value)
{
    set_value(builder, key, type, 1, whit_load_u64(value), NULL, 0);
}

void whit_table_set_u64(whit_table_builder *builder, const char *key, uint64_t value)
{
    set_scalar(builder, key, WHIT_VALUE_U64, &value);
}

void whit_table_set_i64(whit_table_builder *builder, const char *key, int64_t value)
{
    set_scalar(builder, key, WHIT_VALUE_I64, &value);
}

void whit_table_set_f64(whit_table_builder *builder, const char *key, double value)
{
    /* NaN has many bit patterns, so that equal models could have different identities. */
    if (isnan(value)) refuse_key(builder, key, "a number is NaN");
    set_scalar(builder, key, WHIT_VALUE_F64, &value);
}

void whit_table_set_bool(whit_table_builder *builder, const char *key, bool value)
{
    set_value(builder, key, WHIT_VALUE_BOOL, 1, value, NULL, 0);
}

void whit_table_set_string_n(whit_table_builder *builder, const char *key, const char *text, size_t size_bytes)
{
    if (size_bytes && memchr(text, 0, size_bytes))
        refuse_key(builder, key, "a string with a zero byte cannot be stored");
    set_value(builder, key, WHIT_VALUE_STRING, size_bytes, 0, text, size_bytes);
}

void whit_table_set_string(whit_table_builder *builder, const char *key, const char *text)
{
    whit_table_set_string_n(builder, key, text, strlen(text));
}

void whit_table_set_bytes(whit_table_builder *builder, const char *key, const void *data, size_t size_bytes)
{
    set_value(builder, key, WHIT_VALUE_BYTES, size_bytes, 0, data, size_bytes);
}

static void set_words(whit_table_builder *builder, const char *key, whit_value_type type, const void *values, size_t n)
{
    if (n > TABLE_LIMIT_BYTES / 8)
        refuse_key(builder, key, "an array of more than 2^32 - 1 elements cannot be stored");
    else
        set_value(builder, key, type, n, 0, values, 8 * n);
}

void whit_table_set_u64_array(whit_table_builder *builder, const char *key, const uint64_t *values, size_t n)
{
    set_words(builder, key, WHIT_VALUE_U64_ARRAY, values, n);
}

void whit_table_set_i64_array(whit_table_builder *builder, const char *key, const int64_t *values, size_t n)
{
    set_words(builder, key, WHIT_VALUE_I64_ARRAY, values, n);
}

void whit_table_set_f64_array(whit_table_builder *builder, const char *key, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(values[i])) refuse_key(builder, key, "a number is NaN");
    set_words(builder, key, WHIT_VALUE_F64_ARRAY, values, n);
}

void whit_table_set_bool_array(whit_table_builder *builder, const char *key, const uint8_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (values[i] > 1) refuse_key(builder, key, "a boolean is neither 0 nor 1");
    set_value(builder, key, WHIT_VALUE_BOOL_ARRAY, n, 0, values, n);
}

void whit_table_set_string_array(whit_table_builder *builder, const char *key, const char *const *texts,
                                 const size_t *sizes, size_t n)
{
    whit_buf value = {.allocator = builder->allocator, .limit_bytes = TABLE_LIMIT_BYTES};
    if (n > TABLE_LIMIT_BYTES / sizeof(whit_ndf_string)) {
        refuse_key(builder, key, "an array of more than 2^32 - 1 elements cannot be stored");
        return;
    }
    whit_buf_append_zeros(&value, n * sizeof(whit_ndf_string));
    for (size_t i = 0; i < n && !value.failed; i++) {
        size_t size_bytes = sizes ? sizes[i] : strlen(texts[i]);
        if (size_bytes && memchr(texts[i], 0, size_bytes))
            refuse_key(builder, key, "a string with a zero byte cannot be stored");
        whit_ndf_string string = {(uint32_t)value.size_bytes, (uint32_t)size_bytes};
        whit_buf_append(&value, texts[i], size_bytes);
        whit_buf_append_zeros(&value, 1);
        if (!value.failed) memcpy(value.data + i * sizeof string, &string, sizeof string);
    }
    if (value.failed)
        builder->heap.failed = true;
    else
        set_value(builder, key, WHIT_VALUE_STRING_ARRAY, n, 0, value.data, value.size_bytes);
    whit_buf_free(&value);
}

void whit_table_set_value(whit_table_builder *builder, const char *key, const whit_value *value)
{
    switch (value->type) {
    case WHIT_VALUE_U64: whit_table_set_u64(builder, key, value->u64); break;
    case WHIT_VALUE_I64: whit_table_set_i64(builder, key, value->i64); break;
    case WHIT_VALUE_F64: whit_table_set_f64(builder, key, value->f64); break;
    case WHIT_VALUE_BOOL: whit_table_set_bool(builder, key, value->boolean); break;
    case WHIT_VALUE_STRING: whit_table_set_string_n(builder, key, value->string, value->count); break;
    case WHIT_VALUE_BYTES: whit_table_set_bytes(builder, key, value->bytes, value->count); break;
    case WHIT_VALUE_U64_ARRAY: whit_table_set_u64_array(builder, key, value->u64s, value->count); break;
    case WHIT_VALUE_I64_ARRAY: whit_table_set_i64_array(builder, key, value->i64s, value->count); break;
    case WHIT_VALUE_F64_ARRAY: whit_table_set_f64_array(builder, key, value->f64s, value->count); break;
    case WHIT_VALUE_BOOL_ARRAY: whit_table_set_bool_array(builder, key, value->bytes, value->count); break;
    case WHIT_VALUE_STRING_ARRAY: {
        /* The strings are copied one by one, because the other table may have them in another layout. */
        const char **texts = whit_zalloc_array(builder->allocator, value->count, sizeof *texts);
        size_t *sizes = whit_zalloc_array(builder->allocator, value->count, sizeof *sizes);
        if (texts && sizes) {
            for (uint64_t i = 0; i < value->count; i++) texts[i] = whit_value_string_at(value, i, &sizes[i]);
            whit_table_set_string_array(builder, key, texts, sizes, value->count);
        } else {
            builder->heap.failed = true;
        }
        whit_free(builder->allocator, texts, value->count * sizeof *texts);
        whit_free(builder->allocator, sizes, value->count * sizeof *sizes);
        break;
    }
    }
}

/* Compares by key. Of equal keys, the value that was set last comes first. */
static int compare_keys(const void *left, const void *right, void *heap)
{
    const item *a = left, *b = right;
    size_t n = a->key_bytes < b->key_bytes ? a->key_bytes : b->key_bytes;
    const uint8_t *bytes = heap;
    int order = memcmp(bytes + a->key_offset, bytes + b->key_offset, n);
    if (order) return order;
    if (a->key_bytes != b->key_bytes) return a->key_bytes < b->key_bytes ? -1 : 1;
    return a->order < b->order ? 1 : -1;
}

static size_t drop_repeated(item *items, size_t n, const uint8_t *heap)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || items[kept - 1].key_bytes != items[i].key_bytes ||
            memcmp(heap + items[kept - 1].key_offset, heap + items[i].key_offset, items[i].key_bytes) != 0)
            items[kept++] = items[i];
    return kept;
}

/* Appends the table to `out`. The items must be sorted and their keys distinct. */
static void lay_out(const item *items, uint32_t n, const uint8_t *heap, whit_buf *out)
{
    uint32_t n_buckets = whit_ndf_n_buckets(n);
    size_t start = out->size_bytes;
    size_t entries = sizeof(whit_ndf_table_header), buckets = entries + n * sizeof(whit_ndf_entry);
    whit_buf_append_zeros(out, buckets + n_buckets * sizeof(uint32_t));
    for (uint32_t i = 0; i < n && !out->failed; i++) {
        const item *it = &items[i];
        const char *key = (const char *)heap + it->key_offset;
        whit_ndf_entry entry = {
            .name = {(uint32_t)(out->size_bytes - start), (uint32_t)it->key_bytes,
                     whit_ndf_name_hash(key, it->key_bytes)},
            .type = it->type,
            .count = it->count,
            .value = it->scalar,
        };
        whit_buf_append(out, key, it->key_bytes);
        whit_buf_append_zeros(out, 1);
        if (!out->failed) memcpy(out->data + start + entries + i * sizeof entry, &entry, sizeof entry);
    }
    for (uint32_t i = 0; i < n && !out->failed; i++) {
        const item *it = &items[i];
        if (it->type <= WHIT_VALUE_BOOL) continue;
        whit_buf_align(out, 8);
        uint64_t offset = out->size_bytes - start;
        whit_buf_append(out, heap + it->value_offset, it->value_bytes);
        if (it->type == WHIT_VALUE_STRING) whit_buf_append_zeros(out, 1);
        if (!out->failed)
            memcpy(out->data + start + entries + i * sizeof(whit_ndf_entry) + offsetof(whit_ndf_entry, value), &offset,
                   sizeof offset);
    }
    whit_buf_align(out, 8);
    if (out->failed) return;
    whit_ndf_table_header header = {n, n_buckets, out->size_bytes - start};
    memcpy(out->data + start, &header, sizeof header);
    whit_ndf_fill_buckets(out->data + start + entries, sizeof(whit_ndf_entry), n,
                          (uint32_t *)(out->data + start + buckets), n_buckets);
}

whit_status whit_table_build(const whit_table_builder *builder, whit_buf *out, whit_error *error)
{
    if (builder->refused)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "key '%s': %s", builder->refused_key, builder->refused);
    if (builder->items.failed || builder->heap.failed)
        return whit_fail_memory(error, "a key/value table", builder->heap.size_bytes);
    size_t size_bytes = builder->items.size_bytes;
    item *items = whit_alloc(builder->allocator, size_bytes);
    if (!items) return whit_fail_memory(error, "a key/value table", size_bytes);
    if (size_bytes) memcpy(items, builder->items.data, size_bytes);
    size_t n = size_bytes / sizeof *items;
    if (n) qsort_r(items, n, sizeof *items, compare_keys, builder->heap.data);
    n = drop_repeated(items, n, builder->heap.data);
    whit_buf_align(out, 8);
    lay_out(items, (uint32_t)n, builder->heap.data, out);
    whit_free(builder->allocator, items, size_bytes);
    return out->failed ? whit_fail_memory(error, "a key/value table", out->size_bytes) : WHIT_OK;
}

void whit_table_builder_free(whit_table_builder *builder)
{
    whit_buf_free(&builder->items);
    whit_buf_free(&builder->heap);
}
