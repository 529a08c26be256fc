/* SPDX-License-Identifier: MIT
 * Executes the regular expressions of tokenizer files with PCRE2. They are written for Oniguruma (Ruby's syntax).
 *
 * A pattern is translated where the two differ (\s, \w, \h, \b, scripts, {n,m}+, nested classes); the error for syntax
 * that cannot be translated names it. Every match has limits on steps, depth and memory, and all searches since
 * whit_regex_begin share a time limit. A pattern that would backtrack endlessly therefore ends in an error. */
#ifndef WHIT_TOKENIZER_REGEX_H
#define WHIT_TOKENIZER_REGEX_H

#include "base/mem.h"
#include "tokenizer/image.h"

typedef struct whit_regex whit_regex;

/* Appends the pattern, translated to PCRE2's syntax, to `out`. */
whit_status whit_regex_translate(const uint8_t *pattern, size_t n_bytes, whit_buf *out, whit_error *error);
/* Sets *has to whether PCRE2 knows a Unicode property of this name, which has at most 80 characters. */
whit_status whit_regex_has_property(const char *name, const whit_allocator *allocator, bool *has, whit_error *error);

whit_status whit_regex_compile(const uint8_t *pattern, size_t n_bytes, const whit_allocator *allocator,
                               whit_regex **regex, whit_error *error);
void whit_regex_close(whit_regex *regex);

/* Resets the time limit for the searches in a text of this size. `regex` may be NULL. */
void whit_regex_begin(whit_regex *regex, size_t n_bytes);

/* State of an iteration over the matches in one text. Zero-initialise it for each text. */
typedef struct whit_match {
    size_t start, end; /* position of the last match */
    size_t from;       /* where the next search begins */
    bool found;        /* a match was found before */
} whit_match;

/* Finds the next match in `text`, which is valid UTF-8; *found is false if no match follows. An empty match directly
 * after another match does not count. Errors: limit, memory. */
whit_status whit_regex_next(whit_regex *regex, const uint8_t *text, size_t n_bytes, whit_match *match, bool *found,
                            whit_error *error);

/* Like whit_regex_next, for a step whose text is a literal or a pattern. `pattern` is the step's text. A pattern is
 * compiled into *regex when it is first used. */
whit_status whit_step_next_match(const whit_tokenizer_step *step, const uint8_t *pattern, whit_regex **regex,
                                 const whit_allocator *allocator, const uint8_t *text, size_t n_bytes,
                                 whit_match *match, bool *found, whit_error *error);

/* Appends `text` to `out`, with all matches of a step replaced by `content`. If the step has a pattern and the text is
 * not valid UTF-8, it is copied unchanged. */
whit_status whit_replace(const whit_tokenizer_step *step, const uint8_t *pattern, const uint8_t *content,
                         whit_regex **regex, const whit_allocator *allocator, const uint8_t *text, size_t n_bytes,
                         whit_buf *out, whit_error *error);

#endif
