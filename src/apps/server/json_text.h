/* SPDX-License-Identifier: MIT
 * Reads and writes JSON text for the whole server, including integers of more than 63 bits.
 *
 * jansson has no such integers, so they are read as the nearest double. The thread that serves a request remembers the
 * digits of the first WHIT_WIDE_MAX different ones: a number with the same value is written with these digits again. A
 * request, including its stream, is served by one thread. */
#ifndef WHIT_SERVER_JSON_TEXT_H
#define WHIT_SERVER_JSON_TEXT_H

#include <jansson.h>

enum { WHIT_WIDE_MAX = 64, WHIT_WIDE_DIGITS_MAX = 40 };

/* Reads an object or a list, which the caller owns; texts may contain zero bytes. On failure returns NULL and sets
 * `reason`. */
json_t *whit_json_read(const char *text, size_t n, json_error_t *reason);
/* Writes any value on one line; the caller frees it. Returns NULL if memory runs out. */
char *whit_json_write(const json_t *value);
/* Forgets the integers of the last request that this thread served. */
void whit_json_forget(void);

#endif
