/* SPDX-License-Identifier: MIT
 * Tells, in an answer as it streams, the section in which a model thinks from what it says.
 *
 * A section stands at the beginning of an answer, behind white space at most; its marks belong to
 * it. What might become a mark is held back until it cannot, so pieces may be cut anywhere; put
 * together, they are the answer. */
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
    char held[WHIT_THINKING_MARK_BYTES]; /* the beginning of a mark, perhaps */
    char ready[256];                     /* of the part that is being put together */
} whit_thinking_stream;

/* Both give false where on_part did. */
bool whit_thinking_push(whit_thinking_stream *stream, const char *text, size_t text_bytes);
bool whit_thinking_flush(whit_thinking_stream *stream); /* at the end of the answer */

#endif
