/* SPDX-License-Identifier: MIT
 * Runs regular expressions of tokenizer files by PCRE2; they are written for Oniguruma (Ruby's syntax).
 *
 * The pattern is translated where the two differ (\s, \w, \h, \b, scripts, {n,m}+, nested classes), and
 * what cannot be said is refused by name. Every match has limits on steps, depth and memory, and
 * all searches since `begin` share a time limit, so that a pattern that backtracks for ever ends in
 * an error. */
#ifndef WHIT_TOKENIZER_REGEX_H
#define WHIT_TOKENIZER_REGEX_H

#include "base/mem.h"
#include "tokenizer/image.h"

typedef struct whit_regex whit_regex;

/* Appends the pattern in PCRE2's syntax to `out`. */
whit_status whit_regex_translate(const uint8_t *pattern, size_t n_bytes, whit_buf *out, whit_error *error);
/* Finds whether PCRE2 has a property of that name, of at most 80 characters. */
whit_status whit_regex_has_property(const char *name, const whit_allocator *allocator, bool *has, whit_error *error);

whit_status whit_regex_compile(const uint8_t *pattern, size_t n_bytes, const whit_allocator *allocator,
                               whit_regex **regex, whit_error *error);
void whit_regex_close(whit_regex *regex);

/* Starts the time that the searches in a text of this size may take; NULL is fine. */
void whit_regex_begin(whit_regex *regex, size_t n_bytes);

/* Iterates over the matches of one text in order. Zero-initialise it for each text. */
typedef struct whit_match {
    size_t start, end; /* bounds of the last match */
    size_t from;       /* start of the next search */
    bool found;        /* `end` is the end of a match */
} whit_match;

/* Finds the next match in `text`, which is valid UTF-8; *found is false at the end. An empty match directly after a
 * match does not count. Errors: limit. */
whit_status whit_regex_next(whit_regex *regex, const uint8_t *text, size_t n_bytes, whit_match *match, bool *found,
                            whit_error *error);

/* Finds the next match of a step's text, as whit_regex_next does: a literal, or a pattern that is compiled into *regex
 * at first use. `pattern` is the step's text in the image. */
whit_status whit_step_next_match(const whit_tokenizer_step *step, const uint8_t *pattern, whit_regex **regex,
                                 const whit_allocator *allocator, const uint8_t *text, size_t n_bytes,
                                 whit_match *match, bool *found, whit_error *error);

/* Appends the text to `out` with all matches of a step replaced by `content`. A text that is not UTF-8 is copied
 * unchanged if the step is a pattern. */
whit_status whit_replace(const whit_tokenizer_step *step, const uint8_t *pattern, const uint8_t *content,
                         whit_regex **regex, const whit_allocator *allocator, const uint8_t *text, size_t n_bytes,
                         whit_buf *out, whit_error *error);

#endif
