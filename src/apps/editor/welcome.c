/* SPDX-License-Identifier: MIT
 * Draws the first screen of an editor that was started without a file, and gives hints to people who are used to other
 * editors' keys. */
#include "editor/state.h"

#include <stdio.h>

#define KEYS_COLUMNS  12 /* width in columns of the keys shown before each hint */
#define WIDTH_COLUMNS 56

struct hint {
    const char *command; /* command whose first key is shown; NULL: `keys` is shown */
    const char *keys;
    const char *what;
};

static const struct hint usual[] = {
    {"help", NULL, "all keys and commands, to search in"},
    {"open", NULL, "open a file by its name"},
    {"files", NULL, "find a file of this project"},
    {"find-in-files", NULL, "search in all of its files"},
    {"save", NULL, "save"},
    {"quit", NULL, "quit; asks for what is not saved"},
    {"vi", NULL, "vi's keys"},
    {NULL, "mouse", "click and drag; Shift-drag is the terminal's"},
};

static const struct hint vi[] = {
    {"help", NULL, "all keys and commands, to search in"},
    {NULL, "i", "insert; Esc ends it"},
    {NULL, ":e FILE", "open a file; C-p finds one of the project"},
    {NULL, ":w FILE", "save"},
    {NULL, ":q", "quit; :q! drops what is not saved"},
    {"find-in-files", NULL, "search in all files of the project"},
    {"vi", NULL, "the usual keys: C-s saves, C-q quits"},
    {NULL, "mouse", "click and drag; Shift-drag is the terminal's"},
};

static bool is_first_screen(const ed *e, const struct ed_window *window)
{
    const whit_buffer *buffer = window->doc->buffer;
    return !e->docs->next && !buffer->path && !buffer->version && !whit_text_size(buffer->text) &&
        !e->options.read_only;
}

void ed_welcome_draw(ed *e, const struct ed_window *window, whit_screen *screen)
{
    const struct hint *hints = e->vi.on ? vi : usual;
    int n = (int)(e->vi.on ? sizeof vi / sizeof *vi : sizeof usual / sizeof *usual);
    /* the text's first row and the status line stay free */
    int n_rows = window->n_rows - 2, limit = window->x + window->n_columns;
    if (!is_first_screen(e, window) || n_rows < n || window->n_columns < WIDTH_COLUMNS + 2 || e->prompt.kind) return;
    int x = window->x + (window->n_columns - WIDTH_COLUMNS) / 2, y = window->y + 1 + (n_rows - n) / 2;
    for (int i = 0; i < n; i++, y++) {
        char keys[64];
        if (hints[i].command)
            ed_keys_of(e, ed_command_find(hints[i].command), keys, sizeof keys);
        else
            snprintf(keys, sizeof keys, "%s", hints[i].keys);
        if (hints[i].command) keys[strcspn(keys, " ")] = 0;
        whit_screen_put(screen, x, y, limit, WHIT_STYLE_KEYWORD, keys);
        whit_screen_put(screen, x + KEYS_COLUMNS, y, limit, WHIT_STYLE_COMMENT, hints[i].what);
    }
}

/* If the line before the cursor is a quit or write command of vi, such as ":q", shows the editor's own keys for it. */
void ed_welcome_stranger(ed *e)
{
    static const char *const lines[] = {":q", ":q!", ":w", ":wq", ":x", ":qa", ":wqa", ":wq!", ":qa!"};
    char line[8] = "", keys[3][64];
    uint64_t at = ed_cursor(e)->offset, end = at ? at - 1 : 0, begin;
    if (end && whit_layout_byte(ed_layout(e), end - 1) == '\r') end--;
    begin = whit_layout_line_begin(ed_layout(e), end);
    if (end - begin >= sizeof line) return;
    line[whit_text_read(ed_text(e), begin, line, end - begin)] = 0;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (strcmp(line, lines[i]) != 0) continue;
        static const char *const commands[] = {"save", "quit", "vi"};
        for (int k = 0; k < 3; k++) {
            ed_keys_of(e, ed_command_find(commands[k]), keys[k], sizeof keys[k]);
            keys[k][strcspn(keys[k], " ")] = 0;
        }
        ed_say(e, "%s saves, %s quits; %s switches to vi's keys", keys[0], keys[1], keys[2]);
        return;
    }
}
