/* SPDX-License-Identifier: MIT */
#include "cli/view.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utf8proc.h>

#include "base/utf8.h"

/* ---- wrapping ------------------------------------------------------------------------------- */

/* Returns the number of columns that a text takes on a terminal; an invalid byte takes one. */
static unsigned columns_of(const char *text, size_t n)
{
    unsigned columns = 0;
    for (size_t i = 0, length; i < n; i += length) {
        uint32_t code = whit_utf8_decode((const uint8_t *)text + i, n - i, &length);
        columns += code == WHIT_UTF8_INVALID ? 1 : (unsigned)utf8proc_charwidth((utf8proc_int32_t)code);
    }
    return columns;
}

static bool put(cli_view *view, const char *text, size_t n)
{
    if (!cli_write_data(view->call, text, n)) return false;
    view->column += columns_of(text, n);
    return true;
}

/* Writes the blanks and the word that are pending. Outside code, if they do not fit in the current line, begins a new
 * line with the word and drops the blanks. A word wider than the terminal is broken by the terminal. Returns false if
 * writing failed. */
static bool put_word(cli_view *view)
{
    unsigned wanted = view->n_blanks + columns_of(view->word, view->word_bytes);
    bool fits = view->column + wanted <= view->width,
         is_marks = !strncmp(view->word, "```", 3) && view->word_bytes >= 3;
    bool ok = true;
    if (view->begins && is_marks && !view->has_markup) view->verbatim = !view->verbatim;
    if (!fits && !view->verbatim && !view->begins && !view->is_joined && view->word_bytes) {
        ok = cli_write_data(view->call, "\n", 1);
        view->column = 0;
        view->n_blanks = 0;
    }
    for (; ok && view->n_blanks; view->n_blanks--) ok = put(view, " ", 1);
    if (ok && view->word_bytes) ok = put(view, view->word, view->word_bytes);
    if (view->word_bytes) view->begins = view->is_joined = false;
    /* If the terminal has broken the word at its edge, this is the column after the word's last part. */
    if (view->column > view->width) view->column = (view->column - 1) % view->width + 1;
    view->word_bytes = 0;
    return ok;
}

/* Adds text to the pending word. If the buffer is full, writes the word's part so far, so that a long text without
 * blanks appears without delay. Returns false if writing failed. */
static bool hold(cli_view *view, const char *text, size_t n)
{
    bool ok = true;
    if (view->word_bytes + n > sizeof view->word) ok = put_word(view);
    memcpy(view->word + view->word_bytes, text, n);
    view->word_bytes += n;
    return ok;
}

/* Writes text, wrapped between words. Each Chinese, Japanese or other wide character counts as a word, because lines
 * may break between them. Returns false if writing failed. */
static bool wrap_text(cli_view *view, const char *text, size_t n)
{
    bool ok = true;
    for (size_t i = 0, length; ok && i < n; i += length) {
        uint32_t code = whit_utf8_decode((const uint8_t *)text + i, n - i, &length);
        if (code == ' ') {
            ok = put_word(view);
            view->is_joined = false;
            view->n_blanks++;
        } else if (code == '\n') {
            ok = put_word(view) && cli_write_data(view->call, "\n", 1);
            view->column = view->n_blanks = 0;
            view->begins = true;
            view->is_joined = false;
        } else if (code != WHIT_UTF8_INVALID && utf8proc_charwidth((utf8proc_int32_t)code) == 2) {
            ok = (!view->word_bytes || put_word(view)) && hold(view, text + i, length) && put_word(view);
        } else {
            ok = hold(view, text + i, length);
        }
    }
    return ok;
}

/* ---- parts ---------------------------------------------------------------------------------- */

static bool put_text(cli_view *view, const char *text, size_t n)
{
    return view->width ? wrap_text(view, text, n) : cli_write_data(view->call, text, n);
}

/* Writes the pending word and switches the terminal to a style, bits CLI_STYLE_* of cli/markup.h. Returns false if
 * writing failed. */
static bool set_style(cli_view *view, unsigned style)
{
    static const struct {
        unsigned style;
        const char *code;
    } codes[] = {{CLI_STYLE_BOLD, ";1"},     {CLI_STYLE_ITALIC, ";3"},  {CLI_STYLE_QUOTE, ";2"},
                 {CLI_STYLE_KEYWORD, ";35"}, {CLI_STYLE_STRING, ";32"}, {CLI_STYLE_COMMENT, ";90"},
                 {CLI_STYLE_NUMBER, ";33"}};
    char sequence[64] = "\x1b[0";
    if (style == view->style) return true;
    if (view->width) {
        bool is_within = view->word_bytes > 0;
        if (!put_word(view)) return false;
        view->is_joined = is_within;
    }
    view->style = style;
    const unsigned coloured = CLI_STYLE_KEYWORD | CLI_STYLE_STRING | CLI_STYLE_COMMENT | CLI_STYLE_NUMBER;
    if (style & CLI_STYLE_CODE && !(style & coloured)) strcat(sequence, ";36");
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (style & codes[i].style) strcat(sequence, codes[i].code);
    return cli_control(view->call, strcat(sequence, "m"));
}

static bool put_styled(void *user, const char *text, size_t n, unsigned style, bool verbatim)
{
    cli_view *view = user;
    if (!set_style(view, style)) return false;
    view->verbatim = verbatim;
    return put_text(view, text, n);
}

cli_view cli_view_begin(cli_call *call, bool wrap, bool has_markup)
{
    const char *terminal = getenv("TERM");
    cli_view view = {.call = call, .begins = true, .markup = cli_markup_begin(put_styled, NULL)};
    view.styled = isatty(STDOUT_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
    view.has_markup = has_markup && view.styled && cli_has_colours(STDOUT_FILENO);
    if (wrap) view.width = cli_columns(STDOUT_FILENO);
    return view;
}

/* Ends the Markdown text: writes the part that the parser has held back, resets the style and begins a new text.
 * Returns false if writing failed. */
static bool end_markup(cli_view *view)
{
    view->markup.user = view;
    bool ok = cli_markup_end(&view->markup) && set_style(view, 0);
    view->markup = cli_markup_begin(put_styled, view);
    view->verbatim = false;
    return ok;
}

bool cli_view_part(cli_view *view, const char *text, size_t text_bytes, bool thinking)
{
    if (!text_bytes) return true;
    if (view->styled && thinking != view->dim) {
        if (thinking && view->has_markup && !end_markup(view)) return false;
        if ((view->width && !put_word(view)) || !cli_control(view->call, thinking ? "\x1b[2m" : "\x1b[0m"))
            return false;
        view->dim = thinking;
    }
    view->markup.user = view; /* cli_view_begin returns the view by value, so `markup` may not have its address yet */
    bool ok = view->has_markup && !thinking ? cli_markup_add(&view->markup, text, text_bytes)
                                            : put_text(view, text, text_bytes);
    return ok && cli_flush(view->call);
}

/* Shows the text and the thinking of an event. Calls of tools are not shown here, but when the answer is complete.
 * Returns false if writing failed. */
static bool show_event(void *user, const whit_chat_event *event)
{
    cli_view *view = user;
    const bool thinking = event->kind == WHIT_CHAT_THINKING;
    if (!thinking && event->kind != WHIT_CHAT_TEXT) return true;
    if (!thinking && view->thought && !cli_view_part(view, "\n\n", 2, false)) return false;
    view->thought = thinking;
    return cli_view_part(view, event->text, event->text_bytes, thinking);
}

static bool show_text(void *user, const char *text, size_t text_bytes)
{
    return cli_view_part(user, text, text_bytes, false);
}

void cli_view_receive(cli_view *view, bool has_tools, whit_answer_options *options)
{
    const bool events = view->styled || has_tools;
    options->on_event = events ? show_event : NULL;
    options->on_text = events ? NULL : show_text;
    options->user = view;
}

bool cli_view_end(cli_view *view)
{
    if (view->has_markup) end_markup(view);
    if (view->width) put_word(view);
    if (view->dim) cli_control(view->call, "\x1b[0m");
    view->dim = false;
    return cli_write_data(view->call, "\n", 1) && cli_flush(view->call);
}
