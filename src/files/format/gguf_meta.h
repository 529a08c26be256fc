/* SPDX-License-Identifier: MIT
 * Reads the first part of a GGUF file: a bounds-checked cursor, and the metadata entries. Only files of this folder
 * include it. */
#ifndef WHIT_FORMAT_GGUF_META_H
#define WHIT_FORMAT_GGUF_META_H

#include "format/gguf.h"

/* A read position in a file. Every read checks how many bytes remain; a failure is reported in `error`. */
typedef struct whit_gguf_cursor {
    const char *path;
    const uint8_t *data;
    uint64_t size_bytes, at;
    whit_error *error;
} whit_gguf_cursor;

/* Returns the next n bytes and advances the cursor. NULL if fewer remain; the error then names `what` and the
 * position. */
const uint8_t *whit_gguf_take(whit_gguf_cursor *cursor, uint64_t n_bytes, const char *what);
/* Reads a string: a u64 length and that many bytes. The text is not terminated. */
bool whit_gguf_take_string(whit_gguf_cursor *cursor, const char *what, const char **text, size_t *text_bytes);

/* Reads n_keys entries into `keys` (array of whit_gguf_key). Duplicate names are not detected here. */
whit_status whit_gguf_read_keys(whit_gguf_cursor *cursor, uint64_t n_keys, whit_buf *keys);

/* Builds the sorted index of the keys in key_memory; needed again after keys were added. A duplicate name is an
 * error. */
whit_status whit_gguf_index_keys(whit_gguf *gguf, whit_error *error);

int whit_gguf_compare_names(const char *a, size_t a_bytes, const char *b, size_t b_bytes);

/* Returns the length of a name, limited to 80 bytes, for "%.*s" in messages. */
static inline int whit_gguf_shown(size_t name_bytes)
{
    return name_bytes < 80 ? (int)name_bytes : 80;
}

#endif
