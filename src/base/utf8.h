/* SPDX-License-Identifier: MIT
 * Decodes and encodes UTF-8 strictly (no overlong forms, no surrogates, at most U+10FFFF). */
#ifndef WHIT_BASE_UTF8_H
#define WHIT_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WHIT_UTF8_INVALID     UINT32_MAX
#define WHIT_UTF8_REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/* Returns the code point at `text` (n > 0 bytes); *length is its number of bytes. For invalid UTF-8 the result is
 * WHIT_UTF8_INVALID, and *length is the length of the maximal part that one U+FFFD replaces (Unicode 15, section 3.9,
 * table 3-8). */
static inline uint32_t whit_utf8_decode(const uint8_t *text, size_t n, size_t *length)
{
    uint8_t first = text[0];
    *length = 1;
    if (first < 0x80) return first;
    if (first < 0xC2 || first > 0xF4) return WHIT_UTF8_INVALID;
    size_t n_more = 1 + (size_t)(first >= 0xE0) + (size_t)(first >= 0xF0);
    /* The second byte's range depends on the first byte; later bytes are in [0x80, 0xBF]. */
    uint8_t low = 0x80;
    if (first == 0xE0)
        low = 0xA0;
    else if (first == 0xF0)
        low = 0x90;
    uint8_t high = 0xBF;
    if (first == 0xED)
        high = 0x9F;
    else if (first == 0xF4)
        high = 0x8F;
    uint32_t code = first & (0x3Fu >> n_more);
    for (size_t i = 1; i <= n_more; i++) {
        if (i >= n || text[i] < low || text[i] > high) return WHIT_UTF8_INVALID;
        code = code << 6 | (text[i] & 0x3Fu);
        low = 0x80;
        high = 0xBF;
        *length = i + 1;
    }
    return code;
}

/* Returns the value of a hexadecimal digit, or -1. */
static inline int whit_hex_digit(uint32_t c)
{
    if (c >= '0' && c <= '9') return (int)c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? (int)c - 'a' + 10 : -1;
}

/* Writes a valid code point as UTF-8; returns its number of bytes (1 to 4). */
static inline size_t whit_utf8_encode(uint32_t code, uint8_t out[4])
{
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (uint8_t)(0xC0 | code >> 6);
        out[1] = (uint8_t)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (uint8_t)(0xE0 | code >> 12);
        out[1] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
        out[2] = (uint8_t)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | code >> 18);
    out[1] = (uint8_t)(0x80 | (code >> 12 & 0x3F));
    out[2] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
    out[3] = (uint8_t)(0x80 | (code & 0x3F));
    return 4;
}

/* Returns the length of the longest beginning of `text` (n bytes) that has at most n_most bytes and ends between two
 * characters. */
static inline size_t whit_utf8_cut(const char *text, size_t n, size_t n_most)
{
    if (n <= n_most) return n;
    while (n_most && ((uint8_t)text[n_most] & 0xC0) == 0x80) n_most--;
    return n_most;
}

/* Returns how many bytes at the start of `text` are valid UTF-8; n if all are. */
size_t whit_utf8_valid_bytes(const uint8_t *text, size_t n);

#endif
