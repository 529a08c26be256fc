/* SPDX-License-Identifier: MIT
 * Finds letters that look like Latin ones and are others (CVE-2021-42694, UTS #39): a reader takes a name with such a
 * letter for another name. Also finds letters that look like signs, such as U+01C3 like "!": a reader takes a name for
 * an expression. */
#ifndef WHIT_BASE_LOOKALIKE_H
#define WHIT_BASE_LOOKALIKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns whether the character `code` at text[at] looks like a Latin letter and is not one, in a word with an ASCII
 * letter; or if it is Cyrillic, near no Cyrillic letter of another look in its line; or like a sign of ASCII, beside a
 * character of ASCII that is no blank. */
bool whit_lookalike_at(const char *text, size_t n, size_t at, uint32_t code);
/* Returns whether a text has such a character. */
bool whit_lookalike_is_in(const char *text, size_t n);

#endif
