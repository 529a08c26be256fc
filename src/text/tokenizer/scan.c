/* SPDX-License-Identifier: MIT */
#include "tokenizer/scan.h"

#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"
#include "tokenizer/unicode.h"

enum kind { SPACE, LETTER, NUMBER, OTHER };

static enum kind kind_of_code(uint32_t code)
{
    if (whit_is_letter(code)) return LETTER;
    if (whit_is_number(code)) return NUMBER;
    return whit_is_space(code) ? SPACE : OTHER;
}

/* Returns the kind of the character at `at`; *next is the position of the following character. */
static inline enum kind kind_at(const uint8_t *text, size_t n, size_t at, size_t *next)
{
    uint8_t c = text[at];
    if (c < 0x80) {
        *next = at + 1;
        if ((uint8_t)((c | 0x20) - 'a') < 26) return LETTER;
        if ((uint8_t)(c - '0') < 10) return NUMBER;
        return c == ' ' || (c >= '\t' && c <= '\r') ? SPACE : OTHER;
    }
    size_t length;
    uint32_t code = whit_utf8_decode(text + at, n - at, &length);
    *next = at + length;
    return code == WHIT_UTF8_INVALID ? OTHER : kind_of_code(code);
}

/* Returns the end of the run of characters of this kind that begins at `at`. */
static size_t run_of(enum kind kind, const uint8_t *text, size_t n, size_t at)
{
    size_t next;
    while (at < n && kind_at(text, n, at, &next) == kind) at = next;
    return at;
}

/* Returns the end of a contraction ('s 't 'm 'd 're 've 'll) whose apostrophe is at `at`; 0 if no contraction is there.
 * `fold` is the bit that makes letters lower case, or 0. */
static size_t contraction(const uint8_t *text, size_t n, size_t at, uint8_t fold)
{
    size_t left = n - at;
    uint8_t first = left > 1 ? text[at + 1] | fold : 0;
    uint8_t second = left > 2 ? text[at + 2] | fold : 0;
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
    if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l'))
        return at + 3;
    /* U+017F, the long s, equals s in a pattern that ignores case. */
    if (fold && left > 2 && text[at + 1] == 0xC5 && text[at + 2] == 0xBF) return at + 3;
    return 0;
}

/* Implements \s+(?!\S)|\s+ for a run of white space that ends at `end`. If text follows, the run's last character is
 * left to the next match, unless it is the only one. */
static size_t space_run(const uint8_t *text, size_t n, size_t at, size_t end)
{
    if (end == n) return end;
    size_t last = end - 1;
    while (last > at && (text[last] & 0xC0) == 0x80) last--;
    return last > at ? last : end;
}

size_t whit_scan_gpt2(const uint8_t *text, size_t n, size_t at)
{
    size_t next, after;
    if (text[at] == '\'') {
        size_t end = contraction(text, n, at, 0);
        if (end) return end;
    }
    enum kind kind = kind_at(text, n, at, &next);
    if (text[at] == ' ' && next < n) {
        enum kind second = kind_at(text, n, next, &after);
        if (second != SPACE) return run_of(second, text, n, after);
    }
    size_t end = run_of(kind, text, n, next);
    return kind == SPACE ? space_run(text, n, at, end) : end;
}

static size_t scan_llama3(const uint8_t *text, size_t n, size_t at, int n_digits)
{
    size_t next, after;
    uint8_t c = text[at];
    if (c == '\'') {
        size_t end = contraction(text, n, at, 0x20);
        if (end) return end;
    }
    enum kind kind = kind_at(text, n, at, &next);
    if (kind == LETTER) return run_of(LETTER, text, n, next);
    if (kind == NUMBER) {
        for (int i = 1; i < n_digits && next < n; i++) {
            if (kind_at(text, n, next, &after) != NUMBER) break;
            next = after;
        }
        return next;
    }
    bool newline = c == '\r' || c == '\n';
    enum kind second = next < n ? kind_at(text, n, next, &after) : SPACE;
    if (!newline && second == LETTER) return run_of(LETTER, text, n, after);
    if (kind == OTHER || (c == ' ' && second == OTHER)) {
        size_t end = run_of(OTHER, text, n, next);
        while (end < n && (text[end] == '\r' || text[end] == '\n')) end++;
        return end;
    }
    size_t end = run_of(SPACE, text, n, at);
    for (size_t last = end; last > at; last--)
        if (text[last - 1] == '\r' || text[last - 1] == '\n') return last;
    return space_run(text, n, at, end);
}

size_t whit_scan_llama3(const uint8_t *text, size_t n, size_t at)
{
    return scan_llama3(text, n, at, 3);
}

size_t whit_scan_qwen2(const uint8_t *text, size_t n, size_t at)
{
    return scan_llama3(text, n, at, 1);
}

whit_scan_fn *whit_scan_for(const uint8_t *pattern, size_t n_bytes)
{
    static const struct {
        const char *pattern;
        whit_scan_fn *scan;
    } known[] = {
        {WHIT_PATTERN_GPT2, whit_scan_gpt2},
        {WHIT_PATTERN_LLAMA3, whit_scan_llama3},
        {WHIT_PATTERN_QWEN2, whit_scan_qwen2},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strlen(known[i].pattern) == n_bytes && memcmp(known[i].pattern, pattern, n_bytes) == 0)
            return known[i].scan;
    return NULL;
}
