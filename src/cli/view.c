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

bool cli_view_part(void *user, const char *text, size_t text_bytes, bool thinking)
{
    cli_view *view = user;
    if (!text_bytes) return true;
    if (view->styled && thinking != view->dim) {
        if (!cli_control(view->call, thinking ? "\x1b[2m" : "\x1b[0m")) return false;
        view->dim = thinking;
    }
    return cli_write(view->call, text, text_bytes) && cli_flush(view->call);
}

bool cli_view_end(cli_view *view)
{
    if (view->dim) cli_control(view->call, "\x1b[0m");
    view->dim = false;
    return cli_write(view->call, "\n", 1) && cli_flush(view->call);
}
