/* SPDX-License-Identifier: MIT
 * Typed key/value tables that are read in place (docs/dev/format.md, "Tables"), and a builder for them.
 *
 * A whit_table refers to bytes that it does not own (a mapped file, a buffer). whit_table_open checks them once.
 * Reading needs no lock. */
#ifndef WHIT_FORMAT_NDF_TABLE_H
#define WHIT_FORMAT_NDF_TABLE_H

#include "format/ndf_names.h"

/* Types of values. Files store these numbers. */
typedef enum whit_value_type {
    WHIT_VALUE_U64 = 1,
    WHIT_VALUE_I64 = 2,
    WHIT_VALUE_F64 = 3,
    WHIT_VALUE_BOOL = 4,
    WHIT_VALUE_STRING = 5, /* NUL-terminated, no NUL inside; normally UTF-8 */
    WHIT_VALUE_BYTES = 6,
    WHIT_VALUE_U64_ARRAY = 17,
    WHIT_VALUE_I64_ARRAY = 18,
    WHIT_VALUE_F64_ARRAY = 19,
    WHIT_VALUE_BOOL_ARRAY = 20, /* one byte per element: 0 or 1 */
    WHIT_VALUE_STRING_ARRAY = 21,
} whit_value_type;

/* A value of a table. Its pointers point into the table's bytes and are valid as long as these. */
typedef struct whit_value {
    whit_value_type type;
    uint64_t count; /* number of elements of an array, or of bytes of a string (without the terminator) or bytes value;
                     * 1 for single values */
    union {
        uint64_t u64;
        int64_t i64;
        double f64;
        bool boolean;
        const char *string;
        const uint8_t *bytes; /* also bool arrays and string arrays */
        const uint64_t *u64s;
        const int64_t *i64s;
        const double *f64s;
    };
} whit_value;

typedef struct whit_table {
    whit_ndf_names names;
} whit_table;

/* Checks a table of `size_bytes` bytes at `data`, which is 8-byte aligned. `place` begins the error message. */
whit_status whit_table_open(const void *data, size_t size_bytes, const char *place, whit_table *table,
                            whit_error *error);
uint32_t whit_table_count(const whit_table *table);
/* Returns the key of entry `i`, in the order of keys, and its value. `i` must be less than whit_table_count. */
const char *whit_table_at(const whit_table *table, uint32_t i, whit_value *value);
/* Finds the value of a key; returns false if the key is absent. This takes some tens of nanoseconds for a table of any
 * size. */
bool whit_table_get(const whit_table *table, const char *key, whit_value *value);

/* Find a value of the given type. Return false (or NULL) if the key is absent, or its value has another type or does
 * not fit. U64 and I64 values convert to each other if they fit, and to f64. */
bool whit_table_get_u64(const whit_table *table, const char *key, uint64_t *value);
bool whit_table_get_i64(const whit_table *table, const char *key, int64_t *value);
bool whit_table_get_f64(const whit_table *table, const char *key, double *value);
bool whit_table_get_bool(const whit_table *table, const char *key, bool *value);
const char *whit_table_get_string(const whit_table *table, const char *key);
/* Returns element `i` of a string array, NUL-terminated; `i` must be less than value->count. */
const char *whit_value_string_at(const whit_value *value, uint64_t i, size_t *size_bytes);

/* ---- building ---- */

/* Builds a table. Zero-initialise it and set `allocator`. The setters copy their arguments; if a key is set twice, the
 * last value counts. A setter's failure (memory, an empty key, a zero byte in a string, NaN) is reported by
 * whit_table_build. */
typedef struct whit_table_builder {
    const whit_allocator *allocator;
    whit_buf items, heap;
    const char *refused; /* reason why a value was refused; NULL: no value was refused */
    char refused_key[64];
} whit_table_builder;

void whit_table_set_u64(whit_table_builder *builder, const char *key, uint64_t value);
void whit_table_set_i64(whit_table_builder *builder, const char *key, int64_t value);
void whit_table_set_f64(whit_table_builder *builder, const char *key, double value);
void whit_table_set_bool(whit_table_builder *builder, const char *key, bool value);
void whit_table_set_string(whit_table_builder *builder, const char *key, const char *text);
void whit_table_set_string_n(whit_table_builder *builder, const char *key, const char *text, size_t size_bytes);
void whit_table_set_bytes(whit_table_builder *builder, const char *key, const void *data, size_t size_bytes);
void whit_table_set_u64_array(whit_table_builder *builder, const char *key, const uint64_t *values, size_t n);
void whit_table_set_i64_array(whit_table_builder *builder, const char *key, const int64_t *values, size_t n);
void whit_table_set_f64_array(whit_table_builder *builder, const char *key, const double *values, size_t n);
void whit_table_set_bool_array(whit_table_builder *builder, const char *key, const uint8_t *values, size_t n);
/* Sets an array of n strings. `sizes` NULL: the texts are NUL-terminated. */
void whit_table_set_string_array(whit_table_builder *builder, const char *key, const char *const *texts,
                                 const size_t *sizes, size_t n);
/* Sets a value that was read from another table. */
void whit_table_set_value(whit_table_builder *builder, const char *key, const whit_value *value);

/* Appends the table to `out`, at the next multiple of 8. The builder stays unchanged. The same keys and values result
 * in the same bytes, in whatever order they were set. */
whit_status whit_table_build(const whit_table_builder *builder, whit_buf *out, whit_error *error);
void whit_table_builder_free(whit_table_builder *builder);

#endif
