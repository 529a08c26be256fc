/* SPDX-License-Identifier: MIT
 * Reviews the characters of a changed text instead of its tokens: finds a file's language, and code written so that the
 * parser takes it for something else. */
#ifndef WHIT_AGENT_REVIEW_TEXT_H
#define WHIT_AGENT_REVIEW_TEXT_H

#include "base/mem.h"
#include "code/parse.h"

typedef struct whit_review_text {
    const char *path, *text;
    size_t n;
    whit_code_language language;
} whit_review_text;

/* Returns the language as which a file is reviewed: by its name, whatever the case of its letters, or by the program
 * that its first line names. More names are known here than the code graph reads. */
whit_code_language whit_review_language(const char *path, const char *text, size_t n);

/* Returns the reason, a constant text, why a person should look at the new text, or NULL. */
const char *whit_review_forms(const whit_review_text *before, const whit_review_text *after);

/* Returns whether the text uses the name anywhere, comments and strings included. With is_word, the name is also an
 * English word, and counts only if it is quoted or may be a call. */
bool whit_review_uses(const char *text, size_t n, const char *name, bool is_word);

/* Returns the reason, a constant text, why a person should look at a changed text in a language without a parser, or
 * NULL. The reason is a word that runs programs, or text as code, in the language that the file's name or its first
 * line tells. */
const char *whit_review_runs(const char *path, const char *before, size_t n_before, const char *after, size_t n_after);

#endif
