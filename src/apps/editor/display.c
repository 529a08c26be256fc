/* SPDX-License-Identifier: MIT */
#include "editor/display.h"

#include "base/items.h"
#include "base/phrase.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <unistd.h>

void whit_display_send(const whit_display *display, const char *bytes, size_t n_bytes)
{
    while (n_bytes) {
        ssize_t written = write(display->out, bytes, n_bytes);
        if (written < 0 && errno != EINTR) return;
        if (written > 0) {
            bytes += written;
            n_bytes -= (size_t)written;
        }
    }
}

static void send_text(const whit_display *display, const char *text)
{
    whit_display_send(display, text, strlen(text));
}

/* Sets a locale with UTF-8, so that the C library's character widths fit the editor's texts. */
static void choose_locale(void)
{
    if (setlocale(LC_CTYPE, "") && MB_CUR_MAX >= 4) return;
    if (!setlocale(LC_CTYPE, "C.UTF-8")) setlocale(LC_CTYPE, "C");
}

static whit_status begin_direct(whit_display *display, whit_error *error)
{
    const char *type = getenv("TERM");
    if (!type || !*type || !strcmp(type, "dumb"))
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "the terminal '%s' cannot show a screen: set TERM, for example to xterm", whit_or_empty(type));
    if (tcgetattr(display->in, &display->settings)) return whit_fail_errno(error, "the terminal", "read its settings");
    struct termios raw = display->settings;
    cfmakeraw(&raw);
    if (tcsetattr(display->in, TCSADRAIN, &raw)) return whit_fail_errno(error, "the terminal", "change its settings");
    display->is_raw = display->direct = true;
    display->has_plain = getenv("NO_COLOR") && whit_theme_named("plain", &display->plain);
    send_text(display, "\033[?1049h");
    return WHIT_OK;
}

whit_status whit_display_open(whit_display *display, const whit_theme *theme, whit_error *error)
{
    choose_locale();
    WHIT_TRY(whit_curses_open(display, theme, error));
    return display->curses ? WHIT_OK : begin_direct(display, error);
}

static void show_direct(whit_display *display, const whit_theme *theme, const whit_screen *after)
{
    whit_buf out = {0};
    whit_screen *before = &display->before;
    if (whit_theme_paint(theme, before->cells ? before : NULL, after, &out))
        whit_display_send(display, whit_chars(&out), out.size_bytes);
    whit_buf_free(&out);
    if (!whit_screen_resize(before, after->n_columns, after->n_rows)) {
        whit_screen_free(before); /* without memory the next screen is painted in full */
        return;
    }
    memcpy(before->cells, after->cells, (size_t)(after->n_columns * after->n_rows) * sizeof *after->cells);
    before->cursor_x = after->cursor_x;
    before->cursor_y = after->cursor_y;
}

void whit_display_show(whit_display *display, const whit_theme *theme, const whit_screen *screen)
{
    if (display->direct)
        show_direct(display, display->has_plain ? &display->plain : theme, screen);
    else
        whit_curses_show(display->curses, theme, screen);
}

void whit_display_resize(whit_display *display, int n_columns, int n_rows)
{
    if (display->direct) whit_screen_free(&display->before);
    if (display->curses) whit_curses_resize(display->curses, n_columns, n_rows);
}

void whit_display_close(whit_display *display)
{
    if (display->direct) send_text(display, "\033[0m\033[?25h");
    if (display->curses) whit_curses_close(display->curses);
    if (display->is_raw) {
        send_text(display, "\033[?1049l");
        tcsetattr(display->in, TCSADRAIN, &display->settings);
    }
    whit_screen_free(&display->before);
    *display = (whit_display){.in = display->in, .out = display->out};
}
