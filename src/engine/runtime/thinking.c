/* SPDX-License-Identifier: MIT */
#include "runtime/thinking.h"

#include <string.h>

static bool emit(whit_thinking_stream *s)
{
    size_t n = s->n_ready;
    s->n_ready = 0;
    return !n || s->on_part(s->user, s->ready, n, s->inside);
}

static bool give(whit_thinking_stream *s, const char *text, size_t n)
{
    while (n) {
        if (s->n_ready == sizeof s->ready && !emit(s)) return false;
        size_t room = sizeof s->ready - s->n_ready, part = n < room ? n : room;
        memcpy(s->ready + s->n_ready, text, part);
        s->n_ready += part;
        text += part;
        n -= part;
    }
    return true;
}

/* Adds a byte to the held bytes and emits all bytes that can no longer begin `mark`. */
static bool take(whit_thinking_stream *s, const char *mark, char c)
{
    s->held[s->n_held++] = c;
    size_t n = s->n_held;
    while (n && memcmp(s->held + s->n_held - n, mark, n) != 0) n--;
    size_t n_out = s->n_held - n;
    s->n_held = n;
    if (!give(s, s->held, n_out)) return false;
    memmove(s->held, s->held + n_out, n);
    return true;
}

/* Handles a complete marker in the held bytes. */
static bool turn(whit_thinking_stream *s)
{
    size_t n = s->n_held;
    s->n_held = 0;
    if (!s->inside && !emit(s)) return false;
    s->over = s->inside;
    s->inside = true;
    if (!give(s, s->held, n)) return false;
    if (!s->over) return true;
    if (!emit(s)) return false;
    s->inside = false;
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

bool whit_thinking_push(whit_thinking_stream *s, const char *text, size_t text_bytes)
{
    for (; text_bytes && !s->over; text++, text_bytes--) {
        const char *mark = s->inside ? s->close : s->open;
        if (!s->inside && !s->n_held && is_blank(*text)) {
            if (!give(s, text, 1)) return false;
            continue;
        }
        size_t n_before = s->n_held;
        if (!take(s, mark, *text)) return false;
        if (s->n_held == strlen(mark)) {
            if (!turn(s)) return false;
        } else if (!s->inside && s->n_held <= n_before) {
            s->over = true; /* the answer began with something else */
            if (!give(s, s->held, s->n_held)) return false;
            s->n_held = 0;
        }
    }
    return give(s, text, text_bytes) && emit(s);
}

bool whit_thinking_flush(whit_thinking_stream *s)
{
    size_t n = s->n_held;
    s->n_held = 0;
    return give(s, s->held, n) && emit(s);
}
