/* SPDX-License-Identifier: MIT
 * Finds letters that look like Latin ones and are others (CVE-2021-42694, UTS #39): a reader takes a name with such a
 * letter for another name. */
#ifndef WHIT_BASE_LOOKALIKE_H
#define WHIT_BASE_LOOKALIKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns whether the character `code` at text[at] looks like a Latin letter and is not one, in a word with an ASCII
 * letter; or if it is Cyrillic, near no Cyrillic letter of another look in its line. */
bool whit_lookalike_at(const char *text, size_t n, size_t at, uint32_t code);
/* Returns whether a text has such a character. */
bool whit_lookalike_is_in(const char *text, size_t n);

#endif
