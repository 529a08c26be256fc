/* SPDX-License-Identifier: MIT
 * Views a buffer's bytes as text or as an array of one type. */
#ifndef WHIT_BASE_ITEMS_H
#define WHIT_BASE_ITEMS_H

#include "base/mem.h"

/* Returns the text in a buffer, which has no terminating zero; NULL if no memory was allocated yet. */
static inline const char *whit_chars(const whit_buf *buf)
{
    return (const char *)buf->data;
}

static inline void *whit_items(const whit_buf *buf)
{
    return buf->data;
}

/* Returns the elements of a buffer to which only elements of `type` were appended; their number is buf->size_bytes /
 * sizeof(type). */
#define WHIT_ITEMS(type, buf) ((type *)whit_items(buf))

#endif
