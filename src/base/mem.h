/* SPDX-License-Identifier: MIT
 * Declares the library's memory: the caller's allocator (or malloc), sizes that cannot overflow, a growable buffer.
 *
 * A `const whit_allocator *` travels through the library; NULL means malloc. Nothing here aborts: a failed allocation
 * returns NULL (or false), which callers report as WHIT_ERROR_MEMORY. */
#ifndef WHIT_BASE_MEM_H
#define WHIT_BASE_MEM_H

#include "base/status.h"

#include <string.h>

#define WHIT_ALIGN_BYTES 64 /* size of a cache line and of a zmm register; alignment of tensors */

void *whit_alloc(const whit_allocator *allocator, size_t size_bytes);  /* 64-byte aligned */
void *whit_zalloc(const whit_allocator *allocator, size_t size_bytes); /* 64-byte aligned, filled with zeros */
/* Allocates n_elems * elem_bytes bytes, filled with zeros; NULL if the product overflows or memory runs out. */
void *whit_zalloc_array(const whit_allocator *allocator, size_t n_elems, size_t elem_bytes);
/* Frees memory; `size_bytes` is the size that was requested. NULL memory is allowed. */
void whit_free(const whit_allocator *allocator, void *memory, size_t size_bytes);

/* Returns whether a * b fits size_t; if not, *result is unchanged. */
static inline bool whit_mul_size(size_t a, size_t b, size_t *result)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product)) return false;
    *result = product;
    return true;
}
static inline bool whit_add_size(size_t a, size_t b, size_t *result)
{
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return false;
    *result = sum;
    return true;
}
/* Returns whether [offset, offset + length) is inside [0, size), without overflow. The whole library checks bounds with
 * it. */
static inline bool whit_in_bounds(uint64_t offset, uint64_t length, uint64_t size)
{
    return offset <= size && length <= size - offset;
}
/* Rounds n up to a multiple of `multiple`, a power of two; the caller ensures that the sum does not overflow. */
static inline size_t whit_round_up(size_t n, size_t multiple)
{
    return (n + multiple - 1) & ~(multiple - 1);
}

/* The functions below read and write little-endian numbers at any alignment; every supported target is little-endian
 * (checked in mem.c). */
static inline uint16_t whit_load_u16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline uint32_t whit_load_u32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline uint64_t whit_load_u64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline float whit_load_f32(const void *p)
{
    float v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline double whit_load_f64(const void *p)
{
    double v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* A buffer of bytes that grows. Zero-initialise it and set the allocator. After a failed growth the contents are
 * unchanged and every later append fails too, so a writer may check `failed` once at the end. If `limit_bytes` is not
 * 0, the size never exceeds it. */
typedef struct whit_buf {
    uint8_t *data;
    size_t size_bytes, capacity_bytes, limit_bytes;
    const whit_allocator *allocator;
    bool failed;
} whit_buf;

bool whit_buf_reserve(whit_buf *buf, size_t extra_bytes);
bool whit_buf_append(whit_buf *buf, const void *data, size_t size_bytes);
bool whit_buf_append_zeros(whit_buf *buf, size_t size_bytes);
bool whit_buf_append_str(whit_buf *buf, const char *text); /* appends the text without its terminating zero */
bool whit_buf_printf(whit_buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Pads the buffer with zeros to a multiple of `multiple`, a power of two. */
bool whit_buf_align(whit_buf *buf, size_t multiple);
void whit_buf_free(whit_buf *buf); /* frees the contents; allocator, limit_bytes and `failed` are unchanged */

/* Returns a copy of `n` bytes with a terminating zero; free it with whit_free(allocator, copy, n + 1). NULL if memory
 * runs out. */
char *whit_strndup(const whit_allocator *allocator, const char *text, size_t n);

#endif
