/* SPDX-License-Identifier: MIT */
#include "base/phrase.h"
#include "template/text.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>

whit_builder whit_builder_begin(whit_datum_pool *pool, size_t limit_bytes)
{
    return (whit_builder){.pool = pool, .limit_bytes = limit_bytes};
}

static bool reserve(whit_builder *b, size_t extra)
{
    if (b->failed) return false;
    if (extra > b->limit_bytes || b->n_bytes > b->limit_bytes - extra) return !(b->failed = true);
    size_t needed = b->n_bytes + extra;
    if (needed <= b->capacity_bytes) return true;
    size_t capacity = b->capacity_bytes * 2;
    if (capacity < needed) capacity = needed;
    if (capacity < 32) capacity = 32;
    char *bytes = whit_datum_pool_grow(b->pool, b->bytes, b->n_bytes, capacity);
    if (!bytes) return !(b->failed = true);
    b->bytes = bytes;
    b->capacity_bytes = capacity;
    return true;
}

/* Marks bytes [begin, end) as the user's. They must follow all earlier spans. */
static bool mark(whit_builder *b, size_t begin, size_t end)
{
    if (begin == end) return true;
    if (b->n_spans && b->spans[b->n_spans - 1].end == begin) {
        b->spans[b->n_spans - 1].end = (uint32_t)end;
        return true;
    }
    if (b->n_spans == b->span_capacity) {
        size_t capacity = b->span_capacity ? b->span_capacity * 2 : 4;
        whit_span *spans =
            whit_datum_pool_grow(b->pool, b->spans, b->n_spans * sizeof *spans, capacity * sizeof *spans);
        if (!spans) return !(b->failed = true);
        b->spans = spans;
        b->span_capacity = capacity;
    }
    b->spans[b->n_spans++] = (whit_span){(uint32_t)begin, (uint32_t)end};
    return true;
}

bool whit_builder_bytes(whit_builder *b, const char *bytes, size_t n_bytes, bool user)
{
    if (!reserve(b, n_bytes)) return false;
    if (n_bytes) memcpy(b->bytes + b->n_bytes, bytes, n_bytes);
    b->n_bytes += n_bytes;
    return !user || mark(b, b->n_bytes - n_bytes, b->n_bytes);
}

bool whit_builder_str(whit_builder *b, const char *ascii)
{
    return whit_builder_bytes(b, ascii, strlen(ascii), false);
}

bool whit_builder_point(whit_builder *b, uint32_t point, bool user)
{
    uint8_t bytes[4];
    size_t n = whit_utf8_encode(point, bytes);
    return whit_builder_bytes(b, (const char *)bytes, n, user);
}

bool whit_builder_repeat(whit_builder *b, uint32_t point, size_t n, bool user)
{
    if (n > b->limit_bytes) return !(b->failed = true);
    for (size_t i = 0; i < n; i++)
        if (!whit_builder_point(b, point, user)) return false;
    return true;
}

/* Returns the index of the first span that ends after `offset`. */
static size_t first_span(const whit_text *text, size_t offset)
{
    size_t low = 0, high = text->n_spans;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (text->spans[middle].end <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool whit_builder_slice(whit_builder *b, const whit_text *text, size_t begin, size_t end)
{
    size_t at = b->n_bytes;
    if (!whit_builder_bytes(b, text->bytes + begin, end - begin, false)) return false;
    for (size_t i = first_span(text, begin); i < text->n_spans && text->spans[i].begin < end; i++) {
        size_t from = text->spans[i].begin > begin ? text->spans[i].begin : begin;
        size_t to = text->spans[i].end < end ? text->spans[i].end : end;
        if (!mark(b, at + (from - begin), at + (to - begin))) return false;
    }
    return true;
}

bool whit_builder_text(whit_builder *b, const whit_text *text)
{
    return whit_builder_slice(b, text, 0, text->n_bytes);
}

bool whit_builder_format(whit_builder *b, const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (n < 0 || (size_t)n >= sizeof line) return !(b->failed = true);
    return whit_builder_bytes(b, line, (size_t)n, false);
}

static size_t count_points(const char *bytes, size_t n_bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < n_bytes; i++) n += ((unsigned char)bytes[i] & 0xC0) != 0x80;
    return n;
}

whit_text *whit_builder_end(whit_builder *b)
{
    if (b->failed) return NULL;
    whit_text *text = whit_datum_pool_zalloc(b->pool, 1, sizeof *text);
    if (!text) return NULL;
    text->bytes = whit_or_empty(b->bytes);
    text->n_bytes = b->n_bytes;
    text->n_points = count_points(text->bytes, text->n_bytes);
    text->spans = b->spans;
    text->n_spans = b->n_spans;
    text->markup = b->markup;
    text->is_bytes = b->is_bytes;
    return text;
}

whit_text *whit_text_new(whit_datum_pool *pool, const char *bytes, size_t n_bytes, bool user)
{
    whit_builder b = whit_builder_begin(pool, UINT32_MAX - 1);
    whit_builder_bytes(&b, bytes, n_bytes, user);
    return whit_builder_end(&b);
}

const whit_text *whit_text_slice(whit_datum_pool *pool, const whit_text *text, size_t begin, size_t end)
{
    if (begin == 0 && end == text->n_bytes) return text;
    whit_text *slice = whit_datum_pool_zalloc(pool, 1, sizeof *slice);
    if (!slice) return NULL;
    slice->bytes = text->bytes + begin;
    slice->n_bytes = end - begin;
    slice->n_points = text->n_points == text->n_bytes ? slice->n_bytes : count_points(slice->bytes, slice->n_bytes);
    slice->markup = text->markup;
    slice->is_bytes = text->is_bytes;
    size_t first = first_span(text, begin), last = first;
    while (last < text->n_spans && text->spans[last].begin < end) last++;
    if (last == first) return slice;
    whit_span *spans = whit_datum_pool_alloc(pool, (last - first) * sizeof *spans);
    if (!spans) return NULL;
    for (size_t i = first; i < last; i++) {
        size_t from = text->spans[i].begin > begin ? text->spans[i].begin : begin;
        size_t to = text->spans[i].end < end ? text->spans[i].end : end;
        spans[i - first] = (whit_span){(uint32_t)(from - begin), (uint32_t)(to - begin)};
    }
    slice->spans = spans;
    slice->n_spans = last - first;
    return slice;
}

bool whit_text_is_user(const whit_text *text, size_t at)
{
    size_t i = first_span(text, at);
    return i < text->n_spans && text->spans[i].begin <= at;
}

bool whit_text_equal(const whit_text *a, const whit_text *b)
{
    return a->is_bytes == b->is_bytes && a->n_bytes == b->n_bytes && memcmp(a->bytes, b->bytes, a->n_bytes) == 0;
}

bool whit_text_is(const whit_text *text, const char *ascii)
{
    size_t n = strlen(ascii);
    return text->n_bytes == n && memcmp(text->bytes, ascii, n) == 0;
}

int whit_text_compare(const whit_text *a, const whit_text *b)
{
    size_t n = a->n_bytes < b->n_bytes ? a->n_bytes : b->n_bytes;
    int order = n ? memcmp(a->bytes, b->bytes, n) : 0;
    return order ? order : (a->n_bytes > b->n_bytes) - (a->n_bytes < b->n_bytes);
}

size_t whit_text_find(const whit_text *text, const whit_text *needle, size_t begin, size_t end)
{
    if (begin > end || needle->n_bytes > end - begin) return SIZE_MAX;
    if (needle->n_bytes == 0) return begin;
    const char *hit = memmem(text->bytes + begin, end - begin, needle->bytes, needle->n_bytes);
    return hit ? (size_t)(hit - text->bytes) : SIZE_MAX;
}

/* Returns x mod 2^61 - 1. */
static uint64_t reduced(unsigned __int128 x)
{
    const uint64_t prime = (UINT64_C(1) << 61) - 1;
    uint64_t sum = (uint64_t)(x & prime) + (uint64_t)(x >> 61);
    return sum >= prime ? sum - prime : sum;
}

/* Searches from the end with a rolling hash (Karp and Rabin, 1987), which takes linear time for every needle. */
size_t whit_text_find_last(const whit_text *text, const whit_text *needle, size_t begin, size_t end)
{
    const uint64_t base = 0x1B0C4A7D5E9F2631, prime = (UINT64_C(1) << 61) - 1;
    size_t n = needle->n_bytes;
    if (begin > end || n > end - begin) return SIZE_MAX;
    if (n == 0) return end;
    const uint8_t *bytes = (const uint8_t *)text->bytes;
    /* window: sum of byte i of the window times base^i, mod prime; highest: base^(n - 1) */
    uint64_t wanted = 0, window = 0, highest = 1;
    for (size_t i = n; i-- > 0;) {
        wanted = reduced((unsigned __int128)wanted * base + (uint8_t)needle->bytes[i]);
        window = reduced((unsigned __int128)window * base + bytes[end - n + i]);
        if (i) highest = reduced((unsigned __int128)highest * base);
    }
    for (size_t at = end - n;; at--) {
        if (window == wanted && memcmp(bytes + at, needle->bytes, n) == 0) return at;
        if (at == begin) return SIZE_MAX;
        uint64_t leaves = reduced((unsigned __int128)highest * bytes[at + n - 1]);
        uint64_t rest = window >= leaves ? window - leaves : window + prime - leaves;
        window = reduced((unsigned __int128)rest * base + bytes[at - 1]);
    }
}

size_t whit_text_offset(const whit_text *text, size_t i_point)
{
    if (text->n_points == text->n_bytes) return i_point;
    if (i_point >= text->n_points) return text->n_bytes;
    size_t offset = 0;
    for (size_t seen = 0; offset < text->n_bytes; offset++)
        if (((unsigned char)text->bytes[offset] & 0xC0) != 0x80 && seen++ == i_point) break;
    return offset;
}

size_t whit_text_index(const whit_text *text, size_t offset)
{
    return text->n_points == text->n_bytes ? offset : count_points(text->bytes, offset);
}

uint32_t whit_text_point(const whit_text *text, size_t offset, size_t *next)
{
    const uint8_t *p = (const uint8_t *)text->bytes + offset;
    size_t length = 1;
    uint32_t point = text->is_bytes ? p[0] : whit_utf8_decode(p, text->n_bytes - offset, &length);
    *next = offset + length;
    return point;
}

uint32_t whit_text_point_before(const whit_text *text, size_t offset, size_t *start)
{
    size_t at = offset - 1, next;
    while (at && !text->is_bytes && ((unsigned char)text->bytes[at] & 0xC0) == 0x80) at--;
    *start = at;
    return whit_text_point(text, at, &next);
}
