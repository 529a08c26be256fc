/* SPDX-License-Identifier: MIT
 * Reads GGUF metadata: bounds-checked parsing of the entries, and typed access to them.
 *
 * An entry is a name (u64 length, bytes), a u32 type, and a value. An array is a u32 element type, a u64 count and the
 * elements. A string has the form of a name. */
#include "format/gguf_meta.h"

#define MAX_KEYS  65536
#define MAX_DEPTH 4 /* nesting depth of arrays */

static const uint8_t type_bytes[13] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
static const char *const type_names[13] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                           "bool", "string", "array", "u64", "i64", "f64"};

size_t whit_gguf_type_bytes(uint32_t type)
{
    return type <= WHIT_GGUF_F64 ? type_bytes[type] : 0;
}

const uint8_t *whit_gguf_take(whit_gguf_cursor *cursor, uint64_t n_bytes, const char *what)
{
    if (!whit_in_bounds(cursor->at, n_bytes, cursor->size_bytes)) {
        whit_fail(cursor->error, WHIT_ERROR_FORMAT,
                  "%s: byte %llu: %s needs %llu bytes, but the file has only %llu more: it is damaged or truncated",
                  cursor->path, (unsigned long long)cursor->at, what, (unsigned long long)n_bytes,
                  (unsigned long long)(cursor->size_bytes - cursor->at));
        return NULL;
    }
    const uint8_t *bytes = cursor->data + cursor->at;
    cursor->at += n_bytes;
    return bytes;
}

bool whit_gguf_take_string(whit_gguf_cursor *cursor, const char *what, const char **text, size_t *text_bytes)
{
    const uint8_t *length = whit_gguf_take(cursor, 8, what);
    if (!length) return false;
    uint64_t n_bytes = whit_load_u64(length);
    const uint8_t *bytes = whit_gguf_take(cursor, n_bytes, what);
    if (!bytes) return false;
    *text = (const char *)bytes;
    *text_bytes = (size_t)n_bytes;
    return true;
}

static bool unknown_type(whit_gguf_cursor *cursor, const whit_gguf_key *key, uint32_t type)
{
    whit_fail(cursor->error, WHIT_ERROR_FORMAT,
              "%s: byte %llu: key %.*s has the unknown type %u: the file is damaged, or newer than this whit",
              cursor->path, (unsigned long long)cursor->at, whit_gguf_shown(key->name_bytes), key->name, type);
    return false;
}

/* Advances the cursor past the elements of an array. MAX_DEPTH bounds the recursion, and the remaining bytes bound the
 * number of steps. */
static bool skip_elements(whit_gguf_cursor *cursor, const whit_gguf_key *key, uint32_t type, uint64_t n_elems,
                          int depth)
{
    if (type > WHIT_GGUF_F64) return unknown_type(cursor, key, type);
    uint64_t least_bytes;
    if (type == WHIT_GGUF_STRING)
        least_bytes = 8;
    else if (type == WHIT_GGUF_ARRAY)
        least_bytes = 12;
    else
        least_bytes = type_bytes[type];
    if (n_elems > (cursor->size_bytes - cursor->at) / least_bytes) {
        whit_fail(
            cursor->error, WHIT_ERROR_FORMAT,
            "%s: byte %llu: key %.*s claims %llu elements, more than the file contains: it is damaged or truncated",
            cursor->path, (unsigned long long)cursor->at, whit_gguf_shown(key->name_bytes), key->name,
            (unsigned long long)n_elems);
        return false;
    }
    if (type_bytes[type]) {
        cursor->at += n_elems * type_bytes[type];
        return true;
    }
    if (type == WHIT_GGUF_ARRAY && depth == MAX_DEPTH) {
        whit_fail(cursor->error, WHIT_ERROR_FORMAT,
                  "%s: byte %llu: key %.*s has arrays nested more than %d deep, which is the limit", cursor->path,
                  (unsigned long long)cursor->at, whit_gguf_shown(key->name_bytes), key->name, MAX_DEPTH);
        return false;
    }
    for (uint64_t i = 0; i < n_elems; i++) {
        const char *text;
        size_t text_bytes;
        if (type == WHIT_GGUF_STRING) {
            if (!whit_gguf_take_string(cursor, "a string of an array", &text, &text_bytes)) return false;
            continue;
        }
        const uint8_t *head = whit_gguf_take(cursor, 12, "an array in an array");
        if (!head || !skip_elements(cursor, key, whit_load_u32(head), whit_load_u64(head + 4), depth + 1)) return false;
    }
    return true;
}

static bool read_value(whit_gguf_cursor *cursor, uint32_t type, whit_gguf_key *key)
{
    if (type > WHIT_GGUF_F64) return unknown_type(cursor, key, type);
    key->type = (whit_gguf_type)type;
    key->n_elems = 1;
    if (type == WHIT_GGUF_STRING) {
        const char *text;
        size_t text_bytes;
        if (!whit_gguf_take_string(cursor, "a string value", &text, &text_bytes)) return false;
        key->data = (const uint8_t *)text;
        key->size_bytes = text_bytes;
        return true;
    }
    if (type == WHIT_GGUF_ARRAY) {
        const uint8_t *head = whit_gguf_take(cursor, 12, "an array's head");
        if (!head) return false;
        uint32_t element_type = whit_load_u32(head);
        key->n_elems = whit_load_u64(head + 4);
        uint64_t start = cursor->at;
        if (!skip_elements(cursor, key, element_type, key->n_elems, 1)) return false;
        key->element_type = (whit_gguf_type)element_type;
        key->data = cursor->data + start;
        key->size_bytes = cursor->at - start;
        return true;
    }
    key->data = whit_gguf_take(cursor, type_bytes[type], "a value");
    key->size_bytes = type_bytes[type];
    return key->data != NULL;
}

whit_status whit_gguf_read_keys(whit_gguf_cursor *cursor, uint64_t n_keys, whit_buf *keys)
{
    if (n_keys > MAX_KEYS || n_keys > (cursor->size_bytes - cursor->at) / 13)
        return whit_fail(cursor->error, WHIT_ERROR_FORMAT, "%s: byte 16: claims %llu metadata keys, more than %s",
                         cursor->path, (unsigned long long)n_keys,
                         n_keys > MAX_KEYS ? "any model has" : "the file contains");
    for (uint64_t i = 0; i < n_keys; i++) {
        whit_gguf_key key = {0};
        if (!whit_gguf_take_string(cursor, "a metadata key", &key.name, &key.name_bytes)) return WHIT_ERROR_FORMAT;
        const uint8_t *type = whit_gguf_take(cursor, 4, "a metadata type");
        if (!type || !read_value(cursor, whit_load_u32(type), &key)) return WHIT_ERROR_FORMAT;
        if (!whit_buf_append(keys, &key, sizeof key))
            return whit_fail_memory(cursor->error, "the list of metadata keys", keys->size_bytes + sizeof key);
    }
    return WHIT_OK;
}

int whit_gguf_compare_names(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    size_t n = a_bytes < b_bytes ? a_bytes : b_bytes;
    int order = n ? memcmp(a, b, n) : 0;
    if (order) return order;
    return a_bytes < b_bytes ? -1 : a_bytes > b_bytes;
}

/* ---- typed access -------------------------------------------------------------------------- */

const whit_gguf_key *whit_gguf_find(const whit_gguf *gguf, const char *name)
{
    size_t name_bytes = strlen(name), low = 0, high = gguf->n_keys;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const whit_gguf_key *key = &gguf->keys[gguf->keys_by_name[middle]];
        int order = whit_gguf_compare_names(name, name_bytes, key->name, key->name_bytes);
        if (order == 0) return key;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static bool is_integer(whit_gguf_type type)
{
    return type <= WHIT_GGUF_I32 || type == WHIT_GGUF_U64 || type == WHIT_GGUF_I64;
}

/* Returns an integer of any integer type as 128 bits, which can represent all their values. */
static __int128 load_integer(whit_gguf_type type, const uint8_t *p)
{
    switch (type) {
    case WHIT_GGUF_U8: return p[0];
    case WHIT_GGUF_I8: return (int8_t)p[0];
    case WHIT_GGUF_U16: return whit_load_u16(p);
    case WHIT_GGUF_I16: return (int16_t)whit_load_u16(p);
    case WHIT_GGUF_U32: return whit_load_u32(p);
    case WHIT_GGUF_I32: return (int32_t)whit_load_u32(p);
    case WHIT_GGUF_I64: return (int64_t)whit_load_u64(p);
    default: return whit_load_u64(p);
    }
}

static const uint8_t *element(const whit_gguf_key *key, uint64_t i, whit_gguf_type *type)
{
    *type = key->type == WHIT_GGUF_ARRAY ? key->element_type : key->type;
    if (i >= key->n_elems || !type_bytes[*type]) return NULL;
    return key->data + i * type_bytes[*type];
}

bool whit_gguf_element_i64(const whit_gguf_key *key, uint64_t i, int64_t *value)
{
    whit_gguf_type type;
    const uint8_t *data = element(key, i, &type);
    if (!data || !is_integer(type)) return false;
    __int128 integer = load_integer(type, data);
    if (integer > INT64_MAX) return false;
    *value = (int64_t)integer;
    return true;
}

bool whit_gguf_element_f64(const whit_gguf_key *key, uint64_t i, double *value)
{
    whit_gguf_type type;
    const uint8_t *data = element(key, i, &type);
    if (!data || type == WHIT_GGUF_BOOL) return false;
    if (type == WHIT_GGUF_F32)
        *value = (double)whit_load_f32(data);
    else if (type == WHIT_GGUF_F64)
        *value = whit_load_f64(data);
    else
        *value = (double)load_integer(type, data);
    return true;
}

static whit_status wrong_type(const whit_gguf *gguf, const whit_gguf_key *key, const char *wanted, whit_error *error)
{
    return whit_fail(error, WHIT_ERROR_FORMAT, "%s: key %.*s: has the type %s, but must be %s", gguf->files[0].path,
                     whit_gguf_shown(key->name_bytes), key->name, type_names[key->type], wanted);
}

whit_status whit_gguf_u64(const whit_gguf *gguf, const char *name, uint64_t *value, whit_error *error)
{
    const whit_gguf_key *key = whit_gguf_find(gguf, name);
    if (!key) return WHIT_OK;
    if (!is_integer(key->type)) return wrong_type(gguf, key, "an integer", error);
    __int128 integer = load_integer(key->type, key->data);
    if (integer < 0)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: key %s: must not be negative", gguf->files[0].path, name);
    *value = (uint64_t)integer;
    return WHIT_OK;
}

whit_status whit_gguf_i64(const whit_gguf *gguf, const char *name, int64_t *value, whit_error *error)
{
    const whit_gguf_key *key = whit_gguf_find(gguf, name);
    if (!key) return WHIT_OK;
    if (!is_integer(key->type)) return wrong_type(gguf, key, "an integer", error);
    if (!whit_gguf_element_i64(key, 0, value))
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: key %s: must be below 2^63", gguf->files[0].path, name);
    return WHIT_OK;
}

whit_status whit_gguf_f64(const whit_gguf *gguf, const char *name, double *value, whit_error *error)
{
    const whit_gguf_key *key = whit_gguf_find(gguf, name);
    if (!key) return WHIT_OK;
    if (key->type == WHIT_GGUF_ARRAY || !whit_gguf_element_f64(key, 0, value))
        return wrong_type(gguf, key, "a number", error);
    return WHIT_OK;
}

whit_status whit_gguf_bool(const whit_gguf *gguf, const char *name, bool *value, whit_error *error)
{
    const whit_gguf_key *key = whit_gguf_find(gguf, name);
    if (!key) return WHIT_OK;
    if (key->type != WHIT_GGUF_BOOL) return wrong_type(gguf, key, "bool", error);
    *value = key->data[0] != 0;
    return WHIT_OK;
}

whit_status whit_gguf_string(const whit_gguf *gguf, const char *name, const char **text, size_t *text_bytes,
                             whit_error *error)
{
    const whit_gguf_key *key = whit_gguf_find(gguf, name);
    if (!key) return WHIT_OK;
    if (key->type != WHIT_GGUF_STRING) return wrong_type(gguf, key, "a string", error);
    *text = (const char *)key->data;
    *text_bytes = (size_t)key->size_bytes;
    return WHIT_OK;
}

whit_status whit_gguf_array(const whit_gguf *gguf, const char *name, whit_gguf_type element_type,
                            const whit_gguf_key **array, whit_error *error)
{
    *array = NULL;
    const whit_gguf_key *key = whit_gguf_find(gguf, name);
    if (!key) return WHIT_OK;
    if (key->type != WHIT_GGUF_ARRAY) return wrong_type(gguf, key, "an array", error);
    if (key->element_type != element_type)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: key %s: is an array of %s, but must be an array of %s",
                         gguf->files[0].path, name, type_names[key->element_type], type_names[element_type]);
    *array = key;
    return WHIT_OK;
}

whit_gguf_strings whit_gguf_strings_of(const whit_gguf_key *array)
{
    if (!array || array->type != WHIT_GGUF_ARRAY || array->element_type != WHIT_GGUF_STRING)
        return (whit_gguf_strings){0};
    return (whit_gguf_strings){array->data, array->data + array->size_bytes, array->n_elems};
}

bool whit_gguf_strings_next(whit_gguf_strings *strings, const char **text, size_t *text_bytes)
{
    /* Opening checked the length already; it is checked again because the mapped file may have changed since. */
    if (strings->n_left == 0 || strings->end - strings->at < 8) return false;
    uint64_t n_bytes = whit_load_u64(strings->at);
    if (n_bytes > (uint64_t)(strings->end - strings->at - 8)) return false;
    *text = (const char *)strings->at + 8;
    *text_bytes = (size_t)n_bytes;
    strings->at += 8 + n_bytes;
    strings->n_left--;
    return true;
}
