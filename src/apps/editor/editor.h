/* SPDX-License-Identifier: MIT
 * The editor without a terminal: keys go in, a screen comes out. The loop around it (terminal.h) reads
 * a terminal and shows the screen; tests and fuzzers do without one. */
#ifndef WHIT_EDITOR_EDITOR_H
#define WHIT_EDITOR_EDITOR_H

#include "editor/keys.h"
#include "editor/panel.h"
#include "editor/suggest.h"
#include "editor/theme.h"

#include <poll.h>

typedef struct whit_editor whit_editor;

typedef struct whit_editor_options {
    const char *journal_folder;      /* NULL: unsaved text is not kept */
    const char *config_path;         /* NULL: none */
    const char *config;              /* text of the settings; NULL: read from the path, if the file exists */
    const char *project;             /* the folder of the file finder and of the code graph; NULL: the current one */
    const whit_suggester *suggester; /* NULL: none */
    bool read_only;
    /* Receives copied text too (the terminal's clipboard); may be NULL. */
    void (*copy)(void *user, const char *text, size_t n);
    void *user;
    const whit_panel *panel; /* an agent; NULL: none. Outlives the editor */
} whit_editor_options;

whit_status whit_editor_open(const whit_editor_options *options, whit_editor **editor, whit_error *error);
void whit_editor_close(whit_editor *editor);

/* Opens FILE or FILE:LINE in a buffer of its own; an error is shown on the screen, too. */
whit_status whit_editor_add_file(whit_editor *editor, const char *name, whit_error *error);
/* Adds a text that has no file, such as input from a pipe. */
whit_status whit_editor_add_text(whit_editor *editor, const char *name, const void *data, size_t n, whit_error *error);

/* How the windows show the opened files, on a screen of that size. */
typedef enum whit_arrangement {
    WHIT_ARRANGE_TABS, /* all files in one window */
    WHIT_ARRANGE_BESIDE,
    WHIT_ARRANGE_BELOW,
    WHIT_ARRANGE_COMPARED, /* two files, side by side */
} whit_arrangement;
void whit_editor_arrange(whit_editor *editor, whit_arrangement how, int n_columns, int n_rows);
/* Runs a line of vi's ':' such as "%s/a/b/ | w", also if vi's keys are not in use. */
void whit_editor_line(whit_editor *editor, const char *line);

/* `paste` is the text of a WHIT_KEY_PASTE, NULL where that was too long; else NULL. */
void whit_editor_key(whit_editor *editor, whit_key key, const char *paste, size_t n_paste);
void whit_editor_draw(whit_editor *editor, whit_screen *screen);
bool whit_editor_is_done(const whit_editor *editor);
/* Work for when no key waits, a millisecond or two of it; true while there is more. *redraw: the screen
 * would now be another. */
bool whit_editor_idle(whit_editor *editor, bool *redraw);
/* Milliseconds without a key after which to call whit_editor_idle; -1: never. */
int whit_editor_wait_ms(const whit_editor *editor);
/* File descriptors to poll beside keys (language servers, the agent, git, a command, the suggester), at most
 * WHIT_EDITOR_FDS; and what to call when one of them is ready: true where the screen would now be another. */
#define WHIT_EDITOR_FDS 38
size_t whit_editor_fds(const whit_editor *editor, struct pollfd *fds, size_t max);
bool whit_editor_ready(whit_editor *editor);
/* Checks whether other programs have changed the current file. False while a question is open: call it again
 * afterwards. */
bool whit_editor_check_files(whit_editor *editor);
/* Writes what was typed to the journals. */
void whit_editor_flush(whit_editor *editor);
bool whit_editor_wants_mouse(const whit_editor *editor);
const whit_theme *whit_editor_theme(const whit_editor *editor);
/* Path of the current buffer; NULL if it has no file. The pointer changes with the buffer. */
const char *whit_editor_path(const whit_editor *editor);

/* Gives the i-th command for documentation: name, keys ("C-s"), help; false after the last. */
bool whit_editor_command(size_t i, const char **name, const char **keys, const char **help);

#endif
