/* SPDX-License-Identifier: MIT
 * Reads tables in place.
 *
 * header 16 bytes | entries 32 bytes each, sorted by key | buckets u32 each | keys, NUL-terminated | values, 8-byte
 * aligned
 *
 * Offsets count from the table's first byte. The offsets of a string array's elements count from the array's first
 * byte. */
#include "format/ndf_table.h"

#include "format/ndf_layout.h"

static bool is_nan(uint64_t bits)
{
    return bits << 1 > (uint64_t)0x7FF << 53;
}

/* Returns NULL, or the reason why a string array is invalid. Adds the sizes of its strings to *n_bytes. */
static const char *check_strings(const uint8_t *array, uint64_t room, uint64_t count, uint64_t n_bytes_max,
                                 uint64_t *n_bytes)
{
    const whit_ndf_string *strings = (const whit_ndf_string *)array;
    for (uint64_t i = 0; i < count; i++) {
        if (!whit_in_bounds(strings[i].offset, (uint64_t)strings[i].bytes + 1, room) ||
            array[(uint64_t)strings[i].offset + strings[i].bytes] != 0)
            return "one of its strings is outside the table";
        *n_bytes += (uint64_t)strings[i].bytes + 1;
        if (*n_bytes > n_bytes_max) return NULL; /* strings overlap: stop, the caller reports it */
        if (memchr(array + strings[i].offset, 0, strings[i].bytes)) return "one of its strings has a zero byte";
    }
    return NULL;
}

/* Returns NULL, or the reason why a value is invalid. The builder refuses the same values (ndf_table_build.c). Equal
 * values must have equal bytes, because otherwise equal models could have different identities. */
static const char *check_elements(whit_value_type type, const uint8_t *value, uint64_t count)
{
    if (type == WHIT_VALUE_STRING && memchr(value, 0, count)) return "its string has a zero byte";
    for (uint64_t i = 0; type == WHIT_VALUE_BOOL_ARRAY && i < count; i++)
        if (value[i] > 1) return "a boolean is neither 0 nor 1";
    for (uint64_t i = 0; type == WHIT_VALUE_F64_ARRAY && i < count; i++)
        if (is_nan(whit_load_u64(value + 8 * i))) return "a number is NaN";
    return NULL;
}

/* Returns NULL, or the reason why an entry's value is invalid, and adds its size to *n_bytes. If the sum exceeds the
 * table's size, values overlap; a small file could then keep a reader busy for hours. */
static const char *check_value(const uint8_t *data, size_t size_bytes, const whit_ndf_entry *entry, uint64_t *n_bytes)
{
    uint64_t at = entry->value, count = entry->count, unit = 1;
    switch ((whit_value_type)entry->type) {
    case WHIT_VALUE_BOOL:
        if (entry->value > 1) return "a boolean is neither 0 nor 1";
        return count == 1 ? NULL : "a single value has a wrong count";
    case WHIT_VALUE_U64:
    case WHIT_VALUE_I64: return count == 1 ? NULL : "a single value has a wrong count";
    case WHIT_VALUE_F64:
        if (is_nan(entry->value)) return "a number is NaN";
        return count == 1 ? NULL : "a single value has a wrong count";
    case WHIT_VALUE_STRING:
        if (!whit_in_bounds(at, count, size_bytes) || count == size_bytes - at || data[at + count] != 0)
            return "its string is outside the table";
        break;
    case WHIT_VALUE_BYTES:
    case WHIT_VALUE_BOOL_ARRAY: break;
    case WHIT_VALUE_U64_ARRAY:
    case WHIT_VALUE_I64_ARRAY:
    case WHIT_VALUE_F64_ARRAY:
    case WHIT_VALUE_STRING_ARRAY: unit = 8; break;
    default: return "its type is unknown";
    }
    if (entry->type != WHIT_VALUE_STRING && at % 8) return "its value is not aligned";
    if (at > size_bytes || count > (size_bytes - at) / unit) return "its value is outside the table";
    *n_bytes += count * unit;
    /* The size is checked before the elements are, so that their number is limited by the table's size. */
    if (*n_bytes > size_bytes) return "its value overlaps others";
    const char *reason = entry->type == WHIT_VALUE_STRING_ARRAY
        ? check_strings(data + at, size_bytes - at, count, size_bytes, n_bytes)
        : check_elements((whit_value_type)entry->type, data + at, count);
    if (reason) return reason;
    return *n_bytes > size_bytes ? "its value overlaps others" : NULL;
}

whit_status whit_table_open(const void *data, size_t size_bytes, const char *place, whit_table *table,
                            whit_error *error)
{
    *table = (whit_table){0};
    const whit_ndf_table_header *header = data;
    if (size_bytes < sizeof *header || header->size_bytes != size_bytes)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the table's size is wrong: the file is damaged", place);
    size_t room = size_bytes - sizeof *header;
    if (header->n_entries > room / sizeof(whit_ndf_entry) ||
        header->n_buckets > (room - header->n_entries * sizeof(whit_ndf_entry)) / sizeof(uint32_t))
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: its %u entries do not fit into %zu bytes: the file is damaged",
                         place, header->n_entries, size_bytes);
    const uint8_t *entries = (const uint8_t *)(header + 1);
    whit_ndf_names names = {
        .base = data,
        .size_bytes = size_bytes,
        .entries = entries,
        .stride_bytes = sizeof(whit_ndf_entry),
        .n_entries = header->n_entries,
        .buckets = (const uint32_t *)(entries + header->n_entries * sizeof(whit_ndf_entry)),
        .n_buckets = header->n_buckets,
    };
    uint32_t at = 0;
    uint64_t n_bytes = 0;
    const char *reason = whit_ndf_names_check(&names, &at);
    for (uint32_t i = 0; !reason && i < names.n_entries; i++) {
        at = i;
        reason = check_value(data, size_bytes, (const whit_ndf_entry *)whit_ndf_name_at(&names, i), &n_bytes);
    }
    if (reason)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: entry %u of %u: %s; the file is damaged", place, at,
                         names.n_entries, reason);
    table->names = names;
    return WHIT_OK;
}

uint32_t whit_table_count(const whit_table *table)
{
    return table->names.n_entries;
}

const char *whit_table_at(const whit_table *table, uint32_t i, whit_value *value)
{
    const whit_ndf_entry *entry = (const whit_ndf_entry *)whit_ndf_name_at(&table->names, i);
    value->type = (whit_value_type)entry->type;
    value->count = entry->count;
    if (entry->type < WHIT_VALUE_BOOL)
        value->u64 = entry->value; /* the same bits for u64, i64 and f64 */
    else if (entry->type == WHIT_VALUE_BOOL)
        value->boolean = entry->value != 0;
    else
        value->bytes = table->names.base + entry->value;
    return (const char *)table->names.base + entry->name.name_offset;
}

bool whit_table_get(const whit_table *table, const char *key, whit_value *value)
{
    int64_t i = whit_ndf_names_find(&table->names, key, strlen(key));
    if (i < 0) return false;
    (void)whit_table_at(table, (uint32_t)i, value);
    return true;
}

bool whit_table_get_u64(const whit_table *table, const char *key, uint64_t *value)
{
    whit_value found;
    if (!whit_table_get(table, key, &found)) return false;
    if (found.type != WHIT_VALUE_U64 && (found.type != WHIT_VALUE_I64 || found.i64 < 0)) return false;
    *value = found.u64;
    return true;
}

bool whit_table_get_i64(const whit_table *table, const char *key, int64_t *value)
{
    whit_value found;
    if (!whit_table_get(table, key, &found)) return false;
    if (found.type != WHIT_VALUE_I64 && (found.type != WHIT_VALUE_U64 || found.u64 > INT64_MAX)) return false;
    *value = found.i64;
    return true;
}

bool whit_table_get_f64(const whit_table *table, const char *key, double *value)
{
    whit_value found;
    if (!whit_table_get(table, key, &found)) return false;
    if (found.type == WHIT_VALUE_F64)
        *value = found.f64;
    else if (found.type == WHIT_VALUE_U64)
        *value = (double)found.u64;
    else if (found.type == WHIT_VALUE_I64)
        *value = (double)found.i64;
    else
        return false;
    return true;
}

bool whit_table_get_bool(const whit_table *table, const char *key, bool *value)
{
    whit_value found;
    if (!whit_table_get(table, key, &found) || found.type != WHIT_VALUE_BOOL) return false;
    *value = found.boolean;
    return true;
}

const char *whit_table_get_string(const whit_table *table, const char *key)
{
    whit_value found;
    if (!whit_table_get(table, key, &found) || found.type != WHIT_VALUE_STRING) return NULL;
    return found.string;
}

const char *whit_value_string_at(const whit_value *value, uint64_t i, size_t *size_bytes)
{
    const whit_ndf_string *string = (const whit_ndf_string *)value->bytes + i;
    if (size_bytes) *size_bytes = string->bytes;
    return (const char *)value->bytes + string->offset;
}
