/* SPDX-License-Identifier: MIT
 * Declares normalizers. Each is one step, which converts a text to another text. */
#ifndef WHIT_TOKENIZER_NORMALIZE_H
#define WHIT_TOKENIZER_NORMALIZE_H

#include "tokenizer/regex.h"

/* Appends the normalized form of `text` (valid UTF-8, not empty) to `out`. `pattern` and `content` are the step's
 * strings, *regex is its compiled pattern (NULL before the first use), `codes` is scratch memory. The time is
 * proportional to the text. The caller limits the growth by replacements with out->limit_bytes. */
whit_status whit_normalize(const whit_tokenizer_step *step, const uint8_t *pattern, const uint8_t *content,
                           whit_regex **regex, whit_buf *codes, const uint8_t *text, size_t n_bytes, whit_buf *out,
                           whit_error *error);

/* Returns whether the sizes of the parts of SentencePiece's character map (a double-array trie and replacement strings)
 * are consistent. */
bool whit_charsmap_check(const uint8_t *map, size_t map_bytes);

#endif
