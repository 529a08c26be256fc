/* SPDX-License-Identifier: MIT
 * Converts the Markdown of an answer, as it streams to a terminal, to styles: headings, lists, quotes, bold, italics
 * and code.
 *
 * Every byte of the text is written, in order, except marks that took effect; a list's mark becomes a bullet. A mark
 * takes effect only when its end has arrived: text is held back from the mark to its end, to the end of the line, or
 * for CLI_MARKUP_BYTES, whichever comes first. A callback writes the pieces. Styles are numbers and not part of the
 * text, so that the text of an answer cannot produce control sequences. */
#ifndef WHIT_CLI_MARKUP_H
#define WHIT_CLI_MARKUP_H

#include <stdbool.h>
#include <stddef.h>

enum { CLI_MARKUP_BYTES = 400 };

/* Styles; they may be combined by |. */
enum {
    CLI_STYLE_BOLD = 1,
    CLI_STYLE_ITALIC = 2,
    CLI_STYLE_CODE = 4,
    CLI_STYLE_QUOTE = 8,
    CLI_STYLE_KEYWORD = 16,
    CLI_STYLE_STRING = 32,
    CLI_STYLE_COMMENT = 64,
    CLI_STYLE_NUMBER = 128,
};

/* Type of callbacks that write a piece of the answer in a style. verbatim: the piece is code, whose lines must not be
 * wrapped. Returning false ends the answer. */
typedef bool cli_markup_fn(void *user, const char *text, size_t n_bytes, unsigned style, bool verbatim);

typedef struct cli_markup {
    cli_markup_fn *write;
    void *user;
    char held[CLI_MARKUP_BYTES]; /* bytes that are not written yet: a line's beginning, a span, or a word of code */
    size_t n_held;
    int state;        /* state of the parser, which determines the meaning of `held` */
    unsigned line;    /* style of the current line if it is a heading or a quote; otherwise 0 */
    char before;      /* the last byte that was written; initially a line feed */
    char quote;       /* in code: the quote that began the current string; 0 outside strings */
    char comment;     /* first byte of a comment in the block's language: '#', '/' or '-'; 0: it has no comments */
    bool is_escaped;  /* in a string: the last byte was a backslash that escapes the next one */
    size_t n_fence;   /* number of marks in the fence that began the block of code */
    char fence;       /* mark of that fence, '`' or '~' */
    bool has_comment; /* the rest of this line of code is a comment */
    /* Bytes for the callback, all in the same style; they are collected so that it gets whole characters. */
    char out[256];
    size_t n_out;
    unsigned out_style;
    bool out_verbatim;
} cli_markup;

/* Begins an answer, whose pieces are passed to `write`. */
cli_markup cli_markup_begin(cli_markup_fn *write, void *user);
bool cli_markup_add(cli_markup *markup, const char *text, size_t n_bytes);
/* Returns whether the text so far ends within a block of code. */
bool cli_markup_is_code(const cli_markup *markup);
/* Ends the answer: writes all text that is still held back. A span that is not closed is written as ordinary text,
 * marks included. */
bool cli_markup_end(cli_markup *markup);

#endif
