/* SPDX-License-Identifier: MIT
 * The part of a review that is decided on the characters of a text, not on its tokens: a file's language, and the ways
 * to write code that the parser takes for something else. */
#ifndef WHIT_AGENT_REVIEW_TEXT_H
#define WHIT_AGENT_REVIEW_TEXT_H

#include "base/mem.h"
#include "code/parse.h"

typedef struct whit_review_text {
    const char *path, *text;
    size_t n;
    whit_code_language language;
} whit_review_text;

/* Returns the language that a file is reviewed as: by its name in any case, otherwise by the program that its first
 * line names. More names are known than the code graph reads. */
whit_code_language whit_review_language(const char *path, const char *text, size_t n);

/* Returns the reason, a constant, why the new text needs a look, or NULL. */
const char *whit_review_forms(const whit_review_text *before, const whit_review_text *after);

/* Does the text use the name anywhere, comments and strings included? is_word: it is also a word of English, and counts
 * only where it may be a call, or is quoted. */
bool whit_review_uses(const char *text, size_t n, const char *name, bool is_word);

/* Returns the reason, a constant, why a changed text in a language without a parser needs a look, or NULL: it has a
 * word that runs programs, or text as code, in the language that the file's name or its first line tells. */
const char *whit_review_runs(const char *path, const char *before, size_t n_before, const char *after, size_t n_after);

#endif
