/* SPDX-License-Identifier: MIT */
#include "base/plain.h"

#include <string.h>

#include "base/utf8.h"

static bool is_control(uint32_t code)
{
    return (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7F && code < 0xA0);
}

/* Could these bytes, which are no character, become one with more behind them? */
static bool is_unfinished(const uint8_t *text, size_t n, size_t length)
{
    uint8_t first = text[0];
    size_t wanted = first < 0xC2 || first > 0xF4 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    return length == n && n < wanted;
}

size_t whit_plain_text(whit_plain *state, const char *text, size_t n, char *out)
{
    size_t n_out = 0, i = 0;
    while (i < n || state->n_held) {
        /* The character begins with the held bytes, where there are some. */
        uint8_t bytes[4];
        size_t n_held = state->n_held, n_bytes = n_held, length;
        memcpy(bytes, state->held, n_held);
        while (n_bytes < 4 && i + n_bytes - n_held < n) {
            bytes[n_bytes] = (uint8_t)text[i + n_bytes - n_held];
            n_bytes++;
        }
        uint32_t code = whit_utf8_decode(bytes, n_bytes, &length);
        if (code == WHIT_UTF8_INVALID && is_unfinished(bytes, n_bytes, length)) {
            memcpy(state->held, bytes, n_bytes);
            state->n_held = (uint8_t)n_bytes;
            return n_out;
        }
        /* A maximal part of a character holds all that was held before it. */
        state->n_held = 0;
        i += length - n_held;
        if (code == WHIT_UTF8_INVALID || is_control(code)) {
            out[n_out++] = '?';
        } else {
            memcpy(out + n_out, bytes, length);
            n_out += length;
        }
    }
    return n_out;
}

size_t whit_plain_end(whit_plain *state, char *out)
{
    bool unfinished = state->n_held > 0;
    state->n_held = 0;
    if (unfinished) out[0] = '?';
    return unfinished;
}

size_t whit_plain_line(char *line, size_t n)
{
    /* Nothing grows: what is written never passes what was read, and the held bytes lie between. */
    whit_plain state = {{0}, 0};
    char piece[64 + 4];
    size_t n_out = 0;
    for (size_t i = 0; i < n; i += 64) {
        size_t n_piece = whit_plain_text(&state, line + i, n - i < 64 ? n - i : 64, piece);
        memcpy(line + n_out, piece, n_piece);
        n_out += n_piece;
    }
    n_out += whit_plain_end(&state, line + n_out);
    for (size_t i = 0; i < n_out; i++)
        if (line[i] == '\n' || line[i] == '\t') line[i] = '?';
    return n_out;
}
