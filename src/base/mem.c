/* SPDX-License-Identifier: MIT */
#include "base/mem.h"
#include "base/items.h"
#include "base/system.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "whit reads its files in place: little-endian only");

void *whit_alloc(const whit_allocator *allocator, size_t size_bytes)
{
    if (size_bytes == 0) size_bytes = 1;
    if (allocator && allocator->alloc) return allocator->alloc(allocator->user, size_bytes, WHIT_ALIGN_BYTES);
    size_t padded;
    if (!whit_add_size(size_bytes, WHIT_ALIGN_BYTES - 1, &padded)) return NULL;
    return whit_system_alloc(padded & ~(size_t)(WHIT_ALIGN_BYTES - 1), WHIT_ALIGN_BYTES);
}

void *whit_zalloc(const whit_allocator *allocator, size_t size_bytes)
{
    void *memory = whit_alloc(allocator, size_bytes);
    if (memory) memset(memory, 0, size_bytes);
    return memory;
}

void *whit_zalloc_array(const whit_allocator *allocator, size_t n_elems, size_t elem_bytes)
{
    size_t size_bytes;
    if (!whit_mul_size(n_elems, elem_bytes, &size_bytes)) return NULL;
    return whit_zalloc(allocator, size_bytes);
}

void whit_free(const whit_allocator *allocator, void *memory, size_t size_bytes)
{
    if (!memory) return;
    if (allocator && allocator->free)
        allocator->free(allocator->user, memory, size_bytes ? size_bytes : 1);
    else
        whit_system_free(memory);
}

bool whit_buf_reserve(whit_buf *buf, size_t extra_bytes)
{
    size_t needed;
    if (buf->failed) return false;
    if (!whit_add_size(buf->size_bytes, extra_bytes, &needed) || (buf->limit_bytes && needed > buf->limit_bytes)) {
        buf->failed = true;
        return false;
    }
    if (needed <= buf->capacity_bytes) return true;
    size_t capacity = buf->capacity_bytes + buf->capacity_bytes / 2;
    if (capacity < needed) capacity = needed;
    if (capacity < 64) capacity = 64;
    uint8_t *data = whit_alloc(buf->allocator, capacity);
    if (!data) {
        buf->failed = true;
        return false;
    }
    if (buf->size_bytes) memcpy(data, buf->data, buf->size_bytes);
    whit_free(buf->allocator, buf->data, buf->capacity_bytes);
    buf->data = data;
    buf->capacity_bytes = capacity;
    return true;
}

bool whit_buf_append(whit_buf *buf, const void *data, size_t size_bytes)
{
    if (!whit_buf_reserve(buf, size_bytes)) return false;
    if (size_bytes) memcpy(buf->data + buf->size_bytes, data, size_bytes);
    buf->size_bytes += size_bytes;
    return true;
}

bool whit_buf_append_zeros(whit_buf *buf, size_t size_bytes)
{
    if (!whit_buf_reserve(buf, size_bytes)) return false;
    if (size_bytes) memset(buf->data + buf->size_bytes, 0, size_bytes);
    buf->size_bytes += size_bytes;
    return true;
}

bool whit_buf_append_str(whit_buf *buf, const char *text)
{
    return whit_buf_append(buf, text, strlen(text));
}

bool whit_buf_printf(whit_buf *buf, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (n < 0 || !whit_buf_reserve(buf, (size_t)n + 1)) {
        buf->failed = true;
        return false;
    }
    va_start(arguments, format);
    vsnprintf(WHIT_ITEMS(char, buf) + buf->size_bytes, (size_t)n + 1, format, arguments);
    va_end(arguments);
    buf->size_bytes += (size_t)n;
    return true;
}

bool whit_buf_align(whit_buf *buf, size_t multiple)
{
    size_t rest = buf->size_bytes & (multiple - 1);
    return rest == 0 || whit_buf_append_zeros(buf, multiple - rest);
}

void whit_buf_free(whit_buf *buf)
{
    whit_free(buf->allocator, buf->data, buf->capacity_bytes);
    buf->data = NULL;
    buf->size_bytes = buf->capacity_bytes = 0;
}

char *whit_strndup(const whit_allocator *allocator, const char *text, size_t n)
{
    size_t size_bytes;
    if (!whit_add_size(n, 1, &size_bytes)) return NULL;
    char *copy = whit_alloc(allocator, size_bytes);
    if (!copy) return NULL;
    if (n) memcpy(copy, text, n);
    copy[n] = 0;
    return copy;
}
