/* SPDX-License-Identifier: MIT
 * The exact difference of two texts, for people who must agree to it. */
#ifndef WHIT_CODE_DIFF_H
#define WHIT_CODE_DIFF_H

#include "base/mem.h"

/* Appends a unified diff with three lines of context; nothing where the texts are equal. Every byte of
 * the new text that is not in the old one is shown. Names are of the two sides, /dev/null for none. */
whit_status whit_diff_write(const char *old_name, const char *old_text, size_t old_bytes, const char *new_name,
                            const char *new_text, size_t new_bytes, whit_buf *out, whit_error *error);

#endif
