/* SPDX-License-Identifier: MIT
 * JSON from text and to text, for all readers and writers of the server: integers beyond 63 bits are read everywhere.
 *
 * jansson has no such integers. They are read as the nearest double, and the digits of the first
 * WHIT_WIDE_MAX different ones of a request are kept by the thread that serves it: a number that is written with that
 * value gets those digits again. A request is served by one thread, its stream included. */
#ifndef WHIT_SERVER_JSON_TEXT_H
#define WHIT_SERVER_JSON_TEXT_H

#include <jansson.h>

enum { WHIT_WIDE_MAX = 64, WHIT_WIDE_DIGITS_MAX = 40 };

/* Reads an object or a list, the caller's; zero bytes in texts are let through. NULL: see `reason`. */
json_t *whit_json_read(const char *text, size_t n, json_error_t *reason);
/* Writes any value in one line, for the caller to free; NULL: memory is short. */
char *whit_json_write(const json_t *value);
/* Forgets the integers of this thread's last request. */
void whit_json_forget(void);

#endif
