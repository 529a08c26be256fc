/* SPDX-License-Identifier: MIT */
#include "cli/view.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

cli_view cli_view_begin(cli_call *call)
{
    const char *terminal = getenv("TERM");
    return (cli_view){.call = call, .styled = isatty(STDOUT_FILENO) && terminal && strcmp(terminal, "dumb") != 0};
}

static bool is_control(unsigned char c)
{
    return (c < ' ' && c != '\n' && c != '\t') || c == 0x7F;
}

/* U+0080 to U+009F, two bytes from 0xC2 on, are controls too: some terminals obey them. */
static bool show(cli_view *view, const char *text, size_t n)
{
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (view->after_c2)
            ok = c < 0xA0 ? cli_write(view->call, "?", 1)
                          : cli_write(view->call, (const char[]){(char)0xC2, (char)c}, 2);
        else if (c != 0xC2)
            ok = cli_write(view->call, is_control(c) ? "?" : &text[i], 1);
        view->after_c2 = !view->after_c2 && c == 0xC2;
    }
    return ok;
}

bool cli_view_part(void *user, const char *text, size_t text_bytes, bool thinking)
{
    cli_view *view = user;
    if (!text_bytes) return true;
    if (!view->styled) return cli_write(view->call, text, text_bytes) && cli_flush(view->call);
    if (thinking != view->dim && !cli_print(view->call, thinking ? "\x1b[2m" : "\x1b[0m")) return false;
    view->dim = thinking;
    return show(view, text, text_bytes) && cli_flush(view->call);
}

bool cli_view_end(cli_view *view)
{
    if (view->dim) cli_print(view->call, "\x1b[0m");
    view->dim = false;
    return cli_write(view->call, "\n", 1) && cli_flush(view->call);
}
