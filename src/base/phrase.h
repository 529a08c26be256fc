/* SPDX-License-Identifier: MIT
 * Makes small parts of messages: a text that may be absent, the "s" of a plural. */
#ifndef WHIT_BASE_PHRASE_H
#define WHIT_BASE_PHRASE_H

#include <stdint.h>

/* Returns `text`, or "" for NULL. */
static inline const char *whit_or_empty(const char *text)
{
    return text ? text : "";
}

/* Returns the ending of an English noun after the number n: "" for 1, else "s". */
static inline const char *whit_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

#endif
