/* SPDX-License-Identifier: MIT
 * Reviews the characters of a changed text, not its tokens: finds a file's language, and code written so that the
 * parser does not recognise it. */
#ifndef WHIT_AGENT_REVIEW_TEXT_H
#define WHIT_AGENT_REVIEW_TEXT_H

#include "base/mem.h"
#include "code/parse.h"

#include <ctype.h>

typedef struct whit_review_text {
    const char *path, *text;
    size_t n;
    whit_code_language language;
    const whit_parse *parse; /* the text's definitions and mentions */
} whit_review_text;

/* Returns whether a byte may be part of a name: a letter, a digit, '_', or a byte of a character beyond ASCII. */
static inline bool whit_review_is_word(char c)
{
    return isalnum((uint8_t)c) || c == '_' || (uint8_t)c >= 0x80;
}

/* Returns whether the text imports or includes exactly this name. */
bool whit_review_imports_name(const whit_review_text *t, const char *name, size_t n);

/* Returns the language as which a file is reviewed: from its name, in upper or lower case, or from the interpreter in
 * its first line. It knows more names than the code graph. */
whit_code_language whit_review_language(const char *path, const char *text, size_t n);

/* Returns the reason, a constant text, why a person should review the forms of text that a change adds, or NULL. */
const char *whit_review_forms(const whit_review_text *before, const whit_review_text *after);

/* Returns whether a text contains the name anywhere, also in comments and strings. is_word: the name is also an English
 * word, so it counts only if it is quoted or looks like a call. */
bool whit_review_uses(const char *text, size_t n, const char *name, bool is_word);

/* Searches a changed text for words that run programs or run text as code, in languages without a parser; words that
 * the old text has, too, also count. The language follows from the file's name or its first line. Returns a constant
 * text that says why a person should review the change, or NULL. */
const char *whit_review_runs(const char *path, const char *before, size_t n_before, const char *after, size_t n_after);

#endif
