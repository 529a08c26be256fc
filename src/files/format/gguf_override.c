/* SPDX-License-Identifier: MIT
 * Replaces metadata of a GGUF file by texts that the user gives, in the form of llama.cpp's --override-kv. */
#include "base/items.h"
#include "base/json.h"
#include "format/gguf_meta.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

enum { KEY_BYTES_MAX = 127, NUMBER_BYTES_MAX = 63 };

static const struct override_type {
    const char *word; /* type name and colon, as the user types them */
    whit_gguf_type type;
} override_types[] = {
    {"int:", WHIT_GGUF_I64}, {"float:", WHIT_GGUF_F64}, {"bool:", WHIT_GGUF_BOOL}, {"str:", WHIT_GGUF_STRING}};

/* Keys that must not be overridden, because opening the file has used them already to find tensors and files. */
static const char *const layout_keys[] = {"general.alignment", "split.no", "split.count", "split.tensors.count"};

/* One "KEY=TYPE:VALUE", as pointers into its text. */
struct override {
    const char *name, *value;
    size_t name_bytes, value_bytes;
    const struct override_type *type;
};

/* Parses "KEY=TYPE:" at `at`. The value is the rest of the text, which cut_value may shorten. */
static bool read_head(const char *at, struct override *override)
{
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || (at[n] && strchr("._-", at[n]))) n++;
    if (!n || n > KEY_BYTES_MAX || at[n] != '=') return false;
    for (size_t i = 0; i < sizeof override_types / sizeof *override_types; i++) {
        const size_t n_word = strlen(override_types[i].word);
        if (strncmp(at + n + 1, override_types[i].word, n_word) != 0) continue;
        const char *value = at + n + 1 + n_word;
        *override = (struct override){at, value, n, strlen(value), &override_types[i]};
        return true;
    }
    return false;
}

/* Shortens the value at the first comma that is followed by another override. Returns the text of that override; NULL
 * if not found. */
static const char *cut_value(struct override *override)
{
    struct override next;
    for (const char *comma = override->value; (comma = strchr(comma, ',')); comma++)
        if (read_head(comma + 1, &next)) {
            override->value_bytes = (size_t)(comma - override->value);
            return comma + 1;
        }
    return NULL;
}

/* Appends the value's bytes as a GGUF file stores them. Returns false if the text is not a valid value of the type. */
static bool write_value(const struct override *override, whit_buf *bytes)
{
    char number[NUMBER_BYTES_MAX + 1], *end;
    const size_t n = override->value_bytes;
    if (override->type->type == WHIT_GGUF_STRING) return whit_buf_append(bytes, override->value, n);
    if (!n || n > NUMBER_BYTES_MAX) return false;
    memcpy(number, override->value, n);
    number[n] = 0;
    if (override->type->type == WHIT_GGUF_BOOL) {
        const uint8_t is_true = strcmp(number, "true") == 0;
        return (is_true || strcmp(number, "false") == 0) && whit_buf_append(bytes, &is_true, 1);
    }
    if (override->type->type == WHIT_GGUF_F64) {
        double value;
        return whit_parse_f64(number, &value) && whit_buf_append(bytes, &value, sizeof value);
    }
    if (number[strspn(number, "+-0123456789")]) return false; /* such as leading blanks, which strtoll skips */
    errno = 0;
    const long long value = strtoll(number, &end, 10);
    return !*end && !errno && whit_buf_append(bytes, &(int64_t){value}, sizeof(int64_t));
}

static whit_status check_name(const struct override *override, whit_error *error)
{
    for (size_t i = 0; i < sizeof layout_keys / sizeof *layout_keys; i++)
        if (strlen(layout_keys[i]) == override->name_bytes &&
            memcmp(layout_keys[i], override->name, override->name_bytes) == 0)
            return whit_fail(error, WHIT_ERROR_ARGUMENT,
                             "override of %s: this key says where the file's parts are, so it cannot be changed",
                             layout_keys[i]);
    return WHIT_OK;
}

/* Replaces the key of the same name, or adds it. The caller has reserved space in `bytes` for the name and the
 * value. */
static whit_status put_key(whit_gguf *gguf, const struct override *override, whit_buf *bytes, whit_error *error)
{
    WHIT_TRY(check_name(override, error));
    const size_t name_at = bytes->size_bytes;
    if (!whit_buf_append(bytes, override->name, override->name_bytes))
        return whit_fail_memory(error, "a metadata key", override->name_bytes);
    const size_t value_at = bytes->size_bytes;
    if (!write_value(override, bytes))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "override of %.*s: '%.*s' is not a value of type %.*s",
                         (int) override->name_bytes, override->name,
                         (int)(override->value_bytes < 80 ? override->value_bytes : 80), override->value,
                         (int)strlen(override->type->word) - 1, override->type->word);
    const whit_gguf_key key = {.name = whit_chars(bytes) + name_at,
                               .name_bytes = override->name_bytes,
                               .type = override->type->type,
                               .n_elems = 1,
                               .data = bytes->data + value_at,
                               .size_bytes = bytes->size_bytes - value_at};
    for (size_t i = 0; i < gguf->n_keys; i++)
        if (!whit_gguf_compare_names(gguf->keys[i].name, gguf->keys[i].name_bytes, key.name, key.name_bytes)) {
            gguf->keys[i] = key;
            return WHIT_OK;
        }
    if (!whit_buf_append(&gguf->key_memory, &key, sizeof key))
        return whit_fail_memory(error, "the list of metadata keys", gguf->key_memory.size_bytes + sizeof key);
    return whit_gguf_index_keys(gguf, error);
}

whit_status whit_gguf_override(whit_gguf *gguf, const char *const *texts, size_t n_texts, whit_error *error)
{
    size_t n_bytes = 0;
    whit_buf *bytes = &gguf->override_memory;
    /* A number is stored as 8 bytes, and its shortest text, "k=int:1", has 7. Twice the text's length is therefore
     * enough, so `bytes` is never reallocated while keys point into it. */
    for (size_t i = 0; i < n_texts; i++) n_bytes += 2 * strlen(texts[i]);
    if (!whit_buf_reserve(bytes, n_bytes)) return whit_fail_memory(error, "the list of metadata keys", n_bytes);
    for (size_t i = 0; i < n_texts; i++)
        for (const char *at = texts[i]; at;) {
            struct override override;
            if (!read_head(at, &override))
                return whit_fail(error, WHIT_ERROR_ARGUMENT,
                                 "an override is KEY=TYPE:VALUE with a TYPE of int, float, bool or str, not '%s'", at);
            at = cut_value(&override);
            WHIT_TRY(put_key(gguf, &override, bytes, error));
        }
    return WHIT_OK;
}
