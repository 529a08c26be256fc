/* SPDX-License-Identifier: MIT
 * Small parts of messages: a text that may be absent, the "s" of a plural, an English list's comma. */
#ifndef WHIT_BASE_PHRASE_H
#define WHIT_BASE_PHRASE_H

#include <stdint.h>

/* Returns `text`, or "" for NULL. */
static inline const char *whit_or_empty(const char *text)
{
    return text ? text : "";
}

/* Returns the ending of a noun after the number n: "file", "files". */
static inline const char *whit_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* Returns the sign that divides an item from the one before it: "" for the first. */
static inline const char *whit_comma(uint64_t n_before)
{
    return n_before ? ", " : "";
}

#endif
