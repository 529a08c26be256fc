/* SPDX-License-Identifier: MIT */
#include "cli/view.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utf8proc.h>

#include "base/utf8.h"

cli_view cli_view_begin(cli_call *call, bool wrap)
{
    const char *terminal = getenv("TERM");
    cli_view view = {.call = call, .begins = true};
    view.styled = isatty(STDOUT_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
    if (wrap) view.width = cli_columns(STDOUT_FILENO);
    return view;
}

/* ---- wrapping ------------------------------------------------------------------------------- */

/* Number of columns of a text on a terminal; an invalid byte counts as one. */
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

/* Writes the pending word, on a new line if it does not fit this one. The terminal breaks a word wider than itself. */
static bool put_word(cli_view *view)
{
    unsigned wanted = view->n_blanks + columns_of(view->word, view->word_bytes);
    bool fits = view->column + wanted <= view->width,
         is_marks = !strncmp(view->word, "```", 3) && view->word_bytes >= 3;
    bool ok = true;
    if (view->begins && is_marks) view->verbatim = !view->verbatim;
    if (!fits && !view->verbatim && !view->begins && view->word_bytes) {
        ok = cli_write_data(view->call, "\n", 1);
        view->column = 0;
        view->n_blanks = 0;
    }
    for (; ok && view->n_blanks; view->n_blanks--) ok = put(view, " ", 1);
    if (ok && view->word_bytes) ok = put(view, view->word, view->word_bytes);
    if (view->word_bytes) view->begins = false;
    if (view->column > view->width) view->column = (view->column - 1) % view->width + 1; /* wrapped by it */
    view->word_bytes = 0;
    return ok;
}

/* Adds to the pending word. A long word is written in parts, so that text without blanks is not delayed forever. */
static bool hold(cli_view *view, const char *text, size_t n)
{
    bool ok = true;
    if (view->word_bytes + n > sizeof view->word) ok = put_word(view);
    memcpy(view->word + view->word_bytes, text, n);
    view->word_bytes += n;
    return ok;
}

/* Wraps text. Chinese, Japanese and other wide characters are words of one character: lines may break between them. */
static bool wrap(cli_view *view, const char *text, size_t n)
{
    bool ok = true;
    for (size_t i = 0, length; ok && i < n; i += length) {
        uint32_t code = whit_utf8_decode((const uint8_t *)text + i, n - i, &length);
        if (code == ' ') {
            ok = put_word(view);
            view->n_blanks++;
        } else if (code == '\n') {
            ok = put_word(view) && cli_write_data(view->call, "\n", 1);
            view->column = view->n_blanks = 0;
            view->begins = true;
        } else if (code != WHIT_UTF8_INVALID && utf8proc_charwidth((utf8proc_int32_t)code) == 2) {
            ok = (!view->word_bytes || put_word(view)) && hold(view, text + i, length) && put_word(view);
        } else {
            ok = hold(view, text + i, length);
        }
    }
    return ok;
}

/* ---- parts ---------------------------------------------------------------------------------- */

bool cli_view_part(cli_view *view, const char *text, size_t text_bytes, bool thinking)
{
    if (!text_bytes) return true;
    if (view->styled && thinking != view->dim) {
        if ((view->width && !put_word(view)) || !cli_control(view->call, thinking ? "\x1b[2m" : "\x1b[0m"))
            return false;
        view->dim = thinking;
    }
    bool ok = view->width ? wrap(view, text, text_bytes) : cli_write_data(view->call, text, text_bytes);
    return ok && cli_flush(view->call);
}

/* Calls are shown when the answer is complete. */
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
    if (view->width) put_word(view);
    if (view->dim) cli_control(view->call, "\x1b[0m");
    view->dim = false;
    return cli_write_data(view->call, "\n", 1) && cli_flush(view->call);
}
