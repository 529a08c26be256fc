/* SPDX-License-Identifier: MIT
 * Reads and writes JSON text for the whole server, including integers that do not fit 64 bits with sign.
 *
 * jansson has no such integers, so a double stands for them. The thread that serves a request remembers the digits of
 * the first WHIT_WIDE_MAX different ones, and writes these digits for a number with the same value. A request,
 * including its stream, is served by one thread. */
#ifndef WHIT_SERVER_JSON_TEXT_H
#define WHIT_SERVER_JSON_TEXT_H

#include <jansson.h>

#include "base/mem.h"

enum { WHIT_WIDE_MAX = 64, WHIT_WIDE_DIGITS_MAX = 40 };

/* Parses an object or a list, which the caller owns; strings may contain zero bytes. On failure returns NULL and sets
 * `reason`. */
json_t *whit_json_read(const char *text, size_t n, json_error_t *reason);
/* Writes any value as one line of text, which the caller frees. Returns NULL if memory runs out. */
char *whit_json_write(const json_t *value);
/* Replaces U+0085, U+2028 and U+2029 in lines of JSON by their escapes. Many clients in Python split a stream by
 * str.splitlines(), which ends a line at these characters, too. Sets lines->failed if memory runs out. */
void whit_json_keep_lines(whit_buf *lines);
/* Forgets the wide integers that this thread has remembered; called before the body of a request is parsed. */
void whit_json_forget(void);

#endif
