/* SPDX-License-Identifier: MIT
 * Turns the Markdown of an answer that streams to a terminal into styles: headings, lists, quotes, bold, italics and
 * code.
 *
 * Every byte of the text is written, in order, except marks that took effect. A mark takes effect only once its end is
 * there: a text is held back from the mark to its end, to the end of the line, or for MARKUP_BYTES, whichever comes
 * first. The receiver writes; styles are numbers, never parts of the text, so that the text cannot make one. */
#ifndef WHIT_CLI_MARKUP_H
#define WHIT_CLI_MARKUP_H

#include <stdbool.h>
#include <stddef.h>

enum { CLI_MARKUP_BYTES = 400 };

/* Styles are bit masks. */
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

/* Functions of this type write a piece of the answer in a style. `verbatim`: the piece is code, whose lines must not be
 * wrapped. They return false to end the answer. */
typedef bool cli_markup_fn(void *user, const char *text, size_t n_bytes, unsigned style, bool verbatim);

typedef struct cli_markup {
    cli_markup_fn *write;
    void *user;
    char held[CLI_MARKUP_BYTES]; /* the beginning of a line, a span, or a word of code, not yet written */
    size_t n_held;
    int state;        /* kind of the text that is held back: the parser's state */
    unsigned line;    /* style of the line if it is a heading or a quote */
    char before;      /* the last byte that was written; a line feed at first */
    char quote;       /* the open quote in a line of code, or 0 */
    char comment;     /* first byte of a comment in this language: '#', '/', '-', or 0 */
    bool is_escaped;  /* the byte before was a backslash within a quote */
    size_t n_fence;   /* number of marks that opened the block of code */
    char fence;       /* '`' or '~' */
    bool has_comment; /* the rest of this line of code is a comment */
    /* These bytes for the receiver have one style; they are collected so that it receives whole characters. */
    char out[256];
    size_t n_out;
    unsigned out_style;
    bool out_verbatim;
} cli_markup;

/* Begins an answer; `write` receives its pieces. */
cli_markup cli_markup_begin(cli_markup_fn *write, void *user);
bool cli_markup_add(cli_markup *markup, const char *text, size_t n_bytes);
/* Writes the held text literally. */
bool cli_markup_end(cli_markup *markup);

#endif
