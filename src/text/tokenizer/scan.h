/* SPDX-License-Identifier: MIT
 * Matches the most common pre-tokenizer patterns by hand-written functions, which are about ten times as fast as
 * regex.h. tests/unit/tokenizer_scan.c checks that they match like PCRE2. */
#ifndef WHIT_TOKENIZER_SCAN_H
#define WHIT_TOKENIZER_SCAN_H

#include <stddef.h>
#include <stdint.h>

/* Returns the end of the match that begins at `at` < n, in valid UTF-8. The patterns match at every position. */
typedef size_t whit_scan_fn(const uint8_t *text, size_t n, size_t at);

#define WHIT_PATTERN_GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define WHIT_PATTERN_LLAMA3                                                                                            \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"                                           \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define WHIT_PATTERN_QWEN2                                                                                             \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"                                                \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

size_t whit_scan_gpt2(const uint8_t *text, size_t n, size_t at);
size_t whit_scan_llama3(const uint8_t *text, size_t n, size_t at);
size_t whit_scan_qwen2(const uint8_t *text, size_t n, size_t at);

/* Returns the function for a pattern; NULL if no function exists for it. */
whit_scan_fn *whit_scan_for(const uint8_t *pattern, size_t n_bytes);

#endif
