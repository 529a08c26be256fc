/* SPDX-License-Identifier: MIT
 * Declares the functions that the scanners of the languages share; only files of this folder include it. */
#ifndef WHIT_CODE_SCAN_H
#define WHIT_CODE_SCAN_H

#include "code/parse.h"

struct token {
    uint32_t begin, n, line;
    /* 'a': word, '0': number, '"': string, '#': beginning of a directive, '\n': end of a line, 0: end of the text;
     * otherwise the character itself */
    char kind;
};

struct scan {
    whit_parse *parse;
    const char *text;
    uint32_t n, at, line;
    uint32_t no_end_before; /* the line's text from `at` to this offset contains no end of a block comment */
    bool at_line_begin, has_block_comments;
    unsigned n_nested; /* number of nested Python f-strings around the current position */
};

uint32_t scan_define(struct scan *scan, struct token name, whit_symbol_kind kind, uint32_t parent);
void scan_mention(struct scan *scan, struct token name, uint32_t inside, bool calls, bool imports);
bool scan_is(const struct scan *scan, struct token token, const char *word);
bool scan_is_one_of(const struct scan *scan, struct token token, const char *const *words);

void scan_c(struct scan *scan);
void scan_python(struct scan *scan);
void scan_other(struct scan *scan);

#endif
