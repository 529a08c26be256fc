/* SPDX-License-Identifier: MIT
 * Text from outside, made safe for a terminal or a line of a log: what could command a terminal is
 * replaced by '?', and so is what is no UTF-8. One filter for error lines, messages and output. */
#ifndef WHIT_BASE_PLAIN_H
#define WHIT_BASE_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A character that a cut between two pieces of text has split. Zero-initialised is none. */
typedef struct whit_plain {
    uint8_t held[4];
    uint8_t n_held;
} whit_plain;

/* Copies `text` without controls: U+0000 to U+001F but line feed and tab, U+007F, U+0080 to U+009F.
 * `out` has room for n + 3 bytes; returns how many were written. An unfinished character at the end
 * waits in `state` for the next piece. */
size_t whit_plain_text(whit_plain *state, const char *text, size_t n, char *out);
/* What is left at the end: '?' where a character stayed unfinished. As above. */
size_t whit_plain_end(whit_plain *state, char *out);

/* A whole line of n bytes in place: line feeds and tabs are replaced, too. Returns its new length. */
size_t whit_plain_line(char *line, size_t n);

#endif
