/* SPDX-License-Identifier: MIT
 * Separates the thinking section of a streamed answer from its text.
 *
 * A section is at the beginning of an answer, after optional white space; its markers belong to
 * it. Bytes that may begin a marker are held back until they cannot, so pieces may be cut anywhere; concatenated,
 * they are the answer. */
#ifndef WHIT_RUNTIME_THINKING_H
#define WHIT_RUNTIME_THINKING_H

#include <stdbool.h>
#include <stddef.h>

#define WHIT_THINKING_MARK_BYTES 32

/* Return false to stop. */
typedef bool whit_part_fn(void *user, const char *text, size_t text_bytes, bool thinking);

/* Initialise the first five members, `inside` where the prompt opened a section already. */
typedef struct whit_thinking_stream {
    const char *open, *close; /* marks of at most WHIT_THINKING_MARK_BYTES */
    bool inside;
    whit_part_fn *on_part;
    void *user;
    bool over; /* no section can begin any more */
    size_t n_held, n_ready;
    char held[WHIT_THINKING_MARK_BYTES]; /* bytes that may begin a marker */
    char ready[256];                     /* bytes of the current part, not passed on yet */
} whit_thinking_stream;

/* Both return false if on_part did. */
bool whit_thinking_push(whit_thinking_stream *stream, const char *text, size_t text_bytes);
bool whit_thinking_flush(whit_thinking_stream *stream); /* at the end of the answer */

#endif
