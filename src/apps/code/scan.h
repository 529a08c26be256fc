/* SPDX-License-Identifier: MIT
 * Declares helpers that the scanners share; this header is private to its folder. */
#ifndef WHIT_CODE_SCAN_H
#define WHIT_CODE_SCAN_H

#include "code/parse.h"

struct token {
    uint32_t begin, n, line;
    /* 'a': a word, '0': a number, '"': a string, '#': a directive's beginning, '\n': a line end, 0: the end, otherwise:
     * the character itself */
    char kind;
};

struct scan {
    whit_parse *parse;
    const char *text;
    uint32_t n, at, line;
    uint32_t no_end_before; /* the rest of the line up to this offset contains no end of a block comment */
    bool at_line_begin, has_block_comments;
    unsigned n_nested; /* number of Python's formatted strings that contain the place */
};

uint32_t scan_define(struct scan *scan, struct token name, whit_symbol_kind kind, uint32_t parent);
void scan_mention(struct scan *scan, struct token name, uint32_t inside, bool calls, bool imports);
bool scan_is(const struct scan *scan, struct token token, const char *word);
bool scan_is_one_of(const struct scan *scan, struct token token, const char *const *words);

void scan_c(struct scan *scan);
void scan_python(struct scan *scan);
void scan_other(struct scan *scan);

#endif
