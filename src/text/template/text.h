/* SPDX-License-Identifier: MIT
 * Declares the strings of templates: immutable valid UTF-8, with the ranges of bytes that came from a user.
 *
 * These ranges ("spans") are sorted, disjoint and not empty. Every operation that builds a text from other texts keeps
 * them by using whit_builder. A byte of unclear origin counts as the user's. */
#ifndef WHIT_TEMPLATE_TEXT_H
#define WHIT_TEMPLATE_TEXT_H

#include "template/pool.h"

typedef struct whit_span {
    uint32_t begin, end; /* bytes [begin, end) */
} whit_span;

typedef struct whit_text {
    const char *bytes; /* not terminated; may contain zero bytes */
    size_t n_bytes, n_points;
    const whit_span *spans;
    size_t n_spans;
    bool markup;   /* a Markup object of Python: already escaped for HTML */
    bool is_bytes; /* a bytes object of Python, from str.encode: any bytes */
} whit_text;

/* A text that is being built. After a failure every further call that adds something fails too. */
typedef struct whit_builder {
    whit_datum_pool *pool;
    char *bytes;
    size_t n_bytes, capacity_bytes, limit_bytes;
    whit_span *spans;
    size_t n_spans, span_capacity;
    bool failed;
    bool markup, is_bytes; /* flags of the text being built */
} whit_builder;

/* Begins a text. `limit_bytes`, its largest size, must be less than 4 GiB. */
whit_builder whit_builder_begin(whit_datum_pool *pool, size_t limit_bytes);
bool whit_builder_bytes(whit_builder *b, const char *bytes, size_t n_bytes, bool user);
bool whit_builder_str(whit_builder *b, const char *ascii); /* appends text that is not the user's */
bool whit_builder_point(whit_builder *b, uint32_t point, bool user);
bool whit_builder_repeat(whit_builder *b, uint32_t point, size_t n, bool user);
/* Appends bytes [begin, end) of a text, with its spans. */
bool whit_builder_slice(whit_builder *b, const whit_text *text, size_t begin, size_t end);
bool whit_builder_text(whit_builder *b, const whit_text *text);
/* Appends formatted text that is not the user's. Fails if it is longer than 511 bytes. */
bool whit_builder_format(whit_builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns the finished text, which the pool owns; NULL if the builder has failed. The builder must not be used
 * afterwards. */
whit_text *whit_builder_end(whit_builder *b);

/* Copies valid UTF-8. Returns NULL if memory is exhausted. */
whit_text *whit_text_new(whit_datum_pool *pool, const char *bytes, size_t n_bytes, bool user);
/* Returns bytes [begin, end) of a text without copying them. NULL if memory is exhausted. */
const whit_text *whit_text_slice(whit_datum_pool *pool, const whit_text *text, size_t begin, size_t end);

bool whit_text_is_user(const whit_text *text, size_t at); /* whether byte `at` is in a span */
bool whit_text_equal(const whit_text *a, const whit_text *b);
bool whit_text_is(const whit_text *text, const char *ascii);
/* Compares by code points, which is the same as comparing bytes. The result is negative, 0 or positive. */
int whit_text_compare(const whit_text *a, const whit_text *b);
/* Returns the offset of the first or last occurrence of `needle` in bytes [begin, end) of the text; SIZE_MAX if not
 * found. */
size_t whit_text_find(const whit_text *text, const whit_text *needle, size_t begin, size_t end);
size_t whit_text_find_last(const whit_text *text, const whit_text *needle, size_t begin, size_t end);
/* Convert the index of a code point (at most n_points) to its byte offset, and back. */
size_t whit_text_offset(const whit_text *text, size_t i_point);
size_t whit_text_index(const whit_text *text, size_t offset);
/* Returns the code point at a byte offset less than n_bytes. *next is the offset after it. */
uint32_t whit_text_point(const whit_text *text, size_t offset, size_t *next);
/* Returns the code point that ends at a byte offset greater than 0. *start is the offset of its first byte. */
uint32_t whit_text_point_before(const whit_text *text, size_t offset, size_t *start);

#endif
