/* SPDX-License-Identifier: MIT */
#include "runtime/held.h"
#include "base/items.h"

whit_status whit_held_open(const char *const *stop, size_t n_stop, size_t text_bytes, const whit_allocator *allocator,
                           whit_held *held, whit_error *error)
{
    *held = (whit_held){.text = {.allocator = allocator}};
    size_t bytes = 0;
    if (n_stop && !stop) return whit_fail(error, WHIT_ERROR_ARGUMENT, "n_stop is %zu, but stop is NULL", n_stop);
    if (!whit_mul_size(n_stop, sizeof *held->stops, &bytes))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%zu stop strings do not fit the address space", n_stop);
    for (size_t i = 0; i < n_stop; i++) {
        if (!stop[i]) return whit_fail(error, WHIT_ERROR_ARGUMENT, "stop[%zu] is NULL", i);
        if (!whit_add_size(bytes, strlen(stop[i]), &bytes))
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "the stop strings do not fit the address space");
    }
    if (n_stop && !(held->stops = whit_zalloc(allocator, bytes)))
        return whit_fail_memory(error, "the stop strings", bytes);
    held->stops_bytes = bytes;
    held->n_stops = n_stop;
    char *text = (char *)(held->stops + n_stop);
    for (size_t i = 0; i < n_stop; i++) {
        size_t n = strlen(stop[i]);
        held->stops[i] = (whit_stop_string){text, n};
        if (n) memcpy(text, stop[i], n);
        text += n;
        if (n > held->longest_stop) held->longest_stop = n;
    }
    if (whit_buf_reserve(&held->text, text_bytes + held->longest_stop)) return WHIT_OK;
    whit_held_close(held);
    return whit_fail_memory(error, "the generated text", text_bytes);
}

void whit_held_close(whit_held *held)
{
    whit_free(held->text.allocator, held->stops, held->stops_bytes);
    whit_buf_free(&held->text);
    held->stops = NULL;
}

/* Returns the offset of the earliest stop string in the text from n_final on, and sets i_stop; the end of the text if
 * not found. */
static size_t find_stop(whit_held *held)
{
    size_t size = held->text.size_bytes;
    for (size_t at = held->n_final; at < size; at++)
        for (size_t i = 0; i < held->n_stops; i++) {
            size_t n = held->stops[i].n;
            if (n && n <= size - at && memcmp(held->text.data + at, held->stops[i].text, n) == 0) {
                held->i_stop = i;
                return at;
            }
        }
    return size;
}

/* Returns the first offset from which on the rest of the text is the beginning of a stop string, or the end of the
 * text. */
static size_t find_maybe(const whit_held *held)
{
    size_t size = held->text.size_bytes, at = size > held->longest_stop ? size - held->longest_stop : 0;
    for (at = at < held->n_final ? held->n_final : at; at < size; at++)
        for (size_t i = 0; i < held->n_stops; i++)
            if (held->stops[i].n > size - at && memcmp(held->text.data + at, held->stops[i].text, size - at) == 0)
                return at;
    return size;
}

whit_status whit_held_add(whit_held *held, const char *text, size_t n, bool last, whit_error *error)
{
    if (held->n_taken) { /* drops the text that was already returned */
        memmove(held->text.data, held->text.data + held->n_taken, held->text.size_bytes - held->n_taken);
        held->text.size_bytes -= held->n_taken;
        held->n_final -= held->n_taken;
        held->n_taken = 0;
    }
    if (held->stopped) return WHIT_OK;
    if (n && !whit_buf_append(&held->text, text, n)) {
        held->text.failed = false; /* the existing text can still be returned */
        return whit_fail_memory(error, "the generated text", n);
    }
    size_t stop = find_stop(held);
    held->stopped = stop < held->text.size_bytes;
    if (held->stopped)
        held->n_final = stop;
    else if (last)
        held->n_final = held->text.size_bytes;
    else
        held->n_final = find_maybe(held);
    if (held->stopped) held->text.size_bytes = stop;
    return WHIT_OK;
}

const char *whit_held_take(whit_held *held, size_t *n)
{
    const char *text = held->text.data ? whit_chars(&held->text) + held->n_taken : "";
    *n = held->n_final - held->n_taken;
    held->n_taken = held->n_final;
    return text;
}
