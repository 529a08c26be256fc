/* SPDX-License-Identifier: MIT
 * Normalizers: each is one step from text to text. */
#ifndef WHIT_TOKENIZER_NORMALIZE_H
#define WHIT_TOKENIZER_NORMALIZE_H

#include "tokenizer/regex.h"

/* Appends the normalized form of `text` (valid UTF-8, not empty) to `out`. `pattern` and `content`
 * are the step's strings, *regex its pattern once compiled, `codes` scratch. Time is in proportion
 * to the text; out->limit_bytes bounds what replacements can make of it. */
whit_status whit_normalize(const whit_tokenizer_step *step, const uint8_t *pattern, const uint8_t *content,
                           whit_regex **regex, whit_buf *codes, const uint8_t *text, size_t n_bytes, whit_buf *out,
                           whit_error *error);

/* Returns whether the sizes of SentencePiece's character map (a double-array trie and replacement strings) agree. */
bool whit_charsmap_check(const uint8_t *map, size_t map_bytes);

#endif
