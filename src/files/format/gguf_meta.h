/* SPDX-License-Identifier: MIT
 * Reads the first part of a GGUF file: declares a checked cursor and the metadata entries. This header is private
 * to its folder. */
#ifndef WHIT_FORMAT_GGUF_META_H
#define WHIT_FORMAT_GGUF_META_H

#include "format/gguf.h"

/* Holds a position in a file. Every take checks the remaining size; a failure is reported once, in `error`. */
typedef struct whit_gguf_cursor {
    const char *path;
    const uint8_t *data;
    uint64_t size_bytes, at;
    whit_error *error;
} whit_gguf_cursor;

/* Takes the next n bytes; NULL if fewer are left (the error then names `what` and the place). */
const uint8_t *whit_gguf_take(whit_gguf_cursor *cursor, uint64_t n_bytes, const char *what);
/* Takes a u64 length and that many bytes. */
bool whit_gguf_take_string(whit_gguf_cursor *cursor, const char *what, const char **text, size_t *text_bytes);

/* Reads n_keys entries into `keys` (whit_gguf_key[]); duplicates are not yet detected. */
whit_status whit_gguf_read_keys(whit_gguf_cursor *cursor, uint64_t n_keys, whit_buf *keys);

/* Sorts the names of the keys in key_memory, anew after keys were added; refuses a duplicate. */
whit_status whit_gguf_index_keys(whit_gguf *gguf, whit_error *error);

int whit_gguf_compare_names(const char *a, size_t a_bytes, const char *b, size_t b_bytes);

/* Returns the length of a name for "%.*s" in messages. */
static inline int whit_gguf_shown(size_t name_bytes)
{
    return name_bytes < 80 ? (int)name_bytes : 80;
}

#endif
