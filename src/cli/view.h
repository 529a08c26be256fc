/* SPDX-License-Identifier: MIT
 * Prints an answer on stdout as it streams. On a terminal the model's thinking is dim, Markdown becomes styles, and
 * lines can be wrapped between words. */
#ifndef WHIT_CLI_VIEW_H
#define WHIT_CLI_VIEW_H

#include "cli/cli.h"
#include "cli/markup.h"
#include "whit/conversation.h"

typedef struct cli_view {
    cli_call *call;
    bool styled;  /* stdout is a terminal */
    bool dim;     /* the dim style is on */
    bool thought; /* thinking was shown, and no text after it */
    /* The members below wrap text: a word is buffered until it ends, so that it can begin a new line. */
    unsigned width;        /* columns of the terminal; 0: lines are not wrapped */
    unsigned column;       /* column of the next character */
    unsigned n_blanks;     /* blanks before the word, not yet written */
    bool verbatim, begins; /* verbatim: the text is between lines of ```; begins: no word in the line yet */
    char word[256];
    size_t word_bytes;
    bool is_joined; /* the word follows the one before without a blank, in another style */
    /* The members below show Markdown on a terminal with colours: */
    bool has_markup;
    cli_markup markup;
    unsigned style; /* style of the last piece */
} cli_view;

/* Begins a view. `wrap`: wrap at the terminal's width, if stdout is a terminal. `has_markup`: show Markdown as styles,
 * if stdout has colours; otherwise print the model's text verbatim. */
cli_view cli_view_begin(cli_call *call, bool wrap, bool has_markup);
/* Writes a part of a text; thinking is dim on a terminal. The result is false once writing failed. */
bool cli_view_part(cli_view *view, const char *text, size_t text_bytes, bool thinking);
/* Makes the view receive an answer: events on a terminal or with tools, else the model's text. The view must not
 * move. */
void cli_view_receive(cli_view *view, bool has_tools, whit_answer_options *options);
/* Ends the line and resets the style. */
bool cli_view_end(cli_view *view);

#endif
